"""The best schedule: one isotonic regression, and the best place to start from a bounded domain.

With R_t the product of the Lipschitz constants after t, payments u_t = a_t·R_t may not run ahead of the pushes s_t·R_t and
cost Σ u_t²/(ν_t R_t)². The best cumulative payment is the greatest convex minorant of the cumulative pushes over the
cumulative weights w_t = (ν_t R_t)²; its slopes are the isotonic regression of s_t/(ν_t² R_t) with these weights.

Nothing here has to be trusted: whatever comes out is a schedule, and `certify` prices it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

from lastiterate.kernel.certify import certify
from lastiterate.kernel.steps import Counts, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down
from lastiterate.progress import tracked
from lastiterate.runs.per_step import is_constant
from lastiterate.shift.schedule import LOG_RANGE, Schedule, chunk_starts, levelled, log_factors

PooledBlock = tuple[float, float, float, int]  # logarithms of pushes and weights at its end, of its factor; its length

_FEW = 40  # so few steps are pooled one by one: the call of scipy takes as long as forty of them
_HOPELESS = 1e100  # times the noise: its square is a float; no schedule makes a μ of that size worth anything


def best_schedule(steps: Steps) -> tuple[float, Schedule]:
    """The least certified μ over all schedules and starts, with the schedule that attains it."""
    if not np.isfinite(steps.lipschitz).all() or not steps.sensitivity.max() <= _HOPELESS * steps.noise.min():
        return _at_once(steps)
    first = _last_zero(steps)
    best = _at_once(steps) if _growing_alike(steps) else schedule_from(steps, first, 0.0)
    start = best_start(steps) if math.isfinite(steps.diameter) else 0
    if start > first:
        best = min(best, schedule_from(steps, start, steps.diameter), key=lambda pair: pair[0])
    return best


def _at_once(steps: Steps) -> tuple[float, Schedule]:
    """Pay every push where it comes: nothing is left that an unknown factor could enlarge, and nothing clever helps."""
    schedule = Schedule(0, np.ones(len(steps), np.intp), np.zeros(len(steps)))
    return _priced(steps, 0, np.full(len(steps), np.inf)), schedule


def schedule_from(steps: Steps, start: int, distance: float) -> tuple[float, Schedule]:
    """The best schedule from a given start, where the runs are `distance` apart."""
    lengths = _pooled_lengths(steps.part(start, len(steps)), distance)
    schedule, payments = levelled(steps, start, lengths, distance)
    return _priced(steps, start, payments), schedule


def _priced(steps: Steps, start: int, payments: Floats) -> float:
    return certify(steps, start, payments, along=lambda chunks: tracked(chunks, "certifying"))


def _last_zero(steps: Steps) -> int:
    """The last step with factor 0, which forgets everything before it; 0 if there is none."""
    zeros = np.flatnonzero(steps.lipschitz == 0)
    return int(zeros[-1]) if zeros.size else 0


def _pooled_lengths(steps: Steps, distance: float) -> Counts:
    """Lengths of the blocks of the isotonic regression, chunk by chunk, so that no product leaves the range of floats."""
    logs = log_factors(steps.lipschitz)
    entry = float(steps.lipschitz[0]) * distance
    stack: list[PooledBlock] = []
    for first, last in _chunks(logs, steps.noise):
        pushes = np.array(steps.sensitivity[first:last])
        pushes[0] += entry if first == 0 else 0.0
        if len(logs) <= _FEW:
            for block in _single_blocks(pushes, steps.noise[first:last], logs[first:last]):
                _append(stack, [block])
        else:
            _append(stack, _chunk_blocks(pushes, steps.noise[first:last], logs[first:last]))
    return np.array([length for *_, length in stack], np.intp)


def _growing_alike(steps: Steps) -> bool:
    """Equal steps that move iterates apart: every push is paid where it comes, and ten million blocks need not be found."""
    alike = all(is_constant(values) for values in (steps.sensitivity, steps.noise, steps.lipschitz))
    return alike and float(steps.lipschitz[0]) > 1


def _single_blocks(pushes: Floats, noise: Floats, logs: Floats) -> list[PooledBlock]:
    with np.errstate(divide="ignore"):
        rows = (np.log(pushes), 2 * np.log(noise), logs, np.ones(len(logs), np.intp))
    return list(zip(*(row.tolist() for row in rows), strict=True))


def _chunks(logs: Floats, noise: Floats) -> Iterator[tuple[int, int]]:
    if len(logs) <= _FEW:
        return iter([(0, len(logs))])
    spread = math.log(float(noise.max()) / float(noise.min()))
    return pairwise([*chunk_starts(logs, max(LOG_RANGE - spread, 1.0)).tolist(), len(logs)])


def _chunk_blocks(pushes: Floats, noise: Floats, logs: Floats) -> list[PooledBlock]:
    after = np.append(np.cumsum(logs[:0:-1])[::-1], 0.0)  # log R, to the end of the chunk
    top = float(after.max())
    products = np.exp(after - top)
    scale = float(noise.max())
    weights = np.square(noise / scale * products)
    fit = isotonic_regression(pushes / (np.square(noise / scale) * products), weights=weights)
    starts, ends = fit.blocks[:-1], fit.blocks[1:] - 1
    to_end = top - after[ends]
    with np.errstate(divide="ignore"):
        log_pushes = np.log(fit.x[ends]) + np.log(fit.weights) + to_end
    log_weights = np.log(fit.weights) + 2 * (to_end + math.log(scale))
    factors = after[starts] + logs[starts] - after[ends]
    rows = (log_pushes, log_weights, factors, ends - starts + 1)
    return list(zip(*(row.tolist() for row in rows), strict=True))


def _append(stack: list[PooledBlock], blocks: list[PooledBlock]) -> None:
    """Blocks of one chunk are in order among themselves: only where they meet the stack is there anything to merge."""
    for index, block in enumerate(blocks):
        merged = block
        while stack and stack[-1][0] - stack[-1][1] > merged[0] - merged[1] + merged[2]:
            merged = _merged(stack.pop(), merged)
        stack.append(merged)
        if merged is block:
            stack.extend(blocks[index + 1 :])
            return


def _merged(one: PooledBlock, two: PooledBlock) -> PooledBlock:
    pushes = _log_sum(one[0] + two[2], two[0])
    return pushes, _log_sum(one[1] + 2 * two[2], two[1]), one[2] + two[2], one[3] + two[3]


def _log_sum(a: float, b: float) -> float:
    high, low = (a, b) if a >= b else (b, a)
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high


# The best step to start from when both runs lie in a set of known diameter.
#
# Measure from the end: x_t and y_t are the weights and pushes after step t. A start at τ is the point (x_τ, y_τ + D·R_τ);
# its
# best path goes in a straight line, with the least slope to any later point, to a vertex j, and on along the path that
# starts
# there with distance 0, of cost V(j). The slopes to the vertices of a hull are searched by bisection.


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
    """Return for every start the least slope to an earlier entry of the same chunk, and which entry that is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (heights[:, None] - y[None, :]) / (x[:, None] - x[None, :])
    slopes[np.triu_indices(len(x))] = np.inf
    touched = np.argmin(slopes, axis=1)
    return slopes[np.arange(len(x)), touched], touched
