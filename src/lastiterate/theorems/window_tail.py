"""Window and tail on random batches: what the last steps reveal, and how little they leave of everything before.

Sharper than Bok et al. 2024, Theorems 4.9 and 4.10: no noise is split and nothing is doubled; and the distance before the
window counts only the batches that the record was really in. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.mixing.window import Tail, WindowTail
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.numerics.tails import CoinSum
from lastiterate.privacy.ladder import Ladder, rungs
from lastiterate.privacy.notion import Notion
from lastiterate.shift.growth import farthest, first_maps, last_maps, remaining_mu
from lastiterate.theorems.assumptions import ONLY_THE_LAST
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.hidden_participation import longest_window, participation_window, worth_hiding
from lastiterate.theorems.sampled import BOUNDED_RECORDS, RANDOM, sampled_window
from lastiterate.theorems.theorem import Assumption, Theorem

# That a distance is exceeded: 1e-2, 1e-4, … Beyond 1e-30 the largest distance counts; finer steps are slower and gain
# little.
_LOG_PROBABILITIES = np.log(10.0) * -np.arange(2.0, 31.0, 2.0)
# Steps of a window, at least, and the mu of a turn, for which hidden participation is tried beside composition.
_SHORTEST_HIDDEN, _LEAST_HIDDEN, _MOST_HIDDEN = 8, 0.7, 8.0
_TYPICAL_DELTA = 1e-6  # where the two are compared: which is taken is a matter of tightness only
_MOST_WEIGHTS = 2_000  # different pushes, each counted as the largest of its group: fewer are looser, more take longer
# Steps of a window, besides all of them: a limit of effort, where steps differ and are gone through.
_LONGEST = 1_000_000
# What a push has shrunk to when the rest is charged as one sum; more pushes would take longer.
_NEGLIGIBLE = math.log(1e-18)


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), random batches.
    Bound: δ(ε) = the least of θ_a(μ_k) + e^a·d_k(ε − a) over windows of k steps and parts a of ε.
        d_k is the composition of the last k steps, μ_k what they leave of the distance B before them, on the same data.
        B is what the batches that the record was in can add up to; how unlikely more is, is added.
    Assumes: two runs stay at a bounded distance; for Poisson a bound on each gradient; only the last iterate is
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
    distances, weights = _distances(process, len(process) - length)
    mus = np.array([remaining_mu(maps, distance) for distance in distances.tolist()])
    return WindowTail(Tail(mus, weights), _window(process, length))


def _window(process: Process, length: int) -> Notion:
    """The last steps from a common state: every iterate released, or participation hidden. Both are valid."""
    composed = sampled_window(process, length)
    if not _worth_hiding(process, length):
        return composed
    hidden = participation_window(process, length)
    return min(composed, hidden, key=lambda one: float(one.epsilon(_TYPICAL_DELTA)))


def _worth_hiding(process: Process, length: int) -> bool:
    """A matter of effort: smaller pushes and shorter windows gain little, longer ones take long; domains have blocks."""
    if math.isfinite(process.diameter) or not _SHORTEST_HIDDEN <= length <= longest_window(process):
        return False
    mu = float(process.sampled[-1]) / float(process.noise[-1])
    return _LEAST_HIDDEN <= mu <= _MOST_HIDDEN and worth_hiding(process)


def _distances(process: Process, count: int) -> tuple[Floats, Floats]:
    """Distances after the first `count` steps, increasing, each with how likely it is that the one before is exceeded.

    The batches are the same in both runs and do not depend on the data; given them, and with the same noise, the distance
    is at most the sum of the pushes of the batches that the record was in, shrunk as they are carried along. Where sums are
    divided by the size of the batch, a push is the smaller the larger its batch.
    """
    if count == 0:
        return np.zeros(1), np.ones(1)
    largest = farthest(first_maps(process, count), process.diameter)
    pushes, counts, rest = _carried_pushes(process, count)
    if not np.isfinite(pushes).all():
        return np.array([largest]), np.ones(1)
    carried = CoinSum(pushes, counts, float(process.inclusion[0]), process.levels)
    distances, weights = [], [1.0]
    for log_probability in _LOG_PROBABILITIES.tolist():
        distance = carried.exceeded(log_probability) + rest
        if not distance < largest:
            break
        distances.append(distance)
        weights.append(up(math.exp(log_probability)))
    return np.array([*distances, largest]), np.array(weights)


def _carried_pushes(process: Process, count: int) -> tuple[Floats, Floats, float]:
    """(pushes at the end of the first `count` steps, how many of each, and the sum of all that are negligible)."""
    if process.constant:
        return _carried_alike(float(process.sensitivity[0]), process.contraction, count)
    with np.errstate(divide="ignore"):
        logs = np.log(process.lipschitz[1:count])
    after = np.append(np.cumsum(logs[::-1])[::-1], 0.0)
    with np.errstate(over="ignore"):
        return process.sensitivity[:count] * np.exp(after) * (1 + 1e-13 * count**0.5 + 1e-12), np.ones(count), 0.0


def _carried_alike(push: float, factor: float, count: int) -> tuple[Floats, Floats, float]:
    if factor == 1:
        return np.array([push]), np.array([float(count)]), 0.0
    log_factor = math.log(factor) if factor > 0 else -math.inf
    kept = min(count, math.ceil(_NEGLIGIBLE / log_factor) + 1 if log_factor < 0 else count)
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


def _some_distance(process: Process) -> str | None:
    if math.isfinite(farthest(first_maps(process, len(process)), process.diameter)):
        return None
    return f"it needs a bound on how far apart two runs can be, but {process.reason}; bound the domain"


WINDOW_TAIL = Theorem(
    "window-tail",
    "lastiterate, window and tail",
    "random batches, any Lipschitz constants and schedules",
    (RANDOM, BOUNDED_RECORDS, Assumption("two runs stay at a bounded distance", _some_distance), ONLY_THE_LAST),
    _bound,
    rung=window_of,
    sees=attrgetter("sensitivity", "noise", "lipschitz", "sampled"),
)
