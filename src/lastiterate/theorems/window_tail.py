"""Window and tail on random batches: what the last steps reveal, and how little they leave of everything before.

Sharper than Bok et al. 2024, Theorems 4.9 and 4.10: no noise is split and nothing is doubled; and the distance before the
window counts only the batches that the record was really in. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from operator import attrgetter

import numpy as np

from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.minimum import Either, Ladder, rungs
from lastiterate.curves.notion import Notion
from lastiterate.facts import Fact, fact
from lastiterate.mixing.window import Tail, WindowTail
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import spread_out
from lastiterate.numerics.rounding import ULP, up
from lastiterate.numerics.tails import CoinSum
from lastiterate.runs.process import Process
from lastiterate.shift.distance_bounds import farthest, farthest_along, first_maps, last_maps, remaining_mus
from lastiterate.theorems.evidence import Evidence, NoFiniteBound
from lastiterate.theorems.features import (
    ANY_MAP,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    RANDOM_BATCHES,
    RANDOM_SIZES,
    Assumption,
)
from lastiterate.theorems.participation import (
    longest_window,
    participation_window,
    rough_participation,
    worth_hiding,
)
from lastiterate.theorems.theorem import Theorem
from lastiterate.theorems.typical_batches import BOUNDED_RECORDS, released_window

Levels = tuple[tuple[float, float], ...]

# That a distance is exceeded: 1e-2, 1e-4, … Beyond 1e-30 the largest distance counts; finer steps are slower and gain
# little.
_LOG_PROBABILITIES = np.log(10.0) * -np.arange(2.0, 31.0, 2.0)
# Steps of a window, at least, and the mu of a turn, for which hidden participation is tried beside composition.
_SHORTEST_HIDDEN, _LEAST_HIDDEN, _MOST_HIDDEN = 8, 0.7, 8.0
_MOST_WEIGHTS = 2_000  # different pushes, each counted as the largest of its group: fewer are looser, more take longer
# Steps of a window, besides all of them: a limit of effort, where steps differ and are gone through.
_LONGEST = 1_000_000
# What a push has shrunk to when the rest is charged as one sum; more pushes would take longer.
_NEGLIGIBLE = math.log(1e-18)


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), random batches.
    Bound: δ(ε) = the least of θ_a(μ_k) + e^a·d_k(ε − a) over windows of k steps and parts a of ε.
        d_k is the composition of the last k steps, μ_k what they leave of the distance B before them, on the same data.
        B bounds the effect of all batches with the record; the probability of more is added.
    Assumes: two runs stay within a bounded distance; for Poisson a bound on each gradient; only the last iterate is
        released.
    Attained by: one step on a random batch, and steps that forget everything before, to 1 %.
    Reference: docs/proofs.md; sharper than Bok et al. 2024, Theorems 4.9 and 4.10.
    """
    lengths = rungs(min(len(process), _LONGEST))
    ladder = Ladder(lengths if lengths[-1] == len(process) else (*lengths, len(process)), partial(window_of, process))
    return Evidence(ladder, ladder)


def window_of(process: Process, length: int) -> Notion:
    """The guarantee of a window of this length. Trusted: everything in it is rounded up."""
    maps = last_maps(process, length).without_record()
    distances, weights = distances_before(process, len(process) - length)
    return WindowTail(Tail(remaining_mus(maps, distances), weights), _window(process, length))


def _window(process: Process, length: int) -> Notion:
    """The last steps from a common state: every iterate released, or participation hidden. Both are valid."""
    composed = released_window(process, length)
    if not _worth_hiding(process, length):
        return composed
    return Either(composed, rough_participation(process, length), partial(participation_window, process, length))


def _worth_hiding(process: Process, length: int) -> bool:
    """A matter of effort: smaller pushes and shorter windows gain little, longer ones take long; domains have blocks."""
    if math.isfinite(process.diameter) or not _SHORTEST_HIDDEN <= length <= longest_window(process):
        return False
    mu = float(process.sampled[-1]) / float(process.noise[-1])
    return _LEAST_HIDDEN <= mu <= _MOST_HIDDEN and worth_hiding(process)


def distances_before(process: Process, count: int) -> tuple[Floats, Floats]:
    """Distances after the first `count` steps, increasing, each with how likely it is that the one before is exceeded.

    The batches are the same in both runs and do not depend on the data; given them, and with the same noise, the distance
    is at most the sum of the pushes of the batches that the record was in, shrunk as they are carried along. Where sums are
    divided by the size of the batch, a push is the smaller the larger its batch.
    """
    if count == 0:
        return np.zeros(1), np.ones(1)
    rate = float(process.inclusion[0])
    if process.constant:
        largest = farthest(first_maps(process, count), process.diameter)
        most = _worth_keeping(process.contraction)
        alike = (float(process.sensitivity[0]), process.contraction, min(count, most))
        exceeded = _exceeded_alike(*alike, rate, process.levels)
    else:
        largest = float(_largest_along(process)[count])
        exceeded = _exceeded(*_carried_pushes(process, count), rate, process.levels)
    few = next((i for i, distance in enumerate(exceeded) if not distance < largest), len(exceeded))
    return np.array([*exceeded[:few], largest]), np.append(1.0, up(np.exp(_LOG_PROBABILITIES[:few])))


def _exceeded(pushes: Floats, counts: Floats, rest: float, rate: float, levels: Levels) -> tuple[float, ...]:
    """What the carried pushes exceed with each of the probabilities; none where they have no bound."""
    if not np.isfinite(pushes).all():
        return ()
    carried = CoinSum(pushes, counts, rate, levels)
    return tuple(carried.exceeded(log_probability) + rest for log_probability in _LOG_PROBABILITIES.tolist())


