"""The shift engine: any schedule, any Lipschitz constants, checkpoints; at the worst, an average, or a hidden place.

What a record pushes is hidden by the noise of its own step and of those that follow. Generalises Bok et al. 2024, Theorem
C.3, to steps that differ; the best schedule is an isotonic regression. Proofs: docs/proofs.md.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.errors import InvalidInput
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.shift.distance_bounds import from_anywhere
from lastiterate.theorems import features
from lastiterate.theorems.evidence import About, Evidence, NoFiniteBound, RecordSchedules
from lastiterate.theorems.features import FINITE_LIPSCHITZ, Assumption
from lastiterate.theorems.groups import group_as_one, placed_by_chance
from lastiterate.theorems.places import (
    MOST_REPRESENTED,
    Place,
    new_orders,
    place_evidence,
    places_of,
    schedules,
    steps_to_go_through,
    work_of_turns,
)
from lastiterate.theorems.theorem import Theorem

MOST_WORK = 40_000_000  # steps: a third of a second a million, a quarter of a minute in all; a limit of patience
_FEW_STEPS = 20_000  # are gone through in no time
_MOST_GROWN = 100.0  # times the noise: such a μ is ε = 5000; far beyond, numbers would be absurd and overflow


def _worst(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), any batches and schedules, checkpoints released or not.
    Bound: the least μ = √Σ(a_t/ν_t)² over payments a_t ≥ 0 with z_0 = 0, z_t = L_t·z_{t−1} + s_t − a_t ≥ 0 and z_T = 0.
        In a bounded domain the payments may also start at any step, from z = D. s_t is 0 at steps without the record;
        of all places of a record the worst counts.
    Assumes: with a new order each epoch, a known Lipschitz constant and little growth within an epoch; a run short enough
        to compute step by step.
    Attained by: quadratic losses: it is exact for full batches, identical steps, L ≤ 1 and no domain; and without a domain
        for batches in a fixed order, as a supremum over losses with a clock, if gradients are not bounded and
        η·smoothness ≥ 1.
    Reference: docs/proofs.md, after Bok et al. 2024, Theorem C.3.
    """
    if _long_alike(process):
        push, factor, noise = (float(x[0]) for x in (process.sensitivity, process.lipschitz, process.noise))
        mu = from_anywhere(push, factor, noise, process.diameter, len(process))
        return Evidence(GaussianDP(mu), at_delta=lambda _: place_evidence(process, Place.WORST))
    return place_evidence(process, Place.WORST)


def _long_alike(process: Process) -> bool:
    """Whether there are many steps on random batches, all alike: a formula, and schedules for a certificate alone."""
    few = len(process) <= _FEW_STEPS or bool(process.releases)
    return process.batches.turns is Turns.FRESH and process.constant and not few


def _averaged(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), batches in a random and secret order, drawn once or each epoch.
    Bound: δ(ε) = the average of θ_ε(μ_j) over the places j of a record, μ_j the engine's for that place.
        With a new order each epoch, all epochs but the last count at their worst place.
    Assumes: a known Lipschitz constant, little growth within an epoch, a run short enough to compute step by step.
    Attained by: one epoch of two batches, to 1 %.
    Reference: the shift engine, averaged over the order (docs/proofs.md).
    """
    return place_evidence(process, Place.AVERAGE)


def _hidden(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), batches in a random and secret order, drawn once or each epoch.
    Bound: δ(ε) = Σ_k w_k·Σ_j (W_kj/y_k)·θ_{log y_k}(μ_kj), for good W ≥ 0 with Σ_k w_k·W_kj ≤ e^ε·w_j; y_k = Σ_j W_kj.
        w_k is the probability of place k, μ_kk the engine's with the steps of place k, and μ_kj with those of both places:
        the record at k against its neighbour at j is two records exchanged, one at each. With a new order each epoch,
        this is about the place in the last epoch, and all others count at their worst place.
    Assumes: a known Lipschitz constant; identical steps that never move iterates apart, or few batches; a run short enough
        to compute step by step.
    Attained by: one epoch of two batches, to 1 %.
    Reference: a hidden place (docs/proofs.md).
    """
    return place_evidence(process, Place.HIDDEN)


