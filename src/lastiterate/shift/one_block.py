"""Schedules that are one block, where that is the best or known to be feasible: formulas in place of a search. Trusted.

A block pays every step in proportion to its noise and to what follows it, and costs S²/U: S the pushes and the distance
that it starts from, carried to its end, U the variances, carried likewise. It is feasible if no earlier end has a smaller
S/U, carried as far: so where pushes fall over what they weigh (docs/proofs.md).
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import ULP, up

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
