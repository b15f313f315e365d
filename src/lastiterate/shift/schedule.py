"""Schedules in short form, and the payments that they stand for; whatever they are, the kernel prices them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lastiterate.kernel.steps import Counts, Steps
from lastiterate.numerics.arrays import Floats

# What is meant to be paid in full must be, if what rounding leaves could grow; costs a part 1e-12 of μ.
_GROWING = 1 + 1e-12
LOG_RANGE = 300.0  # of products of factors within a chunk: their squares stay within the range of floats
# Steps: a loop in Python over shorter ones is slower than a copy; longer ones save the memory of a copy.
_SHORT_PART = 1000
# Of the largest payment of a block: far below an ulp of all that it pays, so that to wait costs nothing.
_NEGLIGIBLE = 1e-25


@dataclass(frozen=True, eq=False)
class Schedule:
    """A proof in short form: skip `start` steps, then blocks of steps that end with nothing left to pay.

    Inside a block the payments are noise²·(product of the Lipschitz constants that follow), scaled to the block's level.
    """

    start: int
    lengths: Counts
    levels: Floats


def payments(steps: Steps, schedule: Schedule) -> Floats:
    """One payment for each step after the start; infinite, that is everything left, at the end of each block."""
    tail = steps.part(schedule.start, len(steps))
    with np.errstate(invalid="ignore"):  # a factor 0 inside a block: NaN, which `certify` refuses
        return _paid_at(schedule, tail, relative_products(tail.lipschitz, schedule.lengths))


def blocks(steps: Steps, schedule: Schedule) -> list[list[float]]:
    """The payments as the kernel takes them: [length, wait, first payment, how often] for each block."""
    due = payments(steps, schedule)
    ends = np.cumsum(schedule.lengths)
    found: list[list[float]] = []
    for length, end in zip(schedule.lengths.tolist(), ends.tolist(), strict=True):
        paid = due[end - length : end - 1]
        wait = int(np.argmax(paid > _NEGLIGIBLE * paid.max())) if length > 1 and paid.any() else length - 1
        block = [length, wait, float(paid[wait]) if wait < length - 1 else 0.0]
        if found and found[-1][:3] == block:
            found[-1][3] += 1
        else:
            found.append([*block, 1])
    return found


def levelled(steps: Steps, start: int, lengths: Counts, distance: float) -> tuple[Schedule, Floats]:
    """The schedule with these blocks, from `distance` on, in which every block pays what it owes; and its payments."""
    tail = steps.part(start, len(steps))
    factors = relative_products(tail.lipschitz, lengths)
    starts = np.cumsum(lengths) - lengths
    pushes = tail.sensitivity * factors
    pushes[0] += tail.lipschitz[0] * distance * factors[0]
    owed = np.add.reduceat(pushes, starts)
    weights = np.multiply(tail.noise, factors, out=pushes)
    levels = owed / np.add.reduceat(np.square(weights, out=weights), starts)
    schedule = Schedule(start, lengths, levels)
    return schedule, _paid_at(schedule, tail, factors)


def _paid_at(schedule: Schedule, tail: Steps, factors: Floats) -> Floats:
    ends = np.cumsum(schedule.lengths) - 1
    starts = ends - schedule.lengths + 1
    levels = schedule.levels * (_GROWING if tail.lipschitz.max() > 1 else 1.0)
    due = np.square(tail.noise)
    due *= factors
    _for_each_part(np.multiply, levels, due, starts)
    due[ends] = np.inf
    return due


def relative_products(lipschitz: Floats, lengths: Counts) -> Floats:
    """Π of the Lipschitz constants after a step up to the end of its block, divided by the largest such in the block.

    Sums of logarithms are kept apart, small ones inside a chunk and the long one over chunks: over 10⁶ steps the latter may
    grow to 10⁵, and its rounding must not reach the products.
    """
    if lengths.size == lipschitz.size:
        return np.ones(lipschitz.size)
    inside = log_factors(lipschitz)
    chunks = chunk_starts(inside, LOG_RANGE)
    before = np.zeros(len(chunks), np.longdouble)
    np.cumsum(np.add.reduceat(inside, chunks)[:-1], out=before[1:])
    for first, last in pairwise([*chunks.tolist(), len(inside)]):
        np.cumsum(inside[first:last], out=inside[first:last])
    blocks = np.cumsum(lengths) - lengths
    parts = np.union1d(chunks, blocks)
    base = before[np.searchsorted(chunks, parts, side="right") - 1]
    lowest = np.minimum.reduceat(base + np.minimum.reduceat(inside, parts), np.searchsorted(parts, blocks))
    ceilings = np.asarray(lowest[np.searchsorted(blocks, parts, side="right") - 1] - base, float)
    _for_each_part(np.subtract, ceilings, inside, parts)
    return np.exp(inside, out=inside)


def _for_each_part(function: np.ufunc, values: Floats, entries: Floats, starts: Counts) -> None:
    """entries ← function(value of the part, entries), in place; without a copy of the whole where parts are long."""
    ends = np.append(starts[1:], len(entries))
    if len(values) * _SHORT_PART > len(entries):
        function(np.repeat(values, ends - starts), entries, out=entries)
        return
    for value, first, last in zip(values.tolist(), starts.tolist(), ends.tolist(), strict=True):
        function(value, entries[first:last], out=entries[first:last])


def log_factors(lipschitz: Floats) -> Floats:
    """The logarithms, but for the first, which is not used: a factor 0 belongs there."""
    logs = np.zeros_like(lipschitz)
    with np.errstate(divide="ignore"):
        np.log(lipschitz[1:], out=logs[1:])
    return logs


def chunk_starts(logs: Floats, reach: float) -> Counts:
    """Return where to cut steps into chunks, so that products of factors within a chunk stay within e^±reach."""
    travelled = np.abs(logs)
    np.cumsum(travelled, out=travelled)
    return np.append(0, np.flatnonzero(np.diff(travelled // reach)) + 1)
