"""The shift engine as a theorem: any schedule, any Lipschitz constants, checkpoints, every record's own place."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.errors import InvalidInput
from lastiterate.facts import Fact, fact
from lastiterate.kernel.places import MOST_PLACES, NewOrders, Places
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.progress import tracked
from lastiterate.runs.batches import Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.shift.distance_bounds import from_anywhere
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.evidence import About, Evidence, NoFiniteBound, RecordSchedules, Stretch
from lastiterate.theorems.features import (
    ANY_BATCHES,
    ANY_CHECKPOINTS,
    ANY_MAP,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    FINITE_LIPSCHITZ,
    IN_ORDER,
    RANDOM_SIZES,
    SECRET_PLACES,
    Assumption,
)
from lastiterate.theorems.groups import group_as_one, placed_by_chance
from lastiterate.theorems.theorem import Theorem

# The places of a record in a run, as the kernel knows them, and how much work they are.


_OVERHEAD = 500  # one place costs about as much as so many steps
# Steps, far beyond every limit: then it is not asked whether steps can be merged, which takes time itself.
_TOO_MANY = 1e10


def places_of(process: Process, averaged: bool) -> Places:
    """The places of a record in this run."""
    if process.batches.reshuffled:
        return new_orders(process, averaged)
    return Places(_steps(process), _every(process), process.releases, averaged, **_of_others(process, averaged))


def new_orders(process: Process, averaged: bool) -> NewOrders:
    """The same, where each epoch has its own order."""
    return NewOrders(_steps(process), _every(process), process.releases, averaged, **_of_others(process, averaged))


def _of_others(process: Process, averaged: bool) -> dict[str, Any]:
    return {"sizes": _sizes(process), "exchange": exchange_of(process, averaged)}


def _sizes(process: Process) -> tuple[int, int]:
    """Of each batch, and of the last of an epoch; where all are alike, nothing but that counts."""
    return (process.batches.largest, process.batches.last_size) if process.batches.uneven else (1, 1)


def place_sizes(process: Process, count: int) -> tuple[Floats, int]:
    """How many records are at each of the first so many places of an epoch, in some unit, and at all of them."""
    usual, last = _sizes(process)
    return process.batches.pattern(usual, last, count), usual * (process.batches.per_epoch - 1) + last


def exchange_of(process: Process, averaged: bool = True) -> float:
    """How many times as far as beside its neighbour a record pushes beside others, where these may be at its place.

    A neighbour's record that contributes nothing is halfway between the gradients of two records that are opposite.
    """
    return 2.0 if averaged and not process.adjacency.replaces else 1.0


def _steps(process: Process) -> Steps:
    return Steps(process.sensitivity, process.noise, process.lipschitz, process.diameter)


def _every(process: Process) -> int:
    """One turn in so many steps. In a random batch the record may be at every step, and more turns never help it."""
    return process.batches.per_epoch if process.batches.passes and not process.members else 1


def most_places(places: Places) -> int:
    """At most so many places are wanted."""
    if isinstance(places, NewOrders):
        return min(places.last_piece, MOST_PLACES) if places.later_is_no_better else places.last_piece
    if places.alike or (places.averaged and places.later_is_no_better):
        return min(places.every, 2 * MOST_PLACES) if places.averaged else 1
    return places.every if places.averaged else min(places.every, len(places.steps))


def work(places: Places) -> float:
    """About how many steps there are to go through."""
    steps = len(places.steps)
    if places.every == 1:
        return steps
    of_turns = work_of_turns(places, most_places(places))
    return steps + places.every * places.last_piece + of_turns if isinstance(places, NewOrders) else of_turns


def work_of_turns(places: Places, count: int) -> float:
    """The same for so many places, each with its own turns."""
    if count * _OVERHEAD > _TOO_MANY or places.whole_stretches[0].dense:
        return len(places.steps) * count
    turns = 2 * len(places.steps) / places.every
    return count * (turns + _OVERHEAD * len(places.whole_stretches))


# The shift engine as a theorem: any schedule, any Lipschitz constants, checkpoints, every record's own place.
#
# Generalises Bok et al. 2024, Theorem C.3, to steps that differ; the best schedule is an isotonic regression. Proofs:
# docs/proofs.md.


MOST_WORK = 40_000_000  # steps: a third of a second a million, a quarter of a minute in all; a limit of patience
_FEW_STEPS = 20_000  # are gone through in no time
_MOST_GROWN = 100.0  # times the noise: such a μ is ε = 5000; far beyond, numbers would be absurd and overflow


def shift_evidence(process: Process, averaged: bool) -> Evidence:
    """The best schedules for a record at each place that matters, over all stretches between releases."""
    places = places_of(process, averaged)
    found = schedules_of(places, places.wanted)
    mus = [record.mu for record in found]
    if not all(map(math.isfinite, mus)):
        raise NoFiniteBound("no_finite_schedule")
    weights = [record.weight for record in found]
    notion = AveragedGaussianDP(mus=mus, weights=weights) if averaged else GaussianDP(max(mus))
    return Evidence(notion, schedules=found)


def schedules_of(places: Places, wanted: dict[int, float]) -> tuple[RecordSchedules, ...]:
    """The best for each of these places, with its probability."""
    return tuple(
        RecordSchedules(place, weight, best_stretches(places, place))
        for place, weight in tracked(list(wanted.items()), "records")
    )


def best_stretches(places: Places, *at: int) -> tuple[Stretch, ...]:
    """The best schedules for a record at this place, or for one at two places."""
    return tuple(_best_stretch(steps) for steps in places.stretches(*at))


def _best_stretch(steps: Steps | None) -> Stretch:
    return Stretch(0.0, None) if steps is None else Stretch(*best_schedule(steps))


def own_evidence(process: Process) -> Evidence:
    """For a record of each batch of a fixed order; nothing is paid where the run ends before the record's turn."""
    places = places_of(process, averaged=False)
    if (needed := work_of_turns(places, places.every)) > MOST_WORK:
        raise InvalidInput("too_much_work", field="steps", most=MOST_WORK, needed=needed)
    found = schedules_of(places, dict.fromkeys(range(places.every), 0.0))
    worst = max(record.mu for record in found)
    if not math.isfinite(worst):
        raise NoFiniteBound("shift_engine_not_finite", reason=process.reason)
    return Evidence(GaussianDP(worst), schedules=found, about=About.EACH_RECORD)


