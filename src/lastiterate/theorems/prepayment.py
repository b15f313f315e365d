"""Prepayment: noise that came before a record's turn hides it, too.

The steps of a smooth loss nearly commute with what the record pushes, so a neighbour may be moved against the push before
the turn comes, a little at every step, and the turn then brings both together. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from lastiterate.curves.averaged import AveragedGaussianDP
from lastiterate.curves.chosen_slack import ChosenSlack
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.facts import Fact, fact
from lastiterate.kernel.places import Places
from lastiterate.kernel.prepaid import (
    Kept,
    Smooth,
    TooLarge,
    kept,
    largest_payment,
    prepaid_mu,
    prepaid_places,
    when_prepaid,
)
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.progress import tracked
from lastiterate.runs.process import Process
from lastiterate.shift.prepay import best_path, paid_at_once
from lastiterate.theorems.evidence import (
    Evidence,
    NoFiniteBound,
    Path,
    Prepaying,
    RecordSchedules,
    Stretch,
    together,
)
from lastiterate.theorems.features import (
    ANY_CHECKPOINTS,
    ANY_NEIGHBOURS,
    ANY_PASSES,
    CHANGING_STEPS,
    IN_ORDER,
    RANDOM_SIZES,
    SECRET_PLACES,
    WEIGHT_DECAY,
    Assumption,
)
from lastiterate.theorems.places import places_of
from lastiterate.theorems.shift_engine import TAME
from lastiterate.theorems.theorem import Theorem

_LARGER = 1 + 1e-6  # than composition: where factors are huge, rounding spoils what is found
# Step by step in Python: a fifth of a microsecond where steps are alike, eight where they differ; ten seconds in all.
_MOST_ALIKE, _MOST_DIFFERENT = 30_000_000, 1_200_000
# Times the usual payments, at most; in the end so large that nothing is prepaid.
_PAYMENTS = (1.0, 4.0, 16.0, 256.0, 1e4, 1e20)


def smooth_of(process: Process) -> Smooth:
    """Where the assumptions of these theorems hold."""
    if isinstance(process.smooth, Fact):
        raise Refused(str(process.smooth))
    return process.smooth


def prepaid_places_of(process: Process, averaged: bool) -> Places:
    """The places of a record, where its push may be prepaid."""
    return when_prepaid(places_of(process, averaged), smooth_of(process))


def prepaid_evidence(process: Process, averaged: bool, slack: float) -> Evidence:
    """The best paths for a record at each place that matters, but for a probability `slack`."""
    places = prepaid_places_of(process, averaged)
    wanted = prepaid_places(places, smooth_of(process), math.inf, 1.0)
    stretches, prepaying = prepaid_stretches(process, places, [(place,) for place in wanted], slack, functions=1)
    found = tuple(RecordSchedules(place, weight, stretches[(place,)]) for place, weight in wanted.items())
    mus, weights = [record.mu for record in found], [record.weight for record in found]
    if not all(map(math.isfinite, mus)):
        raise NoFiniteBound("prepayment_not_finite")
    notion = AveragedGaussianDP(mus=mus, weights=weights) if averaged else GaussianDP(max(mus))
    return Evidence(notion, schedules=found, prepaying=prepaying)


def prepaid_stretches(
    process: Process, places: Places, asked: list[tuple[int, ...]], slack: float, functions: int
) -> tuple[dict[tuple[int, ...], tuple[Stretch, ...]], Prepaying]:
    """For a record at each of these places, or at each two, its paths; tried again if a payment is too large."""
    smooth, exchange = smooth_of(process), places.exchange if any(len(at) > 1 for at in asked) else 1.0
    for times in _PAYMENTS:
        largest = times * largest_payment(places.steps, smooth, exchange)
        keeping = kept(smooth, process.noise, largest, slack, functions)
        try:
            found = {at: _stretches(places, at, smooth, keeping, largest) for at in tracked(asked, "records")}
            return found, Prepaying(functions, slack, largest)
        except TooLarge:
            continue
    raise NoFiniteBound("prepayment_not_finite")


def _stretches(
    places: Places, at: tuple[int, ...], smooth: Smooth, keeping: Kept, largest: float
) -> tuple[Stretch, ...]:
    met, facts = (
        zip(places.dense(*at), places.ends, strict=True),
        smooth.pushed(places.exchange if len(at) > 1 else 1.0),
    )
    return tuple(_stretch(steps, facts.part(*ends), keeping.part(*ends), largest) for steps, ends in met)


def _stretch(steps: Steps, smooth: Smooth, keeping: Kept, largest: float) -> Stretch:
    if not steps.sensitivity.any():
        return Stretch(0.0, None)
    segments = best_path(steps, keeping)
    try:
        mu = prepaid_mu(steps, smooth, keeping, segments, largest)
    except TooLarge:
        raise
    except Refused:  # a path that leaves the range of floats
        mu = math.inf
    if mu > _LARGER * math.sqrt(float(np.square(steps.sensitivity / steps.noise).sum())):
        segments = paid_at_once(steps)
        mu = prepaid_mu(steps, smooth, keeping, segments, largest)
    return Stretch(mu, Path(tuple(segments)))


def for_any_slack(evidence: Callable[[float], Evidence]) -> Evidence:
    """With an exception that is chosen for the δ that is asked for."""
    found = lru_cache(maxsize=4)(evidence)  # a certificate asks for what an ε was found by; paths may be long
    return Evidence(
        ChosenSlack(lambda slack: found(slack).notion),
        at_delta=lambda log_delta: found(ChosenSlack.exception(ChosenSlack.power(log_delta))),
    )


def own_prepaid_mus(process: Process, slack: float) -> Floats:
    """μ of a record of each batch of a fixed order, but for a probability `slack`; 0 where the run ends before its turn."""
    places = places_of(process, averaged=False)
    asked: list[tuple[int, ...]] = [(place,) for place in range(places.every)]
    found, _ = prepaid_stretches(process, places, asked, slack, functions=1)
    return np.array([together(found[at]) for at in asked])


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
    return for_any_slack(partial(prepaid_evidence, process, False))


def _averaged(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in a random and secret order, drawn once or each epoch, smooth losses.
    Bound: δ(ε) = δ0 + the average of θ_ε(μ_j) over the places j of a record, μ_j by prepayment for that place.
        With a new order each epoch, all epochs but the last count at their worst place.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps; with a new
        order each epoch, identical steps and little growth within an epoch.
    Attained by: quadratic losses, where a record's effect is constant and the place is known.
    Reference: prepayment, averaged over the order (docs/proofs.md).
    """
    return for_any_slack(partial(prepaid_evidence, process, True))


