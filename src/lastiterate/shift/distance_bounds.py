"""How far apart two runs can be, and what noise leaves of it, when a step has two bounds on how it moves them apart.

All of it is believed: certificates by theorems that ask for these bounds are recomputed, and not replayed.

A step maps a distance z to at most lipschitz·z + sensitivity, and to at most retain·z + drift: the first is the better one
for small z, the second for large z (clipped gradients, whatever the curvature). Each step may use either, so the better of
the two maps needs no grid: of a schedule that pays z down, the first steps use the second and the others the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lastiterate.kernel.certify import certify
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import ULP, up
from lastiterate.runs.per_step import extremes, is_constant
from lastiterate.runs.process import Process
from lastiterate.shift.optimise import schedule_from

_UP = up(1.0, operations=3)
_MOST_ENDS = 200  # each is valid: on a ladder of so many the best is missed by little, and steps may be billions


@dataclass(frozen=True, eq=False)
class Maps:
    """Some steps of a run as a distance meets them: both affine bounds, and the noise."""

    sensitivity: Floats
    lipschitz: Floats
    drift: Floats
    retain: Floats
    noise: Floats

    def __len__(self) -> int:
        return len(self.noise)

    @property
    def constant(self) -> bool:
        return all(is_constant(x) for x in (self.sensitivity, self.lipschitz, self.drift, self.retain, self.noise))

    @property
    def alike(self) -> tuple[float, float, float, float, float]:
        """(sensitivity, lipschitz, drift, retain, noise) of the first step, or of all if they are alike."""
        values = (self.sensitivity, self.lipschitz, self.drift, self.retain, self.noise)
        return tuple(float(value[0]) for value in values)  # type: ignore[return-value]

    def without_record(self) -> Maps:
        """Return the maps of two runs on the same data. The drift stays: it is the curvature's, not the record's."""
        return Maps(np.broadcast_to(0.0, len(self)), self.lipschitz, self.drift, self.retain, self.noise)

    def steps(self, switch: int, distance: float) -> Steps:
        """Return the steps from this distance on, the first `switch` by their drift, after a step that nobody counts."""
        first = np.arange(len(self)) < switch
        pushes, factors = np.where(first, self.drift, self.sensitivity), np.where(first, self.retain, self.lipschitz)
        return Steps(np.append(1.0, pushes), np.append(1.0, self.noise), np.append(1.0, factors), distance)


def last_maps(process: Process, count: int) -> Maps:
    """Return the maps of the last `count` steps of a process."""
    return _maps(process, slice(len(process) - count, len(process)))


def first_maps(process: Process, count: int) -> Maps:
    """Return the maps of the first `count` steps of a process."""
    return _maps(process, slice(0, count))


def _maps(given: Process, cut: slice) -> Maps:
    return Maps(given.sensitivity[cut], given.lipschitz[cut], given.drift[cut], given.retain[cut], given.noise[cut])


def farthest(maps: Maps, diameter: float) -> float:
    """How far apart two runs with the same noise can be after these steps, the record in every batch; rounded up."""
    if maps.constant:
        by_curvature = _sum(float(maps.lipschitz[0]), len(maps)) * float(maps.sensitivity[0])
        by_drift = _sum(float(maps.retain[0]), len(maps)) * float(maps.drift[0])
        return min(by_curvature, by_drift, diameter)
    return float(farthest_along(maps, diameter)[-1])


def farthest_along(maps: Maps, diameter: float) -> Floats:
    """How far apart two runs with the same noise can be after 0, 1, 2, … steps, up to all of them; rounded up."""
    if math.isinf(diameter) and math.isinf(extremes(maps.drift)[0]) and extremes(maps.lipschitz)[1] < math.inf:
        return _affine_along(np.broadcast_to(maps.lipschitz, len(maps)), np.broadcast_to(maps.sensitivity, len(maps)))
    distances, distance = np.zeros(len(maps) + 1), 0.0
    rows = zip(*(x.tolist() for x in (maps.sensitivity, maps.lipschitz, maps.drift, maps.retain)), strict=True)
    for step, (push, factor, drift, retain) in enumerate(rows, 1):
        grown = factor * distance + push if distance else push
        distance = min(grown, retain * distance + drift, diameter) * _UP
        distances[step] = distance
    return distances


def _affine_along(factors: Floats, pushes: Floats) -> Floats:
    """z ← factor·z + push from z = 0, after each number of steps: many stretches side by side, then one after the other."""
    length = max(1, math.isqrt(len(factors)))
    rows = -(-len(factors) // length)
    padded = [np.append(x, np.zeros(rows * length - len(x))).reshape(rows, length) for x in (factors, pushes)]
    product, total = np.ones(rows), np.zeros(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        for factor, push in zip(padded[0].T, padded[1].T, strict=True):
            product, total = product * factor * _UP, (factor * total + push) * _UP
        starts, distance = np.zeros(rows), 0.0
        for row in range(rows):
            starts[row], distance = distance, (float(product[row]) * distance + float(total[row])) * _UP
        along = np.zeros((rows, length))
        for step in range(length):
            starts = (padded[0][:, step] * starts + padded[1][:, step]) * _UP
            along[:, step] = starts
    found = np.append(0.0, along.ravel()[: len(factors)])
    return np.where(np.isnan(found), np.inf, found)


def _sum(factor: float, terms: int) -> float:
    """Σ_{j<terms} factor^j, rounded up; ∞ where it overflows."""
    if factor == 1 or math.isinf(factor):
        return float(terms) if factor == 1 or terms == 1 else math.inf
    exponent = terms * math.log(factor) if factor > 0 else -math.inf
    return up(math.expm1(exponent) / (factor - 1)) if exponent < 700 else math.inf


def remaining_mu(maps: Maps, distance: float) -> float:
    """μ of the last iterate after these steps, from two states that are `distance` apart; rounded up, and certified."""
    if distance == 0 and extremes(maps.sensitivity) == (0.0, 0.0):
        return 0.0
    if math.isinf(distance):
        return math.inf
    if (found := _without_search(maps, np.array([distance]))) is not None:
        return float(found[0])
    if not maps.constant:
        return _searched(maps, distance)
    push, factor, drift, retain, noise = maps.alike
    by_curvature = _in_one_block(distance, push, factor, len(maps)) / noise if factor <= 1 else math.inf
    if factor <= 1 and (factor <= retain or math.isinf(drift)):
        return by_curvature
    by_drift = _by_drift_first(distance, maps) if retain <= 1 and math.isfinite(drift) else math.inf
    at_once = up(push * math.sqrt(len(maps)) / noise) if distance == 0 else math.inf
    if math.isinf(factor) and retain <= 1:
        return min(by_drift, at_once)
    return min(by_curvature, by_drift, at_once, _searched(maps, distance))


def remaining_mus(maps: Maps, distances: Floats) -> Floats:
    """μ of the last iterate after these steps, from two states at each of these distances; rounded up."""
    finite = distances[np.isfinite(distances)]
    found = _without_search(maps, finite) if finite.size else None
    if found is None:
        return np.array([remaining_mu(maps, distance) for distance in distances.tolist()])
    return np.where(distances == 0, 0.0, np.append(found, np.full(distances.size - finite.size, np.inf)))


def _without_search(maps: Maps, distances: Floats) -> Floats | None:
    """μ from each distance on the same data, if the best switch has a formula: steps all alike, or with no use for drift."""
    if extremes(maps.sensitivity) != (0.0, 0.0):
        return None
    if maps.constant:
        _, factor, drift, retain, noise = maps.alike
        useless = factor <= 1 and (factor <= retain or math.isinf(drift))  # for which there are formulas below
        return None if useless or retain > 1 else switched(distances, drift, retain, factor, noise, len(maps))
    no_drift = is_constant(maps.drift) and math.isinf(float(maps.drift[0]))
    if extremes(maps.lipschitz)[1] < math.inf and (no_drift or bool((maps.lipschitz <= maps.retain).all())):
        return up(distances * on_the_same_data(maps.lipschitz, np.broadcast_to(maps.noise, len(maps))))
    return None


def _by_drift_first(distance: float, maps: Maps) -> float:
    """μ if some steps hide everything by their drift, and every later push is paid for where it comes."""
    push, _, drift, retain, noise = maps.alike
    ends = np.unique(np.geomspace(1, len(maps), min(len(maps), _MOST_ENDS)).astype(np.intp)).tolist()
    costs = [math.hypot(_in_one_block(distance, drift, retain, end), push * math.sqrt(len(maps) - end)) for end in ends]
    return up(min(costs) / noise)


def _in_one_block(distance: float, push: float, factor: float, steps: int) -> float:
    """μ·noise of steps that are all alike, factor ≤ 1: pushes are concave over weights, so that one block is best."""
    if factor == 0:
        return push
    if math.isinf(push):
        return math.inf
    carried = distance * factor * math.sqrt(amplification(factor, steps))
    # Σ c^j/√(Σ c^{2j}) over j < k is √((1 − c^k)(1 + c)/((1 + c^k)(1 − c))).
    power = steps * math.log(factor)
    pushed = push * math.sqrt(steps if factor == 1 else math.tanh(-power / 2) * (1 + factor) / (1 - factor))
    return up(carried + pushed)


def _searched(maps: Maps, distance: float) -> float:
    """The least μ over how many steps use their drift: some numbers first, then others around the best of them."""
    if not np.isfinite(maps.drift).all():
        return _from(maps, distance, 0)
    count = len(maps)
    found = {switch: _from(maps, distance, switch) for switch in {0, count, *(count * i // 8 for i in range(1, 8))}}
    width = count // 8
    while width > 1:
        best, width = min(found, key=lambda switch: found[switch]), width // 2
        for switch in (best - width, best + width):
            if 0 <= switch <= count and switch not in found:
                found[switch] = _from(maps, distance, switch)
    return min(found.values())


def _from(maps: Maps, distance: float, switch: int) -> float:
    """μ of the last iterate from this distance on, the first `switch` steps by their drift."""
    steps = maps.steps(switch, distance)
    if not np.isfinite(steps.lipschitz[1:]).all():
        return _all_at(steps, switch)
    forgotten = np.flatnonzero(steps.lipschitz[1:] == 0)
    if distance == 0 or forgotten.size:
        first = 1 + (int(forgotten[-1]) if forgotten.size else 0)
        return schedule_from(steps.part(first, len(steps)), 0, 0.0)[0]
    return schedule_from(steps, 1, distance)[0]


def _all_at(steps: Steps, switch: int) -> float:
    """μ if nothing is known of what steps beyond the switch do to a distance: it has to be gone by then."""
    if switch == 0:
        return certify(steps, 1, np.full(len(steps) - 1, np.inf))
    before, after = steps.part(0, switch + 1), steps.part(switch + 1, len(steps))
    mu = schedule_from(before, 1, steps.diameter)[0]
    return up(math.hypot(mu, certify(after, 0, np.full(len(after), np.inf)) if len(after) else 0.0), operations=5)


# What is left of one shift after some steps that are all alike.


def amplification(lipschitz: float, steps: int) -> float:
    """θ_L(r) = L^{2(r−1)}/Σ_{j<r} L^{2j} = 1/Σ_{j<r} L^{−2j}: what is left of a squared shift after r noisy steps."""
    if lipschitz == 1 or steps == 1:
        return 1 / steps
    if lipschitz == 0:
        return 0.0
    log_square = 2 * math.log(lipschitz)
    if log_square > 0:
        return math.expm1(-log_square) / math.expm1(-log_square * steps)
    # L < 1: Σ_{j<r} e^{−j·log L²} grows; multiplied by e^{(r−1)·log L²} it does not.
    return math.exp((steps - 1) * log_square) * math.expm1(log_square) / math.expm1(steps * log_square)


# Schedules that are one block, where that is the best or known to be feasible: formulas in place of a search.
#
# A block pays every step in proportion to its noise and to what follows it, and costs S²/U: S the pushes and the distance
# that it starts from, carried to its end, U the variances, carried likewise. It is feasible if no earlier end has a smaller
# S/U, carried as far: so where pushes fall over what they weigh (docs/proofs.md).


_AT_FIRST = 200  # switches, from either end: between two the best is missed by little, and is looked for once more
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
    """μ·noise = S/√U of one block of each length, for a factor of at most 1."""
    carried = np.exp(lengths * math.log(factor)) if factor > 0 else np.zeros(lengths.shape)
    return np.asarray((distance * carried + push * _powers(factor, lengths)) / np.sqrt(_powers(factor**2, lengths)))


def _until_it_bends(distance: float, push: float, factor: float, lengths: np.ndarray) -> float:
    """The least S/√U for a factor above 1, of blocks that are feasible: S/U, carried to one place, has only fallen."""
    if not lengths.size:
        return math.inf
    logs = lengths * math.log(factor)
    carried = distance * np.exp(logs) + push * np.expm1(logs) / (factor - 1)
    weight = np.expm1(2 * logs) / (factor**2 - 1)
    falling = np.append(True, np.diff(np.log(carried) - np.log(weight) + logs) < -1e-12)
    return float((carried / np.sqrt(weight))[np.minimum.accumulate(falling)].min())
