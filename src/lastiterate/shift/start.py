"""The best step to start from when both runs lie in a set of known diameter.

Measure from the end: x_t and y_t are the weights and pushes after step t. A start at τ is the point (x_τ, y_τ + D·R_τ); its
best path goes in a straight line, with the least slope to any later point, to a vertex j, and on along the path that starts
there with distance 0, of cost V(j). The slopes to the vertices of a hull are searched by bisection.
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.kernel.steps import Counts, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down
from lastiterate.shift.schedule import LOG_RANGE

# Starts that are looked at together: within a chunk all pairs are compared, over chunks a loop runs in Python.
_CHUNK = 128


def best_start(steps: Steps) -> int:
    """The start τ ≥ 1 with the least cost when the distance there is the diameter; 0 if there is none.

    Starts from which the product of the Lipschitz constants exceeds e^±300 are left out: a shrinking one is worth no more
    than its neighbours by then, and a growing one is not tried.
    """
    weights, pushes, entries, first = _from_the_end(steps)
    to_go = _cheapest(weights, pushes, entries) if first < len(steps) - 1 else 0
    return len(steps) - to_go if to_go else 0


def _from_the_end(steps: Steps) -> tuple[Floats, Floats, Floats, int]:
    """(x, y, D·R) at the end, after the last step but one, …: entry k is the start with k steps to go."""
    backwards = steps.lipschitz[:0:-1]
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(backwards))
    outside = np.flatnonzero(~(np.abs(logs) <= LOG_RANGE))
    count = int(outside[0]) if outside.size else len(logs)
    products = np.exp(np.append(0.0, logs[:count]))
    scale = float(steps.noise.max())
    kept = slice(len(steps) - 1 - count, len(steps))
    noise, sensitivity = (steps.noise[kept] / scale)[::-1], (steps.sensitivity[kept] / scale)[::-1]
    weights, pushes = np.cumsum(np.square(noise * products)), np.cumsum(sensitivity * products)
    # The last entry would start before the first kept step: there is no product for it.
    entries = steps.diameter / scale * products[1:]
    return np.append(0.0, weights[:count]), np.append(0.0, pushes[:count]), np.append(np.nan, entries), kept.start


def _cheapest(x: Floats, y: Floats, entries: Floats) -> int:
    """How many steps are to go from the best start."""
    hull = _Hull(x, y)
    best, steps_to_go = math.inf, 0
    # One block from the start to the end: no schedule costs less.
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.square(y + entries) / x
    for first in range(1, len(x), _CHUNK):
        last = min(first + _CHUNK, len(x))
        if np.nanmin(least[first:last]) < best:
            costs = hull.costs(first, last, y[first:last] + entries[first:last])
            index = int(np.argmin(costs))
            if costs[index] < best:
                best, steps_to_go = float(costs[index]), first + index
        hull.extend(first, last)
        # Starting earlier, even with distance 0, costs at least what starting here with distance 0 costs.
        if hull.cost[last - 1] >= down(best, operations=500):
            break
    return steps_to_go


class _Hull:
    """The concave majorant of the points (x, y) up to some index, as a stack, and V at every point so far."""

    def __init__(self, x: Floats, y: Floats) -> None:
        self.x, self.y = x, y
        self.cost = np.zeros(len(x))
        self.vertices = np.zeros(len(x), np.intp)
        self.slopes = np.full(len(x), np.inf)  # of the edge that ends at a vertex, kept beside it
        self.top = 0

    def costs(self, first: int, last: int, heights: Floats) -> Floats:
        """The cost of starting at the points (x, heights) with index first to last."""
        vertices = self.vertices[: self.top + 1]
        slopes, touched = _least_in_chunk(self.x[first:last], self.y[first:last], heights)
        far = vertices[self._touched(self.x[first:last], heights)]
        with np.errstate(divide="ignore", invalid="ignore"):
            far_slopes = (heights - self.y[far]) / (self.x[first:last] - self.x[far])
        in_chunk = np.where(far_slopes <= slopes, -1, touched)
        if (in_chunk >= 0).any():
            self.extend(first, last)  # V is needed inside the chunk; extending twice changes nothing
        vertex = np.where(in_chunk < 0, far, first + touched)
        slope = np.minimum(slopes, far_slopes)
        costs = slope**2 * (self.x[first:last] - self.x[vertex]) + self.cost[vertex]
        return np.where(np.isnan(costs), np.inf, costs)

    def _touched(self, x: Floats, heights: Floats) -> Counts:
        """The last vertex whose own edge is steeper than the line to it."""
        low, high = np.zeros(len(x), np.intp), np.full(len(x), self.top)
        while (low < high).any():
            middle = (low + high + 1) // 2
            at = self.vertices[middle]
            steep = heights - self.y[at] <= self.slopes[middle] * (x - self.x[at])
            low, high = np.where(steep, middle, low), np.where(steep, high, middle - 1)
        return low

    def extend(self, first: int, last: int) -> None:
        """Add the points with index first to last, unless they are there already."""
        if self.vertices[self.top] >= last - 1:
            return
        xs, ys = self.x[first:last].tolist(), self.y[first:last].tolist()
        for index, x, y in zip(range(first, last), xs, ys, strict=True):
            self._push(index, x, y)

    def _push(self, index: int, x: float, y: float) -> None:
        vertices, slopes, top = self.vertices, self.slopes, self.top
        at = vertices[top]
        if x <= self.x[at]:  # a weight lost to rounding: nothing to gain from this start
            self.cost[index] = self.cost[at]
            return
        while (slope := (y - self.y[at]) / (x - self.x[at])) > slopes[top]:
            top -= 1
            at = vertices[top]
        self.top = top + 1
        vertices[self.top], slopes[self.top] = index, slope
        self.cost[index] = slope**2 * (x - self.x[at]) + self.cost[at]


def _least_in_chunk(x: Floats, y: Floats, heights: Floats) -> tuple[Floats, Counts]:
    """For every start the least slope to an earlier entry of the same chunk, and which that is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (heights[:, None] - y[None, :]) / (x[:, None] - x[None, :])
    slopes[np.triu_indices(len(x))] = np.inf
    touched = np.argmin(slopes, axis=1)
    return slopes[np.arange(len(x)), touched], touched
