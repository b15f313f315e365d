"""Noise as if it were real: the point of a public grid that is nearest to value + noise, exactly.

A noisy double shows in its low bits what was there before the noise (Mironov 2012). Here noise is the quantile of a uniform
number with as many random bits as it takes to know which point of the grid is the nearest. What leaves is then a function of
what the ideal mechanism would release, so its guarantee is that of the ideal mechanism, at δ = 0 as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache

import numpy as np
from scipy.special import ndtri

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import TAIL_UNIT, Source, tails_and_signs

_DIGITS = 120
_MORE_BITS = 128
_CLOSE = Decimal(10) ** -90
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
    "32823066470938446095505822317253594081284811"
)
# Of quantiles in double precision; measured against 30 digits: below 2⁻⁵⁰ relative (tests/numerics/test_exact_noise.py).
_RELATIVE, _ABSOLUTE = 2.0**-46, 2.0**-50


@dataclass(frozen=True)
class NoiseLaw:
    """A symmetric law: its absolute value, from the probability of a larger one; in double precision, and exactly."""

    quantile: Callable[[Floats], Floats]
    exactly: Callable[[Decimal], Decimal]


def nearest_multiples(
    value: Floats, grid: float, noises: Sequence[tuple[NoiseLaw, float]], source: Source, factor: float = 1.0
) -> Floats:
    """The multiples of `grid`, a power of two, that are nearest to factor·value + the sum of these noises with their scales.

    Where double precision leaves no doubt which these are, it decides; elsewhere, more bits and 120 digits do.
    """
    centre = value * (factor / grid)
    total, doubt = centre, np.abs(centre) * _ABSOLUTE
    drawn = []
    for law, scale in noises:
        bits = source.bits(value.shape)
        tails, signs = tails_and_signs(bits)
        sizes = law.quantile((tails + 0.5) * TAIL_UNIT)
        with np.errstate(divide="ignore"):
            unknown = 2.0 / tails  # of the quantile, for the bits that were not drawn: its slope is at most 2/p
        total = total + signs * sizes * (scale / grid)
        doubt = doubt + (scale / grid) * (unknown + _RELATIVE * sizes + _ABSOLUTE) + _ABSOLUTE * np.abs(total)
        drawn.append(bits)
    nearest = np.rint(total)
    for place in np.argwhere(np.abs(np.abs(total - nearest) - 0.5) <= doubt):
        one = tuple(place)
        nearest[one] = _exactly(value[one], factor, grid, noises, [int(bits[one]) for bits in drawn], source)
    return np.asarray(nearest * grid)


def _exactly(
    value: float, factor: float, grid: float, noises: Sequence[tuple[NoiseLaw, float]], drawn: list[int], source: Source
) -> int:
    with localcontext() as context:
        context.prec = _DIGITS
        total = Decimal(float(value)) * Decimal(factor)
        for (law, scale), bits in zip(noises, drawn, strict=True):
            size = law.exactly(_longer_tail(bits >> 1, source))
            total += (1 - 2 * (bits & 1)) * Decimal(scale) * size
        return int((total / Decimal(grid)).to_integral_value(ROUND_HALF_UP))


def _longer_tail(tail: int, source: Source) -> Decimal:
    high, low = (int(bits) for bits in source.bits(2))
    whole = (tail << _MORE_BITS) + (high << 64) + low
    return (2 * Decimal(whole) + 1) / Decimal(2) ** (64 + _MORE_BITS)


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
    term, total, odd = size, size, 1
    while abs(term) > Decimal(10) ** -(_DIGITS + 2):
        odd += 2
        term = term * size * size / odd
        total += term
    return Decimal("0.5") - density * total


def _normal_sizes(tails: Floats) -> Floats:
    return np.asarray(-ndtri(tails / 2))


def _laplace_sizes(tails: Floats) -> Floats:
    return np.asarray(-np.log(tails))


NORMAL = NoiseLaw(_normal_sizes, normal_quantile)
LAPLACE = NoiseLaw(_laplace_sizes, lambda tail: -tail.ln())


@cache
def public_grid(scale: float, finer: int = 12) -> float:
    """A power of two, between 2¹² and 2¹³ times finer than the noise: it shows the size of the noise, which is public."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - finer)
