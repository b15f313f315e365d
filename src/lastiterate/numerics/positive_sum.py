"""Sums of independent positive variables in convex order, by direct convolution: every mass keeps its leading digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.octaves import Inside, Law, Octaves, Side, gridded, lowered
from lastiterate.numerics.rounding import ULP, up

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
    """The same with this spacing."""
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