def own_mus(process: Process) -> Floats:
    """μ of a record of each batch, for batches in a fixed order; 0 where the run ends before the record's turn."""
    return np.array([record.mu for record in own_evidence(process).schedules])


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
        return Evidence(GaussianDP(mu), at_delta=lambda _: shift_evidence(process, averaged=False))
    return shift_evidence(process, averaged=False)


def _long_alike(process: Process) -> bool:
    """Many steps on random batches, all alike: a formula, and schedules only for a certificate, which hardly ever asks."""
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
    return shift_evidence(process, averaged=True)


def _little_enough(averaged: bool) -> Assumption:
    def failure(process: Process) -> Fact | None:
        if _finite_when_reshuffled(process) is not None:
            return None
        needed = work(places_of(process, averaged))
        return None if needed <= MOST_WORK else fact("too_much_work", times="batches", at_most=MOST_WORK, needed=needed)

    return Assumption("short_enough", failure)


def _finite_when_reshuffled(process: Process) -> Fact | None:
    return FINITE_LIPSCHITZ.failure(process) if process.batches.reshuffled else None


def _tame(process: Process) -> Fact | None:
    """Where each epoch has a new order, a turn counts with what it may grow to by the end of its epoch."""
    if not process.batches.reshuffled or FINITE_LIPSCHITZ.failure(process) or process.contraction <= 1:
        return None
    grown = (
        max(float(pushes.max()) for pushes in new_orders(process, averaged=False).worst_pushes)
        / extremes(process.noise)[0]
    )
    return None if grown <= _MOST_GROWN else fact("grows_within_epoch", times_noise=grown, because=process.reason)


FEW_ENOUGH_PLACES = _little_enough(averaged=True)
TAME = Assumption("tame", _tame)
_KNOWN = Assumption("finite_lipschitz_if_new", _finite_when_reshuffled)

SHIFT_ENGINE = Theorem(
    "shift-engine",
    "lastiterate, after Bok et al. 2024, Theorem C.3",
    "any schedule and any Lipschitz constants, worst record",
    {RANDOM_SIZES, CHANGING_STEPS} | ANY_BATCHES | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP | ANY_NEIGHBOURS,
    (_KNOWN, TAME, _little_enough(averaged=False)),
    _worst,
    places=partial(places_of, averaged=False),
    as_one=group_as_one,
)
RANDOM_ORDER = Theorem(
    "random-order",
    "lastiterate, the shift engine averaged over the order",
    "the order is random and secret: the average over the record's place",
    {RANDOM_SIZES, CHANGING_STEPS} | SECRET_PLACES | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP | ANY_NEIGHBOURS,
    (FINITE_LIPSCHITZ, TAME, FEW_ENOUGH_PLACES),
    _averaged,
    places=partial(places_of, averaged=True),
    of_group=placed_by_chance,
)