def own_evidence(process: Process) -> Evidence:
    """Return schedules for a record of each batch of a fixed order; it pays nothing where the run ends before its turn."""
    places = places_of(process, averaged=False)
    if (needed := work_of_turns(places, places.every)) > MOST_WORK:
        raise InvalidInput("too_much_work", field="steps", most=MOST_WORK, needed=needed)
    found, _ = schedules(process, places, [(place,) for place in range(places.every)])
    own = tuple(RecordSchedules(place, 0.0, stretches) for (place,), stretches in found.items())
    worst = max(record.mu for record in own)
    if not math.isfinite(worst):
        raise NoFiniteBound("shift_engine_not_finite", reason=process.reason)
    return Evidence(GaussianDP(worst), schedules=own, about=About.EACH_RECORD)


def own_mus(process: Process) -> Floats:
    """Return μ of a record of each batch, for batches in a fixed order; 0 where the run ends before the record's turn."""
    return np.array([record.mu for record in own_evidence(process).schedules])


def _finite_when_reshuffled(process: Process) -> Fact | None:
    return FINITE_LIPSCHITZ.failure(process) if process.batches.reshuffled else None


def _tame(process: Process) -> Fact | None:
    """Return how far a turn grows, if too far: with new orders it counts with what it may be at the end of its epoch."""
    if not process.batches.reshuffled or FINITE_LIPSCHITZ.failure(process) or process.contraction <= 1:
        return None
    grown = (
        max(float(pushes.max()) for pushes in new_orders(process, averaged=False).worst_pushes)
        / extremes(process.noise)[0]
    )
    return None if grown <= _MOST_GROWN else fact("grows_within_epoch", times_noise=grown, because=process.reason)


def _comparable(process: Process) -> Fact | None:
    """Return why places cannot be compared: of many, some stand for others, so that later ones must be no better."""
    if FINITE_LIPSCHITZ.failure(process) is not None:
        return None
    places = places_of(process, averaged=True)
    if places.later_is_no_better or places.count <= MOST_REPRESENTED:
        return None
    found = {"batches": places.count, "lipschitz": process.contraction}
    return fact("places_not_comparable", at_most=MOST_REPRESENTED, **found)


FINITE_IF_NEW = Assumption("finite_lipschitz_if_new", _finite_when_reshuffled)
TAME = Assumption("tame", _tame)
COMPARABLE = Assumption("comparable_places", _comparable)


def _short_enough(place: Place) -> Assumption:
    """Return the assumption that a run is short enough to compute step by step; asked where places are known at all."""
    known = (FINITE_LIPSCHITZ, COMPARABLE) if place is Place.HIDDEN else (FINITE_IF_NEW,)

    def failure(process: Process) -> Fact | None:
        if any(one.failure(process) is not None for one in known):
            return None
        if (needed := steps_to_go_through(process, place)) <= MOST_WORK:
            return None
        times = "pairs" if place is Place.HIDDEN else "batches"
        return fact("too_much_work", times=times, at_most=MOST_WORK, needed=needed)

    return Assumption("short_enough", failure)


FEW_ENOUGH_PLACES = _short_enough(Place.AVERAGE)
_COVERED = {features.CHANGING_STEPS} | features.IN_ORDER | features.ANY_CHECKPOINTS | features.ANY_NEIGHBOURS

SHIFT_ENGINE = Theorem(
    "shift-engine",
    "lastiterate, after Bok et al. 2024, Theorem C.3",
    "any schedule and any Lipschitz constants, worst record",
    _COVERED | features.ANY_BATCHES | {features.RANDOM_SIZES} | features.ANY_MAP,
    (FINITE_IF_NEW, TAME, _short_enough(Place.WORST)),
    _worst,
    places=partial(places_of, averaged=False),
    as_one=group_as_one,
)
RANDOM_ORDER = Theorem(
    "random-order",
    "lastiterate, the shift engine averaged over the order",
    "the order is random and secret: the average over the record's place",
    _COVERED | features.SECRET_PLACES | {features.RANDOM_SIZES} | features.ANY_MAP,
    (FINITE_LIPSCHITZ, TAME, FEW_ENOUGH_PLACES),
    _averaged,
    places=partial(places_of, averaged=True),
    of_group=placed_by_chance,
)
HIDDEN_PLACE = Theorem(
    "hidden-place",
    "lastiterate, a record's place in a secret order is hidden",
    "the order is random and secret: a place is also compared with other places",
    _COVERED | {features.ONE_ORDER, features.NEW_ORDERS} | features.ANY_MAP,
    (FINITE_LIPSCHITZ, TAME, COMPARABLE, _short_enough(Place.HIDDEN)),
    _hidden,
    places=partial(places_of, averaged=True),
)
