"""A hidden place: in a random and secret order it is not known where a record was, and this hides more than the average.

Where the record's turn comes late, it is easy to see; but a neighbour at another place may have left the same trace, with
the two records of these places exchanged. So a late place is compared with the neighbour's other places, too.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.facts import Fact, fact
from lastiterate.kernel.hidden import pair_mus
from lastiterate.kernel.places import Places
from lastiterate.kernel.prepaid import prepaid_places
from lastiterate.progress import tracked
from lastiterate.runs.process import Process
from lastiterate.theorems.evidence import Evidence, NoFiniteBound, PairSchedules, RecordSchedules
from lastiterate.theorems.features import (
    ANY_CHECKPOINTS,
    ANY_MAP,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    FINITE_LIPSCHITZ,
    IN_ORDER,
    NEW_ORDERS,
    ONE_ORDER,
    WEIGHT_DECAY,
    Assumption,
)
from lastiterate.theorems.prepayment import (
    ALIKE_IF_NEW,
    SEVERAL,
    SMOOTH,
    for_any_slack,
    prepaid_places_of,
    prepaid_stretches,
    smooth_of,
    too_much_to_prepay,
)
from lastiterate.theorems.shift_engine import (
    MOST_WORK,
    TAME,
    best_stretches,
    places_of,
    schedules_of,
    work,
    work_of_turns,
)
from lastiterate.theorems.theorem import Theorem

MOST_REPRESENTED = 24  # places of which every pair is looked at; 276 pairs
_MOST_PREPAID = 10  # the same where a pair takes longer to look at
_NEAR_THE_END = 6  # places that count for themselves: there the record is easy to see
_FARTHER = 1.15  # times as far from the end is the next that stands for others, unless there would be too many
_NOT_COMPARED = 1e100  # a μ that stands for ∞: a place beside itself, which is not asked for


def hidden_notion(process: Process, most: int) -> HiddenPlaceDP:
    """What the best schedules prove, for each place and for pairs of places, of which about so many stand for others."""
    places = places_of(process, averaged=True)
    return _notion(places, schedules_of(places, places.wanted), _pairs(places, most))


def hidden_evidence(process: Process) -> Evidence:
    """The best schedules for each place, and for a record at one place and its neighbour at another."""
    places = places_of(process, averaged=True)
    own, pairs = schedules_of(places, places.wanted), _pairs(places, MOST_REPRESENTED)
    return Evidence(_notion(places, own, pairs), schedules=own, pairs=pairs)


def prepaid_hidden_evidence(process: Process, slack: float) -> Evidence:
    """The same with prepayment, but for a probability `slack`: three different pushes, of each two of three records."""
    places = prepaid_places_of(process, averaged=True)
    wanted = prepaid_places(places, smooth_of(process), math.inf, places.exchange)
    apart = representative_pairs(places, _MOST_PREPAID)
    asked = [*((place,) for place in wanted), *apart]
    found, prepaying = prepaid_stretches(process, places, asked, slack, functions=3)
    own = tuple(RecordSchedules(place, wanted[place], found[(place,)]) for place in wanted)
    pairs = tuple(PairSchedules(pair, found[pair]) for pair in apart)
    return Evidence(_notion(places, own, pairs), schedules=own, pairs=pairs, prepaying=prepaying)


def _pairs(places: Places, most: int) -> tuple[PairSchedules, ...]:
    pairs = tracked(representative_pairs(places, most), "pairs")
    return tuple(PairSchedules(pair, best_stretches(places, *pair)) for pair in pairs)


def _notion(places: Places, own: tuple[RecordSchedules, ...], pairs: tuple[PairSchedules, ...]) -> HiddenPlaceDP:
    mus = {one.place: one.mu for one in own}
    if not all(map(math.isfinite, mus.values())):
        raise NoFiniteBound("no_finite_schedule")
    found = np.minimum(pair_mus(places, mus, {pair.places: pair.mu for pair in pairs}), _NOT_COMPARED)
    return HiddenPlaceDP(mus=list(mus.values()), pair_mus=found, weights=[one.weight for one in own])


def representative_pairs(places: Places, most: int) -> list[tuple[int, int]]:
    """So that every two places can be counted as one of these: both as later ones, or as themselves.

    Two places that are counted as the same one can be counted as that and the place before it. Where a record pushes farther
    beside others than beside its neighbour, either place may be the one where it does.
    """
    chosen = representatives(places, most)
    before = [(place - 1, place) for place in chosen if place and place - 1 not in chosen]
    found = [(first, second) for first in chosen for second in chosen if first < second] + before
    return found if places.exchange == 1 else found + [(second, first) for first, second in found]


def representatives(places: Places, most: int) -> list[int]:
    """All places, or some that stand for those before them; more towards the end."""
    present = [place for place in places.wanted if place >= 0]
    if not places.later_is_no_better or len(present) <= most:
        return sorted(present)
    parts = [part for part in (range(places.more_turns), range(places.more_turns, places.count)) if part]
    return [place for part in parts for place in _towards_the_end(part, most // len(parts))]


def _towards_the_end(part: range, most: int) -> list[int]:
    """The last of them, and others before it, at most so many: farther away, farther apart."""
    near = min(_NEAR_THE_END, most // 2)
    distances = list(range(min(near, len(part))))
    times = max(_FARTHER, (len(part) / near) ** (1 / (most - near)))
    while (following := math.ceil(distances[-1] * times)) < len(part) and len(distances) > 1:
        distances.append(following)
    return [part[-1] - distance for distance in reversed(distances)]


def _bound(process: Process) -> Evidence:
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
    return hidden_evidence(process)


def _prepaid_bound(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), batches in a random and secret order, drawn once or each epoch, smooth losses.
    Bound: δ(ε) = δ0 + Σ_k w_k·Σ_j (W_kj/y_k)·θ_{log y_k}(μ_kj), as for a hidden place, with μ_kk and μ_kj by prepayment.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps;
        identical steps that never move iterates apart, or few batches; a run short enough to compute step by step.
    Attained by: two batches of quadratic losses, where a record's effect is constant, to 1 %.
    Reference: prepayment and a hidden place (docs/proofs.md).
    """
    return for_any_slack(partial(prepaid_hidden_evidence, process))


