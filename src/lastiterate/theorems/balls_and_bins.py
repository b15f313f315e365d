"""Balls and bins: each record goes to a batch of its own choice in each epoch; zero-out or add-or-remove.

As a composition, with the place in the last epoch hidden, with prepayment, and over a window. Proofs: docs/proofs.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter

import numpy as np

from lastiterate.curves.balls_and_bins import BallsAndBinsDP
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_participation import present_or_absent
from lastiterate.curves.minimum import Ladder, rungs
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import ChosenSlack
from lastiterate.mixing.window import Tail, WindowTail
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import is_constant
from lastiterate.runs.process import Process
from lastiterate.shift.distance_bounds import farthest_along, first_maps, last_maps, remaining_mus
from lastiterate.theorems import features
from lastiterate.theorems.epochs import averaged_epoch, whole_epoch
from lastiterate.theorems.evidence import About, Evidence, NoFiniteBound
from lastiterate.theorems.features import FINITE_LIPSCHITZ, NONEXPANSIVE
from lastiterate.theorems.places import Place, place_evidence
from lastiterate.theorems.prepayment import ALIKE_IF_NEW, LITTLE_TO_PREPAY, SEVERAL, SMOOTH
from lastiterate.theorems.shift_engine import FEW_ENOUGH_PLACES, TAME
from lastiterate.theorems.theorem import Theorem

_MOST_LEVELS = 20  # different epochs, each rounded up to the next: each is a loss distribution of its own
_TYPICAL_LOG_DELTA = math.log(1e-6)  # where two guarantees are compared, by estimates: either is valid


def _composition(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), balls and bins.
    Bound: (1/l)·Σ_j N(μ·e_j, I) against N(0, I) in l dimensions, in both orders, composed over the epochs; μ = s/ν.
    Assumes: zero-out or add-or-remove adjacency, nothing else; every iterate may be released.
    Attained by: linear losses: it is exact, if all iterates are released.
    Reference: Chua et al. 2025 (arXiv 2412.16802); Feldman and Shenfeld 2025; the loss distribution in docs/proofs.md.
    """
    return Evidence(composed_epochs(process))


def _hidden(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), balls and bins.
    Bound: Σ_k N(μ_k, 1)/l against N(0, 1), in both orders, μ_k the engine's for place k of the last epoch.
        Earlier epochs count at their worst place.
    Assumes: zero-out or add-or-remove adjacency, a known Lipschitz constant, little growth within an epoch; only the last
        iterate is released.
    Attained by: one epoch on linear losses, to 1 %.
    Reference: hidden allocation (docs/proofs.md).
    """
    return Evidence(hidden_in_the_last_epoch(process))


def _prepaid(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), balls and bins, smooth losses.
    Bound: δ0 + Σ_k N(μ_k, 1)/l against N(0, 1), in both orders, μ_k by prepayment for place k of the last epoch.
        Earlier epochs count at their worst place.
    Assumes: zero-out or add-or-remove adjacency; no projection and no proximal map, a known smoothness, bounded gradients,
        one clip; identical steps, little growth within an epoch; only the last iterate is released.
    Attained by: one epoch of quadratic losses, where a record's effect is constant.
    Reference: prepayment and hidden allocation (docs/proofs.md).
    """
    return Evidence(ChosenSlack(partial(hidden_in_the_last_epoch, process)))


