"""Noise as if it were real: the point of a public grid that is nearest to value + noise, exactly.

A noisy double shows in its low bits what was there before the noise (Mironov 2012), and a function of it could read them.
Here noise is a function of uniform numbers with as many random bits as it takes to know which point of the grid is the
nearest. What comes out is a function of what the ideal mechanism would give, so the ideal mechanism's guarantee holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Bits, Source

_DIGITS = 120  # 191 bits are 58 digits; as many again for roundings, and for values that are far larger than the grid
_PI = Decimal(  # to more digits than are computed with
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
    "32823066470938446095505822317253594081284811"
)
# Errors in double precision; measured against 60 digits: within half of it (tests/numerics/test_exact_noise.py).
# Smaller ones would let double precision decide what it does not know; larger ones only send more places to 120 digits.
_OF_SIZE = 2.0**-49  # logarithms, roots and tangents of numpy, and the products and sums that follow
_OF_TAIL = 2.0**-51  # relative, for the rounding of a tail, and for the bits of it that were not drawn
_SMALL = 2.0**-8  # below, fewer than 55 of the 63 bits of a tail are left, too few for _OF_TAIL: it gets 64 more
_FEW = np.uint64(1 << 55)  # below, where the first 63 are 0, those 64 leave as few
_SIGN = np.uint64(1 << 63)
_NONE = np.zeros(0, np.intp)
_UNIT = 2.0**-63  # of 64 bits one is the sign
_LONGEST = 13.4  # √(−2·log 2⁻¹²⁸) is less: no length that is known is larger
_SHORTEST = 2.0**-60  # a shorter one, which is computed as 0, leaves a doubt of 2⁹: of all that it may be
_AT_ONCE = 1 << 15  # numbers: what is computed of them stays in the cache, and calls are few


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some noises in double precision, how far those at some places may be off, and any of them, and each exactly."""

    values: Floats
    doubts: Callable[[NDArray[np.intp]], Floats]
    widest: float
    exactly: Callable[[int], Decimal]


NoiseLaw = Callable[[int, Source], Drawn]


@dataclass(frozen=True, eq=False)
class _Uniform:
    """Uniform numbers and signs, as bits: a sign, 63 for the number, and 64 more at the places `few`, where it is small.

    They are read as integers k with a sign. The number begins with the bits of k, or, where that is negative, of −1 − k.
    """

    bits: Bits
    few: NDArray[np.intp]
    more: Bits
    source: Source

    @classmethod
    def accurate(cls, bits: Bits, source: Source) -> tuple[_Uniform, Floats]:
        """From these bits, and as many more as make numbers accurate relative to their size; and the numbers."""
        numbers = _with_signs(bits, 1.0)
        np.abs(numbers, out=numbers)
        few = (numbers < _SMALL).nonzero()[0]
        found = cls(bits, few, source.bits(len(few)), source)
        if len(few):
            numbers[few] = (found._whole(few) + (found.more + 0.5) * 2.0**-64) * _UNIT
        return found, numbers

    def _whole(self, places: NDArray[np.intp]) -> Bits:
        """The first 63 bits of these numbers."""
        given = self.bits[places]
        return np.where(given < _SIGN, given, ~given)

    @property
    def far(self) -> NDArray[np.intp]:
        """Where nearly all of 127 bits are 0: more have to be drawn before anything is known."""
        tiny = self.more < _FEW
        return self.few[(self._whole(self.few) == 0) & tiny] if tiny.any() else _NONE

    def sign_all(self, sizes: Floats) -> None:
        whole = sizes.view(np.uint64)
        whole ^= self.bits & _SIGN

    def sign(self, place: int) -> int:
        return 1 - 2 * (int(self.bits[place]) >> 63)

    def exactly(self, place: int) -> Decimal:
        """The number from 191 bits: so many are drawn here that were not."""
        rank = int(np.searchsorted(self.few, place))
        known = rank < len(self.few) and self.few[rank] == place
        second = int(self.more[rank] if known else self.source.bits(1)[0])
        first = int(self._whole(np.array([place]))[0])
        whole = (first << 128) + (second << 64) + int(self.source.bits(1)[0])
        return (2 * Decimal(whole) + 1) / Decimal(2) ** 192


def _with_signs(bits: Bits, factor: float) -> Floats:
    """Numbers with their signs, times a factor: off by at most 2⁻⁶³ of it, and by roundings."""
    return np.asarray(np.multiply(bits.view(np.int64), _UNIT * factor))


def laplace(count: int, source: Source) -> Drawn:
    """Laplace noise of scale 1: minus the logarithm of a uniform number, with a sign."""
    uniform, sizes = _Uniform.accurate(source.bits(count), source)
    np.log(sizes, out=sizes)
    np.negative(sizes, out=sizes)
    values, far = sizes.copy(), uniform.far
    uniform.sign_all(values)

    def doubts(some: Floats) -> Floats:
        return _OF_SIZE * some + _OF_TAIL

    return Drawn(
        values,
        lambda places: _unknown(doubts(sizes[places]), places, far),
        math.inf if len(far) else float(doubts(sizes.max(initial=0.0))),
        lambda place: -uniform.sign(place) * uniform.exactly(place).ln(),
    )


