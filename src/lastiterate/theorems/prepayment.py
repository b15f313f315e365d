"""Prepayment: noise that came before a record's turn hides it, too; at the worst, an average, or a hidden place.

The steps of a smooth loss nearly commute with what the record pushes, so a neighbour may be moved against the push before
the turn comes, a little at every step, and the turn then brings both together. Proof: docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from lastiterate.curves.transformed import ChosenSlack
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process
from lastiterate.theorems import features
from lastiterate.theorems.evidence import Evidence, together
from lastiterate.theorems.features import FINITE_LIPSCHITZ, Assumption
from lastiterate.theorems.places import (
    Place,
    place_evidence,
    places_of,
    prepaid_places_of,
    prepaid_records,
    schedules,
)
from lastiterate.theorems.shift_engine import COMPARABLE, TAME
from lastiterate.theorems.theorem import Theorem

# Step by step in Python: a fifth of a microsecond where steps are alike, eight where they differ; ten seconds in all.
_MOST_ALIKE, _MOST_DIFFERENT = 30_000_000, 1_200_000


def _worst(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in passes, smooth losses; checkpoints released or not.
    Bound: the least μ = √Σ(a_t/ν_t)² over paths b, ρ ≥ 0, zero at both ends and at releases, with b_t ≥ c·b_{t−1} − s_t, and
        a_t = max(0, s_t + b_t − lo·b_{t−1} + L·ρ_{t−1} − ρ_t), lo = c − ω − c·γ; δ(ε) ≤ θ_ε(μ) + δ0.
        φ maps differences into the ball around c·(x − y) of radius ω·|x − y|, and γ bounds the change of a record's effect
        in one step, except with a chosen probability δ0. Of all places of a record the worst counts.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps; with a new
        order each epoch, identical steps and little growth within an epoch.
    Attained by: quadratic losses with curvature that changes over time, where a record's effect is constant.
    Reference: docs/proofs.md, "Prepayment".
    """
    return _for_any_slack(partial(place_evidence, process, Place.WORST))


