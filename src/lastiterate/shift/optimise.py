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
from lastiterate.progress import tracked
from lastiterate.runs.per_step import is_constant
from lastiterate.shift.schedule import LOG_RANGE, Schedule, chunk_starts, levelled, log_factors
from lastiterate.shift.start import best_start

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
    """A factor 0 forgets everything before it."""
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