def normal(count: int, source: Source) -> Drawn:
    """Standard normal noise: points of the plane with a length and an angle (Box and Muller), two numbers each."""
    number = (count + 1) // 2
    pairs, tails = _Pairs.from_source(number, source)
    lengths, far, values = _lengths(tails), pairs.tails.far, np.empty(2 * number)
    pairs.turn(lengths, values[:number], values[number:])

    def doubts(some: Floats) -> Floats:  # of √(−2·log p): dp/p/√…; a length may be −0
        return _OF_SIZE * some + _OF_TAIL / np.maximum(some, _SHORTEST)

    least = float(lengths.min(initial=_LONGEST))
    return Drawn(
        values[:count],
        lambda places: _unknown(doubts(lengths[places % number]), places % number, far),
        math.inf if len(far) else _OF_SIZE * _LONGEST + _OF_TAIL / max(least, _SHORTEST),
        pairs.exactly,
    )


def _lengths(tails: Floats) -> Floats:
    """√(−2·log p), in place."""
    np.log(tails, out=tails)
    np.multiply(tails, -2, out=tails)
    return np.sqrt(tails, out=tails)


def _unknown(doubts: Floats, places: NDArray[np.intp], far: NDArray[np.intp]) -> Floats:
    """Nothing is known of what is far out."""
    return np.where(np.isin(places, far), np.inf, doubts) if len(far) else doubts


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Points of the plane: the tail of the length, a part of the right angle, a sign from each. Both halves share bits.

    The sign of the tail turns both coordinates, that of the angle the second.
    """

    tails: _Uniform
    angles: _Uniform
    known: dict[int, tuple[Decimal, Decimal]] = field(default_factory=dict)

    @classmethod
    def from_source(cls, count: int, source: Source) -> tuple[_Pairs, Floats]:
        """And the tails as numbers."""
        bits = source.bits(2 * count)
        tails, numbers = _Uniform.accurate(bits[:count], source)
        return cls(tails, _Uniform(bits[count:], _NONE, bits[:0], source)), numbers

    def turn(self, lengths: Floats, cosines: Floats, sines: Floats) -> None:
        """Lengths times the cosine and the sine of the angles, by the tangent of the half, which has their sign."""
        halves = _with_signs(self.angles.bits, math.pi / 4)
        np.tan(halves, out=halves)
        squares = halves * halves
        np.subtract(1, squares, out=cosines)
        squares += 1
        scaled = np.divide(lengths, squares, out=squares)
        self.tails.sign_all(scaled)
        cosines *= scaled
        scaled += scaled
        np.multiply(scaled, halves, out=sines)

    def exactly(self, place: int) -> Decimal:
        half, pair = divmod(place, len(self.tails.bits))
        if pair not in self.known:
            self.known[pair] = self._both(pair)
        return self.known[pair][half]

    def _both(self, pair: int) -> tuple[Decimal, Decimal]:
        length = (-2 * self.tails.exactly(pair).ln()).sqrt()
        cosine, sine = cosine_and_sine(self.angles.exactly(pair) * _PI / 2)
        signed = self.tails.sign(pair) * length
        return signed * cosine, self.angles.sign(pair) * signed * sine


def cosine_and_sine(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Return the cosine and the sine of a part of the right angle, from their series."""
    sums, term, order = [Decimal(0), Decimal(0)], Decimal(1), 0
    while abs(term) > Decimal(10) ** -(_DIGITS + 2):
        sums[order % 2] += (-1) ** (order // 2) * term
        order += 1
        term = term * angle / order
    return sums[0], sums[1]


def nearest_multiples(
    value: Floats, grid: float, noises: Sequence[tuple[NoiseLaw, float]], source: Source, factor: float = 1.0
) -> Floats:
    """The multiples of `grid`, a power of two, that are nearest to factor·value + the sum of these noises with their scales.

    Where double precision leaves no doubt which these are, it decides; elsewhere, more bits and 120 digits do.
    """
    flat = value.ravel()
    found = np.empty(flat.shape)
    for first in range(0, flat.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        found[part] = _nearest(flat[part], grid, noises, source, factor)
    return (found * grid).reshape(value.shape)


def add_whole_noises(vector: Floats, law: NoiseLaw, scale: float, source: Source) -> None:
    """To a vector, in place, the whole numbers nearest to noises of this scale: `nearest_multiples` around 0, quicker."""
    for part in _parts(vector):
        part += _whole_noises(part.size, law, scale, source)


def make_noisy_multiples(vector: Floats, grid: float, law: NoiseLaw, scale: float, source: Source) -> None:
    """In place: the multiples of `grid`, a power of two, nearest to the vector, and those nearest to noises of this scale.

    Value and noise are rounded by themselves, in one pass: each part is divided, rounded and multiplied while it is in the
    cache.
    """
    for part in _parts(vector):
        with np.errstate(over="ignore"):  # far larger than any noise: whoever needs both has looked before
            part *= 1 / grid
        np.rint(part, out=part)
        part += _whole_noises(part.size, law, scale / grid, source)
        part *= grid


def _parts(vector: Floats) -> Iterator[Floats]:
    """Yield the parts of a long vector, which share its memory."""
    return (vector[first : first + _AT_ONCE] for first in range(0, vector.size, _AT_ONCE))


def _whole_noises(count: int, law: NoiseLaw, scale: float, source: Source) -> Floats:
    drawn = law(count, source)
    total = np.multiply(drawn.values, scale, out=drawn.values)
    nearest = np.rint(total)
    for place in _in_doubt(total, nearest, [(scale, drawn)]):
        nearest[place] = _exactly(0.0, 1.0, 1.0, [(scale, drawn)], place)
    return nearest


def _nearest(
    value: Floats, grid: float, noises: Sequence[tuple[NoiseLaw, float]], source: Source, factor: float
) -> Floats:
    """As whole numbers of steps of the grid."""
    centre = value * (factor / grid)  # exact, if there is no factor
    whole = np.floor(centre)
    total = centre - whole
    terms = [(scale, law(centre.size, source)) for law, scale in noises]
    for scale, drawn in terms:
        total += drawn.values * (scale / grid)
    nearest = np.rint(total)
    found = whole + nearest
    rounded = None if factor == 1 else np.abs(centre, out=centre)
    for place in _in_doubt(total, nearest, [(scale / grid, drawn) for scale, drawn in terms], rounded):
        found[place] = _exactly(float(value[place]), factor, grid, terms, place)
    return np.asarray(found)


def _in_doubt(
    total: Floats, nearest: Floats, terms: list[tuple[float, Drawn]], rounded: Floats | None = None
) -> list[int]:
    """Where double precision does not know the nearest whole number; `rounded`: sizes of what was rounded before.

    First against a doubt that is twice the widest of all, which leaves few places to look at.
    """
    left = np.abs(np.subtract(total, nearest, out=total), out=total)
    widest = sum(drawn.widest * scale + 2.0**-51 for scale, drawn in terms)
    widest += 0.0 if rounded is None else float(rounded.max(initial=0.0)) * 2.0**-52
    places = (left >= 0.5 - 2 * widest).nonzero()[0]
    if not len(places):
        return []
    doubt = np.zeros(len(places)) if rounded is None else rounded[places] * 2.0**-52
    for scale, drawn in terms:
        doubt += drawn.doubts(places) * scale + 2.0**-51
    return [int(place) for place in places[0.5 - left[places] <= doubt]]


def _exactly(value: float, factor: float, grid: float, terms: list[tuple[float, Drawn]], place: int) -> int:
    with localcontext() as context:
        context.prec = _DIGITS
        total = Decimal(value) * Decimal(factor)
        for scale, drawn in terms:
            total += Decimal(scale) * drawn.exactly(place)
        return int((total / Decimal(grid)).to_integral_value(ROUND_HALF_UP))


def public_grid(scale: float, finer: int = 12) -> float:
    """A power of two, between 2¹² and 2¹³ times finer than the noise: it shows the size of the noise, which is public."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - finer)


# One of several states, with exactly the probabilities that are given: as many random bits as it takes to know which.


# Sums of n shares are off by n·2⁻⁵², so that this is enough up to 4096 states; more only costs exact draws.
_DOUBT = 2.0**-40
_CHUNK = 1 << 20  # numbers that are looked at together: some 8 MB; fewer are a slower loop, more are memory


def states_drawn(matrix: Floats, given: NDArray[np.intp], source: Source) -> NDArray[np.intp]:
    """For each given state, the next one, by the row of the matrix that belongs to it; rows are divided by their sums."""
    totals = np.cumsum(matrix, axis=1)
    shares, flat = totals / totals[:, -1:], given.ravel()
    many = max(1, _CHUNK // matrix.shape[1])
    parts = [_part(matrix, shares, flat[first : first + many], source) for first in range(0, len(flat), many)]
    return np.concatenate([np.zeros(0, np.intp), *parts]).reshape(given.shape)


def _part(matrix: Floats, shares: Floats, given: NDArray[np.intp], source: Source) -> NDArray[np.intp]:
    bits = source.bits(len(given))
    points = (bits * 2.0**-64)[:, None]
    reached = (shares[given] <= points).sum(axis=1)
    for place in np.flatnonzero((np.abs(shares[given] - points) <= _DOUBT).any(axis=1)):
        reached[place] = _exact_choice(matrix[given[place]], int(bits[place]), source)
    return np.asarray(reached)


def _exact_choice(row: Floats, bits: int, source: Source) -> int:
    """More bits until the interval that they leave lies within one state."""
    totals = list(accumulate(Fraction(float(entry)) for entry in row))
    drawn, width = Fraction(bits, 1 << 64), Fraction(1, 1 << 64)
    while True:
        reached = sum(total <= drawn * totals[-1] for total in totals)
        if (drawn + width) * totals[-1] <= totals[reached]:
            return reached
        width /= 1 << 64
        drawn += int(source.bits(1)[0]) * width
