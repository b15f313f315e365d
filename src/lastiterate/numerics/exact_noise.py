"""Noise as if it were real: the point of a public grid that is nearest to value + noise, exactly.

A noisy double shows in its low bits what was there before the noise (Mironov 2012), and a function of it could read them.
Here noise is the quantile of a uniform number with as many random bits as it takes to know which point of the grid is the
nearest. What comes out is a function of what the ideal mechanism would give, so the ideal mechanism's guarantee holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
from scipy.special import ndtri

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Bits, Source

_DIGITS = 120
_CLOSE = Decimal(10) ** -90
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
    "32823066470938446095505822317253594081284811"
)
# Of quantiles in double precision; measured against 60 digits: within half of it (tests/numerics/test_exact_noise.py).
_RELATIVE, _ABSOLUTE = 2.0**-49, 2.0**-52
_UNKNOWN = 2.0**-49  # of a quantile, for the bits of a tail that were not drawn: its slope is at most 2/p
_FEW = np.uint64(1 << 50)  # below, a tail of 63 bits has too few of them left, and gets 64 more
_TAIL_UNIT = 2.0**-63


@dataclass(frozen=True)
class NoiseLaw:
    """A symmetric law: its absolute value, from the probability of a larger one; in double precision, and exactly."""

    quantile: Callable[[Floats], Floats]
    exactly: Callable[[Decimal], Decimal]


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The bits of one noise: a sign, 63 for the tail, and 64 more where that is small."""

    bits: Bits
    few: np.ndarray
    more: Bits

    @classmethod
    def from_source(cls, shape: tuple[int, ...], source: Source) -> _Drawn:
        bits = source.bits(shape)
        few = bits >> np.uint64(1) < _FEW
        return cls(bits, few, source.bits(int(few.sum())))

    @property
    def signs(self) -> Floats:
        return np.asarray(1.0 - 2.0 * (self.bits & np.uint64(1)))

    @property
    def tails(self) -> Floats:
        """As probabilities, to 50 bits at least."""
        found = np.asarray(((self.bits >> np.uint64(1)) + 0.5) * _TAIL_UNIT)
        if len(self.more):
            found[self.few] = ((self.bits[self.few] >> np.uint64(1)) + (self.more + 0.5) * 2.0**-64) * _TAIL_UNIT
        return found

    def exact_tail(self, place: tuple[int, ...], source: Source) -> Decimal:
        """191 bits of it."""
        tail = int(self.bits[place]) >> 1
        if self.few[place]:
            behind = int(self.more[int(self.few.ravel()[: np.ravel_multi_index(place, self.few.shape)].sum())])
        else:
            behind = int(source.bits(1)[0])
        whole = (tail << 128) + (behind << 64) + int(source.bits(1)[0])
        return (2 * Decimal(whole) + 1) / Decimal(2) ** 192


def nearest_multiples(
    value: Floats, grid: float, noises: Sequence[tuple[NoiseLaw, float]], source: Source, factor: float = 1.0
) -> Floats:
    """The multiples of `grid`, a power of two, that are nearest to factor·value + the sum of these noises with their scales.

    Where double precision leaves no doubt which these are, it decides; elsewhere, more bits and 120 digits do.
    """
    centre = value * (factor / grid)  # exact, if there is no factor
    whole = np.floor(centre)
    total, doubt = centre - whole, 0.0 if factor == 1 else np.abs(centre) * 2.0**-52
    drawn = []
    for law, scale in noises:
        one = _Drawn.from_source(value.shape, source)
        sizes = law.quantile(one.tails)
        total = total + one.signs * (sizes * (scale / grid))
        doubt = doubt + (scale / grid) * ((_RELATIVE + 2.0**-51) * sizes + (_UNKNOWN + _ABSOLUTE)) + 2.0**-51
        drawn.append(one)
    nearest = np.rint(total)
    found = np.asarray(whole + nearest)
    for place in np.argwhere(np.abs(np.abs(total - nearest) - 0.5) <= doubt):
        found[tuple(place)] = _exactly(value, factor, grid, noises, drawn, tuple(place), source)
    return np.asarray(found * grid)


def _exactly(
    value: Floats,
    factor: float,
    grid: float,
    noises: Sequence[tuple[NoiseLaw, float]],
    drawn: list[_Drawn],
    place: tuple[int, ...],
    source: Source,
) -> int:
    with localcontext() as context:
        context.prec = _DIGITS
        total = Decimal(float(value[place])) * Decimal(factor)
        for (law, scale), one in zip(noises, drawn, strict=True):
            sign = 1 - 2 * (int(one.bits[place]) & 1)
            total += sign * Decimal(scale) * law.exactly(one.exact_tail(place, source))
        return int((total / Decimal(grid)).to_integral_value(ROUND_HALF_UP))


def normal_quantile(tail: Decimal) -> Decimal:
    """The size that a standard normal number exceeds, either way, with this probability: Newton's method."""
    size = Decimal(float(-ndtri(float(tail / 2))))
    for _ in range(10):
        density = (-size * size / 2).exp() / (2 * _PI).sqrt()
        step = (_upper_tail(size, density) - tail / 2) / density
        size += step
        if abs(step) < _CLOSE:
            break
    return size


def _upper_tail(size: Decimal, density: Decimal) -> Decimal:
    """1/2 − φ(z)·(z + z³/3 + z⁵/(3·5) + …): no term is negative."""
    term, total, odd, square = size, size, 1, size * size
    while abs(term) > Decimal(10) ** -(_DIGITS + 2):
        odd += 2
        term = term * square / odd
        total += term
    return Decimal("0.5") - density * total


def _normal_sizes(tails: Floats) -> Floats:
    return np.asarray(-ndtri(tails / 2))


def _laplace_sizes(tails: Floats) -> Floats:
    return np.asarray(-np.log(tails))


NORMAL = NoiseLaw(_normal_sizes, normal_quantile)
LAPLACE = NoiseLaw(_laplace_sizes, lambda tail: -tail.ln())


def public_grid(scale: float, finer: int = 12) -> float:
    """A power of two, between 2¹² and 2¹³ times finer than the noise: it shows the size of the noise, which is public."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - finer)
