"""Many numbers as a few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

_SMALLEST_LEVEL = 1e-12  # of the largest: lower ones move a sum by less than is seen, and levels would be farther apart

_FLAT = 0.06  # power of a weight; more is sharper where δ is large, less where it is small


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


def few_weighted(values: Floats, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """At most so many different values with their weights, increasing: each is rounded up to the last of its group.

    What a mean loses to rounding is least with the sum of √(weight·gap to the next) alike in all groups; in tails rounding
    is seen, too, so that weights count for less. What is 0 stays 0.
    """
    if len(values) <= most:
        return values, weights
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    reach = np.append(0.0, np.cumsum(np.sqrt(np.diff(values)) * weights[:-1] ** _FLAT))
    groups = np.where(values > 0, np.floor(reach * ((most - 2) / max(float(reach[-1]), 1e-300))), -1.0)
    ends = np.append(np.flatnonzero(np.diff(groups)), len(values) - 1)
    return values[ends], up(np.add.reduceat(weights, np.append(0, ends[:-1] + 1)))


def spread_out(values: Floats, most: int) -> tuple[Floats, Floats]:
    """At most so many levels and how much of the values is on each, the sum of all values kept: each is split between two.

    Then Σ f(value) ≤ Σ amount·f(level) for every convex f, and larger by little: chords lie above f, by the square of how
    far the levels are apart. Values far below the largest are split between 0 and a small level.
    """
    if values.size <= most or not np.isfinite(values).all() or not values.any():
        return values, np.ones(values.size)
    top = float(values.max())
    levels = np.append(0.0, np.geomspace(_SMALLEST_LEVEL * top, up(top), most - 1))
    above = np.clip(np.searchsorted(levels, values), 1, most - 1)
    share = (values - levels[above - 1]) / (levels[above] - levels[above - 1])
    below = np.maximum(1 - share, 0.0)
    on_level = np.asarray(np.bincount(above, up(share), most) + np.bincount(above - 1, below, most), float)
    used = on_level > 0
    return levels[used], up(on_level[used])