def _window_tail(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), balls and bins.
    Bound: δ(ε) = the least of θ_a(μ_k) + e^a·d_k(ε − a) over windows of k epochs and parts a of ε.
        d_k is the composition of the last k epochs, μ_k what they leave of the distance before them, on the same data.
    Assumes: L ≤ 1 and whole epochs; zero-out or add-or-remove adjacency; only the last iterate is released.
    Attained by: one epoch that forgets everything before, to 1 %.
    Reference: window and tail (docs/proofs.md).
    """
    count = len(process) // process.batches.per_epoch
    lengths = rungs(count)
    ladder = Ladder(lengths if lengths[-1] == count else (*lengths, count), partial(window_of_epochs, process))
    return Evidence(ladder, ladder)


def window_of_epochs(process: Process, epochs: int) -> Notion:
    """Return the guarantee of a window of so many epochs. Trusted: everything in it is rounded up."""
    steps = epochs * process.batches.per_epoch
    before = len(process) - steps
    maps = last_maps(process, steps).without_record()
    distance = np.array([float(_distances(process)[before])])
    window = composed_epochs(process, before)
    return WindowTail(Tail(remaining_mus(maps, distance), np.ones(1)), window, process.adjacency)


@lru_cache(maxsize=1)
def _distances(process: Process) -> Floats:
    """Return how far apart two runs can be after each step: where no step expands, a turn counts most as the last."""
    per_epoch = process.batches.per_epoch
    worst = np.repeat(process.sensitivity.reshape(-1, per_epoch).max(axis=1), per_epoch)
    turns = (np.arange(len(process)) + 1) % per_epoch == 0
    at_the_end = replace(process, sensitivity=worst * turns)
    return farthest_along(first_maps(at_the_end, len(process)), process.diameter)


# What some epochs reveal from a common state, where a record is there or not.


def composed_epochs(process: Process, first: int = 0) -> Notion:
    """Return the composition of epochs with every iterate released, from step `first` on; the last may be cut short.

    An epoch whose steps differ counts as one whose steps are all as its worst.
    """
    per_epoch = process.batches.per_epoch
    ratios = _ratios(process, first)
    if is_constant(ratios):
        return _epochs(process, float(ratios[0]), -(-(len(process) - first) // per_epoch))
    padded = np.append(ratios, np.zeros(-len(ratios) % per_epoch)).reshape(-1, per_epoch)
    levels, counts = few_levels(padded.max(axis=1), _MOST_LEVELS, 1e-9)
    parts = [(_epochs(process, mu, n), 1) for mu, n in zip(levels.tolist(), counts.tolist(), strict=True)]
    return compose_counted(parts)


def _ratios(process: Process, first: int) -> Floats:
    if is_constant(process.sensitivity) and is_constant(process.noise):
        return np.broadcast_to(process.step_mu, len(process) - first)
    return np.asarray(process.sensitivity[first:] / process.noise[first:])


def _epochs(process: Process, mu: float, count: int) -> BallsAndBinsDP:
    if not math.isfinite(mu):
        raise NoFiniteBound("gradient_not_bounded")
    return BallsAndBinsDP(up(mu), process.batches.per_epoch, count, process.adjacency)


def hidden_in_the_last_epoch(process: Process, slack: float | None = None) -> Notion:
    """Return the guarantee of the last iterate: the place in the last epoch is hidden, earlier ones count as the worst.

    With `slack`, the push may be prepaid, except with this probability: one push, of the record against nothing. There is
    one law without the record, and one for each place; where it has no turn at all they are the same.
    """
    found = place_evidence(process, Place.AVERAGE, slack).schedules
    mus, weights = (np.array(values) for values in zip(*((one.mu, one.weight) for one in found), strict=True))
    absent = max(0.0, 1 - float(weights.sum()))
    return present_or_absent(np.append(mus, 0.0), np.append(weights, absent), adjacency=process.adjacency)


def from_a_common_state(process: Process) -> Notion:
    """Return what whole epochs on a bounded domain reveal, of which the last iterate is released.

    An average over the record's places holds for any neighbours; for a record that is there or not, the better of what
    hides its place in the last epoch and of the composition of all epochs.
    """
    unbounded = replace(process, diameter=math.inf)
    if process.adjacency.replaces:
        one = len(process) == process.batches.per_epoch
        return averaged_epoch(process, whole_epoch(process)) if one else place_evidence(unbounded, Place.AVERAGE).notion
    ways = (hidden_in_the_last_epoch(unbounded), composed_epochs(process))
    return min(ways, key=lambda one: float(one.epsilon_at_log(np.array([_TYPICAL_LOG_DELTA]))[0]))


_THERE_OR_NOT = {features.ZEROED_OUT, features.ADDED_OR_REMOVED}
_COVERED = {features.OWN_PLACES, features.RANDOM_SIZES} | _THERE_OR_NOT
_STEPS = {features.CHANGING_STEPS} | features.ANY_MAP

BALLS_AND_BINS = Theorem(
    "balls-and-bins",
    "Chua et al. 2025 and Feldman and Shenfeld 2025, recomputed",
    "balls and bins, any loss, every iterate released",
    _COVERED | _STEPS | {features.UNFINISHED_EPOCH} | features.ANY_CHECKPOINTS | features.ANY_UPDATE,
    (),
    _composition,
    about=About.EVERY_ITERATE,
    sees=attrgetter("sensitivity", "noise"),
)
HIDDEN_ALLOCATION = Theorem(
    "balls-and-bins/hidden-place",
    "lastiterate, hidden place of a record, against one distribution without it",
    "balls and bins, any Lipschitz constants; few epochs",
    _COVERED | _STEPS | {features.UNFINISHED_EPOCH},
    (FINITE_LIPSCHITZ, TAME, FEW_ENOUGH_PLACES),
    _hidden,
    sees=attrgetter("sensitivity", "noise", "lipschitz"),
)
PREPAID_ALLOCATION = Theorem(
    "balls-and-bins/prepaid",
    "lastiterate, noise before a record's step, and its place is hidden",
    "balls and bins, smooth losses: noise before the step and other places hide a record",
    _COVERED | {features.UNFINISHED_EPOCH, features.WEIGHT_DECAY},
    (SEVERAL, SMOOTH, ALIKE_IF_NEW, TAME, LITTLE_TO_PREPAY),
    _prepaid,
)
WINDOW_OF_EPOCHS = Theorem(
    "balls-and-bins/window-tail",
    "lastiterate, window and tail",
    "balls and bins, convex: the last epochs, and what remains of earlier ones",
    _COVERED | _STEPS,
    (NONEXPANSIVE,),
    _window_tail,
    rung=window_of_epochs,
    sees=attrgetter("sensitivity", "noise", "lipschitz"),
)
