"""Sums of independent positive variables in convex order, by direct convolution: every mass keeps its leading digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import ULP, down, up

# The first octave is so many times as long as from where the law begins to where it has `_RISE` times what is left out
# below: a normal law has its bulk there, a skewed one is followed from its beginning on.
_FIRST_OCTAVE, _RISE = 16.0, 1e5
_LOWER_CUT = 1e3  # times what is charged from above is left out from below, where a law rises too steeply to be lowered
_SMALLEST = 1e-280  # what underflows is charged with this


def summed(one: Law, copies: int, lost: float) -> Law:
    """The law of a sum of so many copies, each with mean 1; `lost`: what may be charged beside what `one` charges."""
    # At most two sums a level, and each charges what is too small and what is too large.
    return _Doubled(one, copies, lost / (2 * copies.bit_length()))(copies, False)[0]


@dataclass(frozen=True, eq=False)
class _Doubled:
    one: Law
    copies: int
    allowed: float

    def __call__(self, count: int, both: bool) -> tuple[Law, Law]:
        """The sum of `count` copies, and of one more if both are asked for; else the second says nothing.

        Only sums of about as many are added, so that one grid is fine enough for both.
        """
        if count == 1:
            return self.one, self._added(self.one, self.one, 2) if both else self.one
        half, odd = divmod(count, 2)
        fewer, more = self(half, both or odd == 1)
        first = self._added(fewer, more if odd else fewer, count)
        return first, self._added(more if odd else fewer, more, count + 1) if both else first

    def _added(self, first: Law, second: Law, count: int) -> Law:
        """The sum of two, of `count` copies, on a grid of its own."""
        spacing = max(first.grid.spacing, second.grid.spacing)
        values, masses = _convolved(
            _coarsened(first, spacing), second if second is first else _coarsened(second, spacing)
        )
        order = np.argsort(values, kind="stable")
        values, masses, times = values[order], masses[order], self.copies / count
        cut = self.allowed / times * (1 if first.above else _LOWER_CUT)
        so_far = np.cumsum(masses)
        places = (int(np.searchsorted(so_far, level)) for level in (cut, _RISE * cut))
        begins, rises = (float(values[min(place, values.size - 1)]) for place in places)
        in_mean = np.cumsum((masses * (values / count + times))[::-1])
        ends = float(values[max(values.size - 1 - int(np.searchsorted(in_mean, self.allowed)), 0)])
        grid = octaves(begins, rises, ends, spacing, first.grid.cells)
        if not first.above:
            kept = (values >= begins) & (values <= ends)
            return Law(grid, gridded(grid, values[kept], masses[kept], first.side), first.side)
        on_grid = gridded(grid, np.clip(values, grid.origin, ends), masses, first.side)
        more = up(self.allowed) + _SMALLEST
        return Law(grid, on_grid, first.side, max(first.low, second.low) + more, max(first.high, second.high) + more)


def _coarsened(law: Law, spacing: float) -> Law:
    """Return the law on a lattice of this spacing."""
    if law.grid.spacing == spacing:
        return law
    origin = math.floor(law.grid.origin / spacing) * spacing
    bands = math.frexp((float(law.grid.points[-1]) - origin) / (spacing * law.grid.cells))[1]
    grid = Octaves(origin, spacing, law.grid.cells, max(0, bands))
    return replace(law, grid=grid, masses=gridded(grid, law.grid.points, law.masses, law.side))


def octaves(begins: float, rises: float, ends: float, spacing: float, cells: int) -> Octaves:
    """A grid for a law between these, with at least this spacing."""
    wanted = 2.0 ** math.ceil(math.log2(max(_FIRST_OCTAVE * (rises - begins) / cells, 1e-290)))
    spacing = max(spacing, wanted)
    origin = math.floor(begins / spacing) * spacing
    return Octaves(origin, spacing, cells, max(0, math.frexp((ends - origin) / (spacing * cells))[1]))


def _convolved(first: Law, second: Law) -> tuple[Floats, Floats]:
    """Values of the sum, not sorted, with their masses: octave by octave, the longer of the two in it, the other below."""
    origin, spacing, cells = first.grid.origin + second.grid.origin, first.grid.spacing, first.grid.cells
    pieces = [(0, 0, _product(first.masses[:cells], second.masses[:cells]))]
    for band, (mine, theirs) in enumerate(_octaves_of_both(first, second), 1):
        if second is first:
            pieces.append((band, cells // 2, _product(mine.own, mine.own_and(2 * mine.below))))
        else:
            pieces.append((band, cells // 2, _product(mine.own, theirs.own_and(theirs.below))))
            pieces.append((band, cells // 2, _product(theirs.own, mine.below)))
    values = [origin + math.ldexp(spacing, band) * (start + np.arange(m.size)) for band, start, m in pieces]
    rounding = (1 if first.above else -1) * 2 * cells * ULP
    masses = np.concatenate([m for _, _, m in pieces]) * (1 + rounding)
    held = masses > 0
    return np.concatenate(values)[held], masses[held]


@dataclass(frozen=True, eq=False)
class _Octave:
    """The masses of an octave, and those of all below it, put on its points."""

    own: Floats
    below: Floats

    def own_and(self, below: Floats) -> Floats:
        """Both, from the origin on."""
        half = below.size - 1
        whole = np.zeros(half + max(self.own.size, 1))
        whole[: half + 1] = below
        whole[half : half + self.own.size] += self.own
        return whole


def _octaves_of_both(first: Law, second: Law) -> Iterator[tuple[_Octave, _Octave]]:
    most = max(first.grid.bands, second.grid.bands) + 1
    return zip(_octaves_of(first, most), _octaves_of(second, most), strict=True)


def _octaves_of(law: Law, most: int) -> Iterator[_Octave]:
    """From the second octave on, with the last point of the grid in one more."""
    cells, half = law.grid.cells, law.grid.cells // 2
    below = law.masses[:cells]
    for band in range(1, most + 1):
        below = _coarser(below, law.side)
        start = half + band * half
        own = law.masses[start : start + half]
        yield _Octave(own, below)
        below = np.append(below, np.zeros(max(cells - below.size, 0)))
        below[half : half + own.size] += own


def _coarser(masses: Floats, side: Side) -> Floats:
    """An even number of masses on every other point: what is between two is split."""
    even, odd = masses[::2], masses[1::2]
    at_dots = np.append(even, 0.0)
    if side is Side.ABOVE:
        return up(at_dots + 0.5 * (np.append(odd, 0.0) + np.append(0.0, odd)), operations=4)
    return lowered(np.ones(odd.size), at_dots, Inside(0.5 * odd, 0.5 * odd, 0.25 * odd))


def _product(first: Floats, second: Floats) -> Floats:
    """The convolution; zeros at the ends of both cost nothing."""
    (a, low), (b, also_low) = _trimmed(first), _trimmed(second)
    if not a.size or not b.size:
        return np.zeros(0)
    return np.append(np.zeros(low + also_low), np.convolve(a, b))


def _trimmed(masses: Floats) -> tuple[Floats, int]:
    held = np.flatnonzero(masses)
    return (masses[held[0] : held[-1] + 1], int(held[0])) if held.size else (masses[:0], 0)


# Laws of positive variables on grids that are fine near their lower end and coarser octave by octave above.
#
# A law is put on a grid in convex order. Above: what lies between two points is split between them so that the mean stays
# (connecting the dots of y ↦ E(X − y)₊). Below: the dots are lowered first, so that the chords lie below that function.
# Convex order is kept by sums and by products of independent positive variables. Spacings are powers of two and origins
# multiples of them, so that points, their sums and the shares of a split are exact.


Chosen = NDArray[np.bool_]

_SPLIT = 16  # operations in which a mass is split and added up with others, besides those of adding many
_ROUNDED = 1e-11  # of a mass: far more than rounding takes in lowering dots, and far less than lowering takes
_MOST_ROUNDS = 40  # of making lowered dots convex again: a limit of effort
_ENOUGH = 1.001  # times what the next dot is lowered by, so that rounding cannot turn it
_LEFT_OUT = 1e-13  # of a law, from below, at an end that is too steep


class Side(Enum):
    """For which functions f ≥ 0 the mean of f under a law on a grid is at least, or at most, what it is meant for."""

    ABOVE = auto()  # at least, f convex; but for what is charged
    BELOW = auto()  # at most, f convex and not decreasing


@dataclass(frozen=True)
class Octaves:
    """Points origin + spacing·i for i < cells, then with twice the spacing for as long again, and so on, `bands` times."""

    origin: float
    spacing: float
    cells: int
    bands: int

    @property
    def size(self) -> int:
        return self.cells + self.bands * (self.cells // 2) + 1

    @cached_property
    def widths(self) -> Floats:
        """From each point to the next."""
        band = np.arange(self.bands + 1)
        counts = np.where(band == 0, self.cells, self.cells // 2)
        return np.repeat(np.ldexp(self.spacing, band), counts)

    @cached_property
    def points(self) -> Floats:
        return np.append(self.origin, self.origin + np.cumsum(self.widths))

    def located(self, values: Floats) -> tuple[NDArray[np.intp], Floats]:
        """For each value, the number of the point below it and how far it is on the way to the next; clamped to the ends."""
        steps = np.clip((values - self.origin) / self.spacing, 0.0, None)
        band = np.where(steps < self.cells, 0, np.frexp(steps / self.cells)[1])
        steps = np.ldexp(steps, -band)
        whole = np.floor(steps)
        place = whole.astype(np.intp) + band.astype(np.intp) * (self.cells // 2)
        inside = place < self.size - 1
        return np.where(inside, place, self.size - 2), np.where(inside, steps - whole, 1.0)


@dataclass(frozen=True, eq=False)
class Law:
    """Masses at the points of a grid, all at least, or all at most, those of a law on that side of the one it is meant for.

    From above, what did not fit was moved to the ends of the grid and is charged: `low` is how likely a value was too small,
    `high` how much of the mean was too large. From below it is left out.
    """

    grid: Octaves
    masses: Floats
    side: Side
    low: float = 0.0
    high: float = 0.0

    @property
    def above(self) -> bool:
        return self.side is Side.ABOVE


def gridded(grid: Octaves, values: Floats, masses: Floats, side: Side) -> Floats:
    """The masses on the grid, from above or from below in convex order; values lie within the grid."""
    place, share = grid.located(values)
    inside = share > 0
    at_dots = _counted(place, np.where(inside, 0.0, masses), grid.size)
    masses = np.where(inside, masses, 0.0)
    higher = _counted(place, masses * share, grid.size - 1)
    lower = _counted(place, masses * (1 - share), grid.size - 1)
    if side is Side.ABOVE:
        many = 2 * int(np.bincount(place).max(initial=1))
        return up(at_dots + np.append(lower, 0.0) + np.append(0.0, higher), operations=_SPLIT + many)
    tents = _counted(place, masses * share * (1 - share), grid.size - 1)
    return lowered(grid.widths, at_dots, Inside(lower, higher, tents))


def _counted(place: NDArray[np.intp], masses: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(place, masses, size), float)


@dataclass(frozen=True, eq=False)
class Inside:
    """For each cell, what the law inside it gives to the dot below and above, and by how much the chord is too high.

    The last is at least that, in units of the width of the cell.
    """

    lower: Floats
    higher: Floats
    tents: Floats


def lowered(widths: Floats, at_dots: Floats, inside: Inside) -> Floats:
    """The masses at the dots after these were lowered, so that the chords lie below the function.

    Both dots of a cell are lowered by what its chord is too high. Where the law ends, the inner dot is lowered until nothing
    is left at the end: then the means agree, and the chord lies below the line from the end. Ends that are too steep for
    that are left out, as long as they hold little; else all values are rounded down.
    """
    held = np.flatnonzero(at_dots + np.append(inside.lower, 0.0) + np.append(0.0, inside.higher))
    if not held.size:
        return np.zeros_like(at_dots)
    tents, step = inside.tents * widths, 0
    in_cells = at_dots[:-1] + inside.lower + inside.higher
    before, after = np.cumsum(in_cells), np.cumsum(in_cells[::-1])[::-1]
    little = _LEFT_OUT * before[-1]
    begins = first = _end(
        at_dots[:-1] + inside.lower, widths, np.append(tents[1:], 0.0), before <= little, int(held[0]), 1
    )
    steep = np.append(0.0, tents[:-1])
    last = 1 + _end(at_dots[1:] + inside.higher, widths, steep, after <= little, int(held[-1]) - 1, -1)
    while last - first >= 4 and (first == begins or before[first] <= little):
        found = _lowered_between(widths, at_dots, inside, first, last)
        if found is not None:
            return found
        step += 1
        first += 2**step
    return _rounded(at_dots, inside)


def _end(at_end: Floats, widths: Floats, next_tents: Floats, little: Chosen, place: int, step: int) -> int:
    """The first cell from `place` on whose outer dot has enough to be emptied, as long as what is left out is little."""
    while 0 <= place < at_end.size and little[place] and at_end[place] * widths[place] < _ENOUGH * next_tents[place]:
        place += step
    return min(max(place, 0), at_end.size - 1)


def _lowered_between(widths: Floats, at_dots: Floats, inside: Inside, first: int, last: int) -> Floats | None:
    part = Inside(*(values[first:last] for values in (inside.lower, inside.higher, inside.tents)))
    kept = slice(first, last + 1)
    found = _lowered_inside(widths[first:last], at_dots[kept], part)
    inner = None if found is None else _convex(widths[first:last], *found)
    if inner is None:
        return None
    masses = np.zeros_like(at_dots)
    masses[kept] = inner
    return masses


def _rounded(at_dots: Floats, inside: Inside) -> Floats:
    """All that is inside a cell to the dot below, where it counts less."""
    return down(at_dots + np.append(inside.lower + inside.higher, 0.0), by=4 * _ROUNDED)


def _lowered_inside(widths: Floats, at_dots: Floats, inside: Inside) -> tuple[Floats, Floats] | None:
    """Masses and their doubts; None where an end has not enough to be emptied."""
    split = at_dots + np.append(inside.lower, 0.0) + np.append(0.0, inside.higher)
    tents = inside.tents * widths
    lower = np.maximum(np.append(tents, 0.0), np.append(0.0, tents)) * (1 + _ROUNDED)
    lower[0] = lower[-1] = 0.0
    enough = lower[1] <= split[0] * widths[0] and lower[-2] <= split[-1] * widths[-1]
    if not enough:
        return None
    lower[1], lower[-2] = split[0] * widths[0], split[-1] * widths[-1]
    turns = np.diff(np.diff(lower) / widths, prepend=0.0, append=0.0)
    around = np.append(lower[1:], 0.0) + lower + np.append(0.0, lower[:-1])
    doubt = 4 * _ROUNDED * (split + around / np.minimum(np.append(widths, np.inf), np.append(np.inf, widths)))
    masses = split - turns
    masses[0] = masses[-1] = doubt[0] = doubt[-1] = 0.0
    return masses, doubt


def _convex(widths: Floats, masses: Floats, doubt: Floats) -> Floats | None:
    """Dots are lowered further until no mass is negative; None where that does not come to an end."""
    masses = masses - doubt
    inner = 1 / (1 / widths[1:] + 1 / widths[:-1])
    for _ in range(_MOST_ROUNDS):
        if masses.min() >= 0:
            return down(masses, operations=_SPLIT)
        lower = np.minimum(masses[1:-1], 0.0) * inner
        masses[1:-1] -= lower / inner
        masses[:-2] += lower / widths[:-1]
        masses[2:] += lower / widths[1:]
        if masses[0] < 0 or masses[-1] < 0:
            return None
        masses[np.abs(masses) < _ROUNDED * doubt] = 0.0
    return None
