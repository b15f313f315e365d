"""Many numbers as a few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up


def few_levels(values: Floats, most: int, smallest: float) -> tuple[Floats, NDArray[np.intp]]:
    """At most so many different levels, with how many of the values were rounded up to each.

    Values below `smallest` times the largest count as that.
    """
    levels, counts = np.unique(values, return_counts=True)
    if len(levels) <= most:
        return levels, counts
    grid = np.geomspace(max(levels[0], smallest * levels[-1]), up(levels[-1]), most)
    places, counts = np.unique(np.searchsorted(grid, values), return_counts=True)
    return grid[places], counts
