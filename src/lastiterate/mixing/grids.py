"""Grids of ε for profile recursions: a coarse one first, narrowed until the profile fills it.

Whatever the grid, a profile on it is valid: where it ends is a matter of tightness.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

COARSE = 40  # cells: a round takes the square of it, and a coarse grid only finds where the fine one has to end
SMALLEST = 1e-17  # profiles are followed down to here, below any δ that is asked for; a longer grid would be coarser


def even(largest: float, cells: int) -> Floats:
    return largest * np.arange(cells + 1) / cells


def chords(epsilons: Floats, known_epsilons: Floats, deltas: Floats) -> Floats:
    """Between known points of a profile, the chord in e^ε, in which it is convex; beyond the last, what it is there."""
    return up(np.interp(np.exp(epsilons), np.exp(known_epsilons), deltas))


def narrowed(reach: float, filled: int, settle: Callable[[Floats, Floats], Floats]) -> tuple[Floats, Floats]:
    """A coarse grid that ends where the profile has fallen to its smallest, and not long before; and that profile.

    `settle` makes of a grid and of a valid profile on it a better one. If the profile is not yet negligible after `filled`
    cells, the grid is fine enough.
    """
    grid = even(reach, COARSE)
    known = np.ones_like(grid)
    while True:
        known = settle(grid, known)
        small = np.flatnonzero(known <= SMALLEST)
        if not small.size or small[0] > filled or grid[-1] < 1e-9:
            return grid, known
        narrower = even(float(grid[max(small[0], 1)]) * 1.02, COARSE)
        grid, known = narrower, chords(narrower, grid, known)