def _averaged(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in a random and secret order, drawn once or each epoch, smooth losses.
    Bound: δ(ε) = δ0 + the average of θ_ε(μ_j) over the places j of a record, μ_j by prepayment for that place.
        With a new order each epoch, all epochs but the last count at their worst place.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps; with a new
        order each epoch, identical steps and little growth within an epoch.
    Attained by: quadratic losses, where a record's effect is constant and the place is known.
    Reference: prepayment, averaged over the order (docs/proofs.md).
    """
    return _for_any_slack(partial(place_evidence, process, Place.AVERAGE))


def _hidden(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in a random and secret order, drawn once or each epoch, smooth losses.
    Bound: δ(ε) = δ0 + Σ_k w_k·Σ_j (W_kj/y_k)·θ_{log y_k}(μ_kj), as for a hidden place, with μ_kk and μ_kj by prepayment.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps;
        identical steps that never move iterates apart, or few batches; a run short enough to compute step by step.
    Attained by: two batches of quadratic losses, where a record's effect is constant, to 1 %.
    Reference: prepayment and a hidden place (docs/proofs.md).
    """
    return _for_any_slack(partial(place_evidence, process, Place.HIDDEN))


def _for_any_slack(evidence: Callable[[float], Evidence]) -> Evidence:
    """Return the evidence with an exception whose probability is chosen for the δ that is asked for."""
    found = lru_cache(maxsize=4)(evidence)  # a certificate asks for what an ε was found by; paths may be long
    return Evidence(
        ChosenSlack(lambda slack: found(slack).notion),
        at_delta=lambda log_delta: found(ChosenSlack.exception(ChosenSlack.power(log_delta))),
    )


def own_prepaid_mus(process: Process, slack: float) -> Floats:
    """Return μ of a record of each batch of a fixed order, but for a probability; 0 where the run ends before its turn."""
    places = places_of(process, averaged=False)
    found, _ = schedules(process, places, [(place,) for place in range(places.every)], slack)
    return np.array([together(stretches) for stretches in found.values()])


def _smooth(process: Process) -> Fact | None:
    if isinstance(process.smooth, Smooth):
        return None
    # Gradients without a bound are told together with what else is lacking.
    unbounded = process.smooth.code == "gradients_unbounded"
    return fact("lacks", what="clipped_gradients") if unbounded else fact("not_prepayable", because=process.smooth)


def _alike_if_new(process: Process) -> Fact | None:
    if not process.batches.reshuffled or not isinstance(process.smooth, Smooth):
        return None
    alike = process.constant and process.smooth.alike
    return None if alike else fact("steps_not_alike_if_new")


def _several(process: Process) -> Fact | None:
    return None if process.batches.per_epoch > 1 else fact("not_several_batches")


SEVERAL = Assumption("several_batches", _several)
SMOOTH = Assumption("smooth_loss", _smooth)
ALIKE_IF_NEW = Assumption("alike_if_new", _alike_if_new)


def _short_enough(place: Place) -> Assumption:
    """Return the assumption that a run is short enough to compute step by step; asked where its steps can prepay."""
    hidden = (FINITE_LIPSCHITZ, COMPARABLE) if place is Place.HIDDEN else ()
    known = (SMOOTH, ALIKE_IF_NEW, TAME, *hidden)

    def failure(process: Process) -> Fact | None:
        if any(one.failure(process) is not None for one in known):
            return None
        one_for_all = place is Place.WORST and _quick(process)
        return too_much_to_prepay(process, 1 if one_for_all else prepaid_records(process, place))

    return Assumption("short_enough", failure)


def too_much_to_prepay(process: Process, records: int) -> Fact | None:
    """Return why paths that prepay cannot be found for so many records, or None if they can."""
    needed, most = len(process) * records, _MOST_ALIKE if _quick(process) else _MOST_DIFFERENT
    return None if needed <= most else fact("too_much_work", times="batches", at_most=most, needed=needed)


def _quick(process: Process) -> bool:
    """Whether all steps are alike and bring nothing apart: the best path is found without going through all of them."""
    alike = process.constant and isinstance(process.smooth, Smooth) and process.smooth.alike
    return alike and process.contraction <= 1


LITTLE_TO_PREPAY = _short_enough(Place.AVERAGE)
_STEPS = {features.CHANGING_STEPS, features.WEIGHT_DECAY}
_COVERED = _STEPS | features.IN_ORDER | features.ANY_CHECKPOINTS | features.ANY_NEIGHBOURS

PREPAYMENT = Theorem(
    "prepayment",
    "lastiterate, noise before a record's step",
    "passes over the data, smooth losses, any schedule in a fixed order; worst record",
    _COVERED | features.ANY_PASSES | {features.RANDOM_SIZES},
    (SEVERAL, SMOOTH, ALIKE_IF_NEW, TAME, _short_enough(Place.WORST)),
    _worst,
    places=partial(prepaid_places_of, averaged=False),
    functions=1,
)
PREPAID_ORDER = Theorem(
    "prepayment/random-order",
    "lastiterate, noise before a record's step, averaged over the order",
    "shuffled batches, smooth losses: the average over the record's place",
    _COVERED | features.SECRET_PLACES | {features.RANDOM_SIZES},
    (SEVERAL, SMOOTH, ALIKE_IF_NEW, TAME, LITTLE_TO_PREPAY),
    _averaged,
    places=partial(prepaid_places_of, averaged=True),
    functions=1,
)
PREPAID_HIDDEN_PLACE = Theorem(
    "hidden-place/prepaid",
    "lastiterate, a hidden place and noise before a record's step",
    "shuffled batches, smooth losses: noise before the step and other places hide a record",
    _COVERED | {features.ONE_ORDER, features.NEW_ORDERS},
    (SEVERAL, SMOOTH, ALIKE_IF_NEW, TAME, COMPARABLE, _short_enough(Place.HIDDEN)),
    _hidden,
    places=partial(prepaid_places_of, averaged=True),
    functions=3,
)
