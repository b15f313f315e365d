"""Prepayment: noise that came before a record's turn hides it, too.

The steps of a smooth loss nearly commute with what the record pushes, so a neighbour may be moved against the push before
the turn comes, a little at every step, and the turn then brings both together. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from lastiterate.algorithms.batches import ONCE_AN_EPOCH, SHUFFLED
from lastiterate.algorithms.process import Process
from lastiterate.kernel.places import Places
from lastiterate.kernel.prepaid import Kept, Smooth, kept, largest_payment, prepaid_mu, prepaid_places
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.averaged import AveragedGaussianDP
from lastiterate.privacy.chosen_slack import ChosenSlack
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.progress import tracked
from lastiterate.shift.prepay import best_path
from lastiterate.theorems.assumptions import batches
from lastiterate.theorems.evidence import Evidence, Path, Prepaying, RecordSchedules, Stretch
from lastiterate.theorems.places import places_of
from lastiterate.theorems.shift_engine import TAME
from lastiterate.theorems.theorem import Assumption, Theorem

# Step by step in Python: a fifth of a microsecond where steps are alike, eight where they differ; ten seconds in all.
_MOST_ALIKE, _MOST_DIFFERENT = 30_000_000, 1_200_000


def smooth_of(process: Process) -> Smooth:
    """Where the assumptions of these theorems hold."""
    if isinstance(process.smooth, str):
        raise Refused(process.smooth)
    return process.smooth


def prepaid_evidence(process: Process, averaged: bool, slack: float) -> Evidence:
    """The best paths for a record at each place that matters, but for a probability `slack`."""
    places = places_of(process, averaged)
    wanted = prepaid_places(places, smooth_of(process), math.inf)
    found, prepaying = prepaid_schedules(process, places, wanted, slack, functions=1)
    mus = [record.mu for record in found]
    weights = [record.weight for record in found]
    notion = AveragedGaussianDP(mus=mus, weights=weights) if averaged else GaussianDP(max(mus))
    return Evidence(notion, schedules=found, prepaying=prepaying)


def prepaid_schedules(
    process: Process, places: Places, wanted: dict[int, float], slack: float, functions: int
) -> tuple[tuple[RecordSchedules, ...], Prepaying]:
    """For each of these places its paths; no payment that prepays is larger than the largest push, or it is tried again."""
    smooth = smooth_of(process)
    largest = largest_payment(places.steps, smooth)
    for _ in range(3):
        keeping = kept(smooth, process.noise, largest, slack, functions)
        try:
            found = tuple(
                RecordSchedules(place, weight, _stretches(places, place, smooth, keeping, largest))
                for place, weight in tracked(list(wanted.items()), "records")
            )
            return found, Prepaying(functions, slack, largest)
        except Refused:
            largest *= 4.0
    raise Refused("no payments are small enough.")


def _stretches(places: Places, place: int, smooth: Smooth, keeping: Kept, largest: float) -> tuple[Stretch, ...]:
    met = zip(places.dense(place), places.ends, strict=True)
    return tuple(_stretch(steps, smooth.part(*ends), keeping.part(*ends), largest) for steps, ends in met)


def _stretch(steps: Steps, smooth: Smooth, keeping: Kept, largest: float) -> Stretch:
    if not steps.sensitivity.any():
        return Stretch(0.0, None)
    segments = best_path(steps, keeping)
    return Stretch(prepaid_mu(steps, smooth, keeping, segments, largest), Path(tuple(segments)))


def _evidence(process: Process, averaged: bool) -> Evidence:
    def at(slack: float) -> Notion:
        return prepaid_evidence(process, averaged, slack).notion

    def for_delta(log_delta: float) -> Evidence:
        return prepaid_evidence(process, averaged, 10.0 ** -ChosenSlack.power(log_delta))

    return Evidence(ChosenSlack(at), at_delta=for_delta)


def own_prepaid_mus(process: Process, slack: float) -> Floats:
    """μ of a record of each batch of a fixed order, but for a probability `slack`; 0 where the run ends before its turn."""
    places = places_of(process, averaged=False)
    found, _ = prepaid_schedules(process, places, dict.fromkeys(range(places.every), 0.0), slack, functions=1)
    return np.array([record.mu for record in found])


def _worst(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in passes, smooth losses; checkpoints released or not.
    Bound: the least μ = √Σ(a_t/ν_t)² over paths b, ρ ≥ 0, zero at both ends and at releases, with b_t ≥ c·b_{t−1} − s_t, and
        a_t = max(0, s_t + b_t − lo·b_{t−1} + L·ρ_{t−1} − ρ_t), lo = c − ω − c·γ; δ(ε) ≤ θ_ε(μ) + δ0.
        φ maps differences into the ball around c·(x − y) of radius ω·|x − y|, and γ is how far the push can turn in one
        step, but for a probability δ0, which is chosen. Of all places of a record the worst counts.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps; where each
        epoch has a new order, steps that are all alike and little growth within an epoch.
    Attained by: quadratic losses with curvature that changes over time, where the push does not turn.
    Reference: docs/proofs.md, "Prepayment".
    """
    return _evidence(process, averaged=False)


