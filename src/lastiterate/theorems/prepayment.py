"""Prepayment: noise that came before a record's turn hides it, too.

The steps of a smooth loss nearly commute with what the record pushes, so a neighbour may be moved against the push before
the turn comes, a little at every step, and the turn then brings both together. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import ChosenSlack
from lastiterate.facts import Fact, fact
from lastiterate.kernel.places import Places
from lastiterate.kernel.prepaid import (
    Kept,
    Smooth,
    TooLarge,
    kept,
    largest_payment,
    longest,
    prepaid_mu,
    prepaid_places,
    when_prepaid,
)
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.progress import tracked
from lastiterate.runs.batches import Turns
from lastiterate.runs.optimizers import SGD
from lastiterate.runs.process import Process
from lastiterate.shift.momentum import Asked, Hidden, Turning, TurnsOfRecord, best_memory_path
from lastiterate.shift.prepay import best_path, paid_at_once, path_along
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
    FIXED_ORDER,
    IN_ORDER,
    MOMENTUM,
    ONE_ORDER,
    RANDOM_SIZES,
    SECRET_PLACES,
    WEIGHT_DECAY,
    Assumption,
)
from lastiterate.theorems.linear_optimiser import LINEAR, mu_of_square
from lastiterate.theorems.shift_engine import TAME, place_sizes, places_of
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
        mu = prepaid_mu(steps, smooth, keeping, path_along(steps, keeping, segments), largest)
    except TooLarge:
        raise
    except Refused:  # a path that leaves the range of floats
        mu = math.inf
    if mu > _LARGER * math.sqrt(float(np.square(steps.sensitivity / steps.noise).sum())):
        segments = paid_at_once(steps)
        mu = prepaid_mu(steps, smooth, keeping, path_along(steps, keeping, segments), largest)
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


# Prepayment with momentum: noise before a record's step hides it, too, where the push turns slowly.
#
# Proof: docs/proofs.md, "Linear optimisers".


_MOST_WORK = 400_000  # steps of single records: some seconds
_PREPAID = (1, 2, 4)  # so many turns, the last, and all, or none: what is prepaid for longer has turned more
_MOMENTUM_PAYMENTS = (0.5, 1.0, 2.0, 8.0)  # at most, in units of the push


def _turning(process: Process, slack: float, largest: float) -> Turning:
    """How far the push turns in a step, but for this probability, if no payment is larger than `largest` pushes."""
    optimizer, smooth, curvature = process.update.optimizer, smooth_of(process), process.update.curvature
    if not isinstance(optimizer, SGD) or isinstance(curvature, Fact):
        raise Refused(str(curvature))
    kept, noise = optimizer.momentum, float(process.noise[0])
    way = (float(smooth.movement[0]) + largest * float(process.sensitivity[0])) / (1 - kept)
    by_chance = noise * longest(smooth.rank, slack / len(process)) / math.sqrt((1 - kept) * (1 + kept))
    return Turning(optimizer.linear, *curvature, up(smooth.turning * (way + by_chance)))


def _square(process: Process, slack: float, place: int) -> float:
    """Σ payments² of a record with its turns at this place, the least of those tried; valid but for this probability.

    Some turns, the last, are prepaid, or none; what is paid for the others, which come before, is added. The larger a
    payment may be, the more the push may turn: a larger limit is tried where a smaller one excludes something.
    """
    every, steps = process.batches.per_epoch, len(process)
    if place >= steps:
        return 0.0
    hidden = _turning(process, slack, _MOMENTUM_PAYMENTS[0])
    causal = Hidden(hidden.linear, hidden.middle, hidden.half)
    record = TurnsOfRecord(causal, causal, 0, steps, every, (steps - 1 - place) % every)
    turns, least = np.arange(place, steps, every), up(record.square())
    prepaid = {min(one, len(turns)) for one in _PREPAID} | {len(turns)}
    for largest in _MOMENTUM_PAYMENTS:
        hidden = _turning(process, slack, largest)
        for last in sorted(prepaid):
            pushes, already = np.zeros(steps), record.payments(last)
            pushes[turns[len(turns) - last :]] = 1.0
            path = best_memory_path(hidden, Asked(pushes, hidden.linear.taps, np.arange(steps, dtype=np.intp), already))
            payments = hidden.payments(path, pushes) + already
            if float(payments[:-1].max(initial=0.0)) <= largest:
                prepaid.discard(last)
                least = min(least, up(float(np.square(payments).sum())))
    return least


def _mus(process: Process, slack: float) -> list[float]:
    """Of a record at each place; what rounding adds to a push is paid where it comes, on top."""
    every, smooth = process.batches.per_epoch, smooth_of(process)
    rough = float(smooth.rough[0]) / float(process.noise[0]) * math.sqrt(-(-len(process) // every))
    squares = [_square(process, slack, place) for place in range(every)]
    return [mu_of_square(process, square) + up(rough) if square else 0.0 for square in squares]


def _bound(process: Process) -> Evidence:
    """Update: v ← β·v − η∇f(X) + N(0, ν²), X ← X + v, batches in passes of one order, smooth losses.
    Bound: μ² = (s/ν)²·Σa_t², θ_0 = θ_T = 0, a_t = |θ_t − (1+β−m)θ_{t−1} + βθ_{t−2} − [its step]| + r·|θ_{t−1}|
        + γ·(|(1+β−m)θ_{t−1} − βθ_{t−2}| + β·|θ_{t−2}|), for the last uses of a record; what linear-optimiser has for the
        others is added. δ(ε) ≤ θ_ε(μ) + δ0, of the worst place, or on average if it is secret.
        γ = ℓ·((ηG + a_max)/(1−β) + νκ/√(1−β²)) bounds the change of a record's effect in one step, but for a
        probability δ0.
    Assumes: momentum, no decay, no projection and no proximal map, a known smoothness, bounded gradients, identical steps;
        only the last iterate is released.
    Attained by: quadratic losses where a record's effect is constant, three epochs of four batches, to 5 %.
    Reference: docs/proofs.md, "Linear optimisers".
    """

    def but_for(slack: float) -> Notion:
        mus = _mus(process, slack)
        if process.batches.turns is Turns.FIXED_ORDER:
            return GaussianDP(max(mus))
        sizes, total = place_sizes(process, len(mus))
        return AveragedGaussianDP(mus=mus, weights=sizes / total)

    return Evidence(ChosenSlack(but_for))


def _short(process: Process) -> Fact | None:
    needed = len(process) * process.batches.per_epoch
    if needed <= _MOST_WORK:
        return None
    return fact("too_much_work", times="batches_per_epoch", at_most=_MOST_WORK, needed=needed)


PREPAID_MOMENTUM = Theorem(
    "linear-optimiser/prepaid",
    "lastiterate, noise before a record's step, with momentum",
    "momentum, smooth losses: worst record, or the average over the record's place",
    {FIXED_ORDER, ONE_ORDER, MOMENTUM} | IN_ORDER | ANY_NEIGHBOURS,
    (
        SEVERAL,
        LINEAR,
        SMOOTH,
        Assumption("short_enough", _short),
    ),
    _bound,
    functions=1,
)