def _comparable(process: Process) -> Fact | None:
    """Of many places, some have to stand for others."""
    if FINITE_LIPSCHITZ.failure(process) is not None:
        return None
    places = places_of(process, averaged=True)
    if places.later_is_no_better or places.count <= MOST_REPRESENTED:
        return None
    found = {"batches": places.count, "lipschitz": process.contraction}
    return fact("places_not_comparable", at_most=MOST_REPRESENTED, **found)


def _little_enough(process: Process) -> Fact | None:
    if FINITE_LIPSCHITZ.failure(process) is not None or _comparable(process) is not None:
        return None
    places = places_of(process, averaged=True)
    needed = work(places) + 2 * work_of_turns(places, len(representative_pairs(places, MOST_REPRESENTED)))
    return None if needed <= MOST_WORK else fact("too_much_work", times="pairs", at_most=MOST_WORK, needed=needed)


def _little_enough_to_prepay(process: Process) -> Fact | None:
    if any(one.failure(process) is not None for one in (FINITE_LIPSCHITZ, SMOOTH, ALIKE_IF_NEW, TAME, _COMPARABLE)):
        return None
    places = prepaid_places_of(process, averaged=True)
    return too_much_to_prepay(process, len(places.wanted) + len(representative_pairs(places, _MOST_PREPAID)))


_COMPARABLE = Assumption("comparable_places", _comparable)

HIDDEN_PLACE = Theorem(
    "hidden-place",
    "lastiterate, a record's place in a secret order is hidden",
    "the order is random and secret: a place is also compared with other places",
    {ONE_ORDER, NEW_ORDERS, CHANGING_STEPS} | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP | ANY_NEIGHBOURS,
    (
        FINITE_LIPSCHITZ,
        TAME,
        _COMPARABLE,
        Assumption("short_enough", _little_enough),
    ),
    _bound,
    places=partial(places_of, averaged=True),
)
PREPAID_HIDDEN_PLACE = Theorem(
    "hidden-place/prepaid",
    "lastiterate, a hidden place and noise before a record's step",
    "shuffled batches, smooth losses: noise before the step and other places hide a record",
    {ONE_ORDER, NEW_ORDERS, CHANGING_STEPS, WEIGHT_DECAY} | IN_ORDER | ANY_CHECKPOINTS | ANY_NEIGHBOURS,
    (
        SEVERAL,
        SMOOTH,
        ALIKE_IF_NEW,
        TAME,
        _COMPARABLE,
        Assumption("short_enough", _little_enough_to_prepay),
    ),
    _prepaid_bound,
    places=partial(prepaid_places_of, averaged=True),
    functions=3,
)