@lru_cache(maxsize=16)
def _exceeded_alike(push: float, factor: float, count: int, rate: float, levels: Levels) -> tuple[float, ...]:
    return _exceeded(*_carried_alike(push, factor, count), rate, levels)


@lru_cache(maxsize=1)
def _largest_along(process: Process) -> Floats:
    """How far apart two runs can be after each number of steps: gone through once for all windows."""
    return farthest_along(first_maps(process, len(process)), process.diameter)


def _carried_pushes(process: Process, count: int) -> tuple[Floats, Floats, float]:
    """(pushes at the end of the first `count` steps, how many of each, and what is left of all before them).

    The last steps are looked at until next to nothing is left of what was before; pushes are put on few levels.
    """
    first = count
    while first:
        first = max(0, count - max(_MOST_WEIGHTS, 4 * (count - first)))
        with np.errstate(divide="ignore"):
            logs = np.log(process.lipschitz[first:count])
        after = np.append(np.cumsum(logs[:0:-1])[::-1], 0.0)
        left = float(after[0] + logs[0])
        if left < _NEGLIGIBLE:
            break
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.abs(after).max(initial=0.0, where=np.isfinite(after)))
        inexact = 1 + 2 * ULP * len(logs) * (1 + size) + 1e-12
        rest = float(_largest_along(process)[first]) * math.exp(min(left, 700.0)) * inexact if first else 0.0
        pushes = process.sensitivity[first:count] * np.exp(after) * inexact
    return (*spread_out(pushes, _MOST_WEIGHTS), rest)


def _worth_keeping(factor: float) -> int | float:
    """Of pushes that all shrink by this factor, one more than are looked at: the rest of any number is charged alike."""
    if not 0 < factor < 1:
        return 2 if factor == 0 else math.inf
    return math.ceil(_NEGLIGIBLE / math.log(factor)) + 2


def _carried_alike(push: float, factor: float, count: int) -> tuple[Floats, Floats, float]:
    if factor == 1:
        return np.array([push]), np.array([float(count)]), 0.0
    log_factor = math.log(factor) if factor > 0 else -math.inf
    kept = min(count, math.ceil(_NEGLIGIBLE / log_factor) + 1 if -math.inf < log_factor < 0 else count)
    group = -(-kept // _MOST_WEIGHTS)
    ages = np.arange(0, kept, group)
    sizes = np.minimum(group, kept - ages).astype(float)
    with np.errstate(over="ignore", invalid="ignore"):
        largest_in_group = (
            np.where(ages > 0, ages, 0) * log_factor if log_factor < 0 else (ages + sizes - 1) * log_factor
        )
        pushes = up(push * np.exp(np.where(ages == 0, max(0.0, (sizes[0] - 1) * log_factor), largest_in_group)))
    rest = up(push * math.exp(kept * log_factor) / (1 - factor)) if kept < count else 0.0
    return pushes, sizes, rest


def _some_distance(process: Process) -> Fact | None:
    maps = first_maps(process, len(process))
    largest = farthest(maps, process.diameter) if maps.constant else float(_largest_along(process)[-1])
    return None if math.isfinite(largest) else fact("distance_unbounded", because=process.reason)


BOUNDED_DISTANCE = Assumption("bounded_distance", _some_distance)

WINDOW_TAIL = Theorem(
    "window-tail",
    "lastiterate, window and tail",
    "random batches, any Lipschitz constants and schedules",
    {RANDOM_BATCHES, RANDOM_SIZES, CHANGING_STEPS} | ANY_MAP | ANY_NEIGHBOURS,
    (BOUNDED_RECORDS, BOUNDED_DISTANCE),
    _bound,
    rung=window_of,
    sees=attrgetter("sensitivity", "noise", "lipschitz", "sampled"),
)


# A record that random batches used now and then, and that the last steps no longer use.
#
# Nobody is told which batches the record was in, and in most of them it was not. Given the batches, the distance that
# training
# left is what those with the record add up to, and the steps without it hide that. Proof: docs/proofs.md, "Forgetting".


def _forgotten_bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), random batches, of which the last steps do not use the record.
    Bound: δ(ε) = the mean of θ_ε(μ) over the distance that the batches with the record leave, μ what the steps without it
        leave of that distance. The distance is one of a few, each with a bound on how likely more is.
    Assumes: a step without the record at the end; two runs stay at a bounded distance; only the last iterate is released.
    Reference: docs/proofs.md.
    """
    used = _used(process)
    distances, exceeded = distances_before(process, used)
    mus = remaining_mus(last_maps(process, len(process) - used).without_record(), distances)
    if not np.isfinite(mus).all():
        raise NoFiniteBound("distance_not_hidden")
    return Evidence(AveragedGaussianDP(mus=mus, weights=_masses(exceeded)))


def _used(process: Process) -> int:
    """After so many steps no batch has the record any more."""
    return int(np.flatnonzero(process.sensitivity)[-1]) + 1


def _masses(exceeded: Floats) -> Floats:
    """Of the law that has as much as it can at large distances, if the one before is exceeded with at most this chance."""
    return exceeded - np.append(exceeded[1:], 0.0)


def _some_steps(process: Process) -> Fact | None:
    return None if _used(process) < len(process) else fact("record_in_every_step")


FORGOTTEN_BY_CHANCE = Theorem(
    "forgetting/random-batches",
    "lastiterate, the distance that random batches leave",
    "random batches, of which the last do not use the record",
    {RANDOM_BATCHES, RANDOM_SIZES, CHANGING_STEPS} | ANY_MAP | ANY_NEIGHBOURS,
    (Assumption("steps_without_record", _some_steps), BOUNDED_DISTANCE),
    _forgotten_bound,
)