def _averaged(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in a random and secret order, drawn once or each epoch, smooth losses.
    Bound: δ(ε) = δ0 + the average of θ_ε(μ_j) over the places j of a record, μ_j by prepayment for that place.
        With a new order each epoch, all epochs but the last count at their worst place.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps; where each
        epoch has a new order, steps that are all alike and little growth within an epoch.
    Attained by: quadratic losses, where the push does not turn and the place is known.
    Reference: prepayment, averaged over the order (docs/proofs.md).
    """
    return _evidence(process, averaged=True)


def _smooth(process: Process) -> str | None:
    return None if isinstance(process.smooth, Smooth) else f"it needs a push that turns slowly, but {process.smooth}"


def _alike_if_new(process: Process) -> str | None:
    if not process.batches.reshuffled or not isinstance(process.smooth, Smooth):
        return None
    alike = process.constant and process.smooth.alike
    return None if alike else "with a new order each epoch it needs all steps alike, but step sizes or noise change"


def _several(process: Process) -> str | None:
    return None if process.batches.per_epoch > 1 else "it needs several batches in an epoch, but there is one"


def _little_enough(averaged: bool) -> Assumption:
    def failure(process: Process) -> str | None:
        if _smooth(process) or _alike_if_new(process) or TAME.failure(process):
            return None
        alike = process.constant and isinstance(process.smooth, Smooth) and process.smooth.alike
        count = process.batches.per_epoch if averaged or not alike or process.contraction > 1 else 1
        needed, most = len(process) * count, _MOST_ALIKE if alike and process.contraction <= 1 else _MOST_DIFFERENT
        return (
            None
            if needed <= most
            else f"it would have to look at {needed:.3g} steps of single records, more than {most:.3g}"
        )

    return Assumption("the run is short enough to go through", failure)


SMOOTH = Assumption("a smooth push: no projection, no proximal map, bounded gradients, known smoothness", _smooth)
ALIKE_IF_NEW = Assumption("where each epoch has a new order, all steps alike", _alike_if_new)
SEVERAL = Assumption("several batches in an epoch", _several)

PREPAYMENT = Theorem(
    "prepayment",
    "lastiterate, noise before a record's turn",
    "passes over the data, smooth losses, any schedule in a fixed order; worst record",
    (
        batches("passes over the data", *ONCE_AN_EPOCH),
        SEVERAL,
        SMOOTH,
        ALIKE_IF_NEW,
        TAME,
        _little_enough(averaged=False),
    ),
    _worst,
    places=partial(places_of, averaged=False),
    functions=1,
)
PREPAID_ORDER = Theorem(
    "prepayment/random-order",
    "lastiterate, noise before a record's turn, averaged over the order",
    "shuffled batches, smooth losses: the average over the record's place",
    (batches("shuffled batches", *SHUFFLED), SEVERAL, SMOOTH, ALIKE_IF_NEW, TAME, _little_enough(averaged=True)),
    _averaged,
    places=partial(places_of, averaged=True),
    functions=1,
)