def _smooth(process: Process) -> Fact | None:
    return None if isinstance(process.smooth, Smooth) else _not_smooth(process.smooth)


def _not_smooth(reason: Fact) -> Fact:
    """Gradients without a bound are told together with what else is lacking."""
    unbounded = reason.code == "gradients_unbounded"
    return fact("lacks", what="clipped_gradients") if unbounded else fact("not_prepayable", because=reason)


def _alike_if_new(process: Process) -> Fact | None:
    if not process.batches.reshuffled or not isinstance(process.smooth, Smooth):
        return None
    alike = process.constant and process.smooth.alike
    return None if alike else fact("steps_not_alike_if_new")


def _several(process: Process) -> Fact | None:
    return None if process.batches.per_epoch > 1 else fact("not_several_batches")


def _little_enough(averaged: bool) -> Assumption:
    def failure(process: Process) -> Fact | None:
        if any(one.failure(process) is not None for one in (SMOOTH, ALIKE_IF_NEW, TAME)):
            return None
        one_for_all = not averaged and _quick(process)
        return too_much_to_prepay(process, 1 if one_for_all else process.batches.per_epoch)

    return Assumption("short_enough", failure)


def too_much_to_prepay(process: Process, records: int) -> Fact | None:
    needed, most = len(process) * records, _MOST_ALIKE if _quick(process) else _MOST_DIFFERENT
    return None if needed <= most else fact("too_much_work", times="batches", at_most=most, needed=needed)


def _quick(process: Process) -> bool:
    """All steps alike that bring nothing apart: the best path is found without going through all of them."""
    alike = process.constant and isinstance(process.smooth, Smooth) and process.smooth.alike
    return alike and process.contraction <= 1


SMOOTH = Assumption("smooth_loss", _smooth)
ALIKE_IF_NEW = Assumption("alike_if_new", _alike_if_new)
SEVERAL = Assumption("several_batches", _several)
LITTLE_TO_PREPAY = _little_enough(averaged=True)

PREPAYMENT = Theorem(
    "prepayment",
    "lastiterate, noise before a record's step",
    "passes over the data, smooth losses, any schedule in a fixed order; worst record",
    {RANDOM_SIZES, CHANGING_STEPS, WEIGHT_DECAY} | ANY_PASSES | IN_ORDER | ANY_CHECKPOINTS | ANY_NEIGHBOURS,
    (
        SEVERAL,
        SMOOTH,
        ALIKE_IF_NEW,
        TAME,
        _little_enough(averaged=False),
    ),
    _worst,
    places=partial(prepaid_places_of, averaged=False),
    functions=1,
)
PREPAID_ORDER = Theorem(
    "prepayment/random-order",
    "lastiterate, noise before a record's step, averaged over the order",
    "shuffled batches, smooth losses: the average over the record's place",
    {RANDOM_SIZES, CHANGING_STEPS, WEIGHT_DECAY} | SECRET_PLACES | IN_ORDER | ANY_CHECKPOINTS | ANY_NEIGHBOURS,
    (
        SEVERAL,
        SMOOTH,
        ALIKE_IF_NEW,
        TAME,
        LITTLE_TO_PREPAY,
    ),
    _averaged,
    places=partial(prepaid_places_of, averaged=True),
    functions=1,
)
