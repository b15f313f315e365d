"""Payments from a schedule, and the best level for a block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lastiterate.kernel.steps import Counts, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import ULP, up

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
    """Where to cut, so that products of factors within a chunk stay within e^±reach."""
    travelled = np.abs(logs)
    np.cumsum(travelled, out=travelled)
    return np.append(0, np.flatnonzero(np.diff(travelled // reach)) + 1)


# Schedules that are one block, where that is the best or known to be feasible: formulas in place of a search. Trusted.
#
# A block pays every step in proportion to its noise and to what follows it, and costs S²/U: S the pushes and the distance
# that it starts from, carried to its end, U the variances, carried likewise. It is feasible if no earlier end has a
# smaller
# S/U, carried as far: so where pushes fall over what they weigh (docs/proofs.md).


_AT_FIRST = (
    200  # switches, from either end: between two of them the best is missed by little, and is looked for once more
)
_MORE = 64
_MOST_STEPS = 100_000  # of a block that starts from a diameter, gone through one by one; beyond, so many on a ladder
_LARGEST_LOG = 300.0  # e^300 and its square are floats


def switched(distances: Floats, drift: float, retain: float, factor: float, noise: float, steps: int) -> Floats:
    """μ from each of these distances, on the same data: some steps by drift and retain ≤ 1, the others by their factor.

    Pushes of the first steps fall over what they weigh, the others push nothing: one block, whatever the switch.
    """
    ends = np.geomspace(1, steps, _AT_FIRST)
    switches = np.unique(np.concatenate([[0], ends, steps - ends, steps * np.arange(9) // 8]).astype(np.intp))
    switches = switches if math.isfinite(drift) else switches[:1]
    best = np.full_like(distances, np.inf)
    for _ in range(3):
        costs = _of_switches(distances[:, None], drift, retain, factor, switches, steps)
        best = np.minimum(best, costs.min(axis=1))
        places = costs.argmin(axis=1)
        low, high = switches[np.maximum(places - 1, 0)], switches[np.minimum(places + 1, len(switches) - 1)]
        if (high - low <= 2).all() or len(switches) == 1:
            break
        switches = np.unique(np.linspace(low.min(), high.max(), _MORE * 4).astype(np.intp))
    return up(best / noise)


def _of_switches(
    distances: Floats, drift: float, retain: float, factor: float, switches: np.ndarray, steps: int
) -> Floats:
    carried = switches * math.log(retain) if retain > 0 else np.where(switches > 0, -np.inf, 0.0)
    pushed = np.where(switches > 0, drift * _powers(retain, switches), 0.0) if math.isfinite(drift) else 0.0
    weight = _powers(retain**2, switches) + _inverse_squares(factor, steps - switches)
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = (distances * np.exp(carried) + pushed) / np.sqrt(weight)
    return np.where(np.isnan(costs), np.inf, costs)


def _powers(factor: float, counts: np.ndarray) -> Floats:
    """Σ_{j<count} factor^j for a factor of at most 1."""
    if factor == 1:
        return counts.astype(float)
    if factor == 0:
        return np.minimum(counts, 1).astype(float)
    return np.asarray(np.expm1(counts * math.log(factor)) / (factor - 1))


def _inverse_squares(factor: float, counts: np.ndarray) -> Floats:
    """Σ_{1≤i≤count} factor^{−2i}, and no more than floats can hold: less noise is a larger μ."""
    if factor == 1:
        return counts.astype(float)
    if math.isinf(factor):
        return np.zeros(counts.shape)
    log_square = 2 * math.log(max(factor, 1e-100))
    grown = np.minimum(-log_square * counts, 2 * _LARGEST_LOG)
    return np.asarray(np.expm1(grown) / -math.expm1(log_square))


def on_the_same_data(factors: Floats, noise: Floats) -> float:
    """μ for a distance of 1, from steps that push nothing: one block, whatever the factors are."""
    if not factors.all():
        return 0.0
    logs = np.log(factors)
    after = np.append(np.cumsum(logs[:0:-1])[::-1], 0.0)
    top = float(after.max())
    weight = float(np.square(noise * np.exp(after - top)).sum())
    carried = float(after[0]) + float(logs[0]) - top
    size = float(np.abs(logs).sum())
    # A sum of n logarithms is off by at most n·u times the sum of their sizes.
    return up(math.exp(min(carried, 700.0)) / math.sqrt(weight), by=1e-12 + 2 * ULP * len(logs) * (1 + size))


def from_anywhere(push: float, factor: float, noise: float, diameter: float, steps: int) -> float:
    """μ of steps that are all alike, the record at every one of them: every push paid where it comes, or one block.

    Blocks are from the very start, or, in a bounded domain, from a diameter so many steps before the end.
    """
    at_once = push * math.sqrt(steps)
    if factor <= 1:
        at_once = min(at_once, float(_blocks(0.0, push, factor, np.array([steps]))[0]))
    if not math.isfinite(diameter) or not math.isfinite(factor):
        return up(at_once / noise)
    few = np.arange(1, min(steps, _MOST_STEPS) + 1)
    if factor > 1:
        few = few[few * math.log(factor) < _LARGEST_LOG]
        return up(min(at_once, _until_it_bends(diameter, push, factor, few)) / noise)
    lengths = np.unique(np.append(few, np.geomspace(1, steps, _MOST_STEPS).astype(np.intp)))
    return up(min(at_once, float(_blocks(diameter, push, factor, lengths).min())) / noise)


def _blocks(distance: float, push: float, factor: float, lengths: np.ndarray) -> Floats:
    """S/√U for a factor of at most 1."""
    carried = np.exp(lengths * math.log(factor)) if factor > 0 else np.zeros(lengths.shape)
    return np.asarray((distance * carried + push * _powers(factor, lengths)) / np.sqrt(_powers(factor**2, lengths)))


def _until_it_bends(distance: float, push: float, factor: float, lengths: np.ndarray) -> float:
    """The same for a factor above 1: feasible as long as S/U, carried to one place, has only fallen."""
    if not lengths.size:
        return math.inf
    logs = lengths * math.log(factor)
    carried = distance * np.exp(logs) + push * np.expm1(logs) / (factor - 1)
    weight = np.expm1(2 * logs) / (factor**2 - 1)
    falling = np.append(True, np.diff(np.log(carried) - np.log(weight) + logs) < -1e-12)
    return float((carried / np.sqrt(weight))[np.minimum.accumulate(falling)].min())
