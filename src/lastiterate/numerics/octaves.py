"""Laws of positive variables on grids that are fine near their lower end and coarser octave by octave above.

A law is put on a grid in convex order. Above: what lies between two points is split between them so that the mean stays
(connecting the dots of y ↦ E(X − y)₊). Below: the dots are lowered first, so that the chords lie below that function.
Convex order is kept by sums and by products of independent positive variables. Spacings are powers of two and origins
multiples of them, so that points, their sums and the shares of a split are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down, up

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
    """Of each cell: what the law inside it gives to the dot below and above, and by how much the chord is too high.

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
