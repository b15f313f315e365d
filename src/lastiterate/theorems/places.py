"""A record's places in a run: where its turns may come, what schedules prove about them, and how much work that is.

A bound is about the worst place, about the average over all places of a secret order, or about a hidden place, which is
compared with the other places as well: a neighbour there may have left the same trace, with the two records exchanged. A
place is hidden by the noise after a record's step and, for smooth losses, by the noise before it (prepayment): the steps
nearly commute with what the record pushes, so a neighbour may be moved against the push before the turn comes. These are
the six theorems of shift_engine.py and prepayment.py, and `place_evidence` is the bound of all six. Proofs: docs/proofs.md.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.notion import Notion
from lastiterate.facts import Fact
from lastiterate.kernel.hidden import pair_mus
from lastiterate.kernel.places import MOST_PLACES, NewOrders, Places
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
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.prepay import best_path, paid_at_once, path_along
from lastiterate.theorems.evidence import (
    Evidence,
    NoFiniteBound,
    PairSchedules,
    Path,
    Prepaying,
    RecordSchedules,
    Stretch,
)

MOST_REPRESENTED = 24  # places of which every pair is looked at; 276 pairs
_MOST_PREPAID = 10  # the same where a pair takes longer to look at
_NEAR_THE_END = 6  # places that count for themselves: there the record is easy to see
_FARTHER = 1.15  # times as far from the end is the next that stands for others, unless there would be too many
NOT_COMPARED = 1e100  # a μ that stands for ∞: a place beside itself, which is not asked for

_LARGER = 1 + 1e-6  # than composition: where factors are huge, rounding spoils what is found
# Times the usual payments, at most; in the end so large that nothing is prepaid.
_PAYMENTS = (1.0, 4.0, 16.0, 256.0, 1e4, 1e20)

_OVERHEAD = 500  # one place costs about as much as so many steps
# Steps, far beyond every limit: then it is not asked whether steps can be merged, which takes time itself.
_TOO_MANY = 1e10

At = tuple[int, ...]  # the place of a record, or those of a record and of its neighbour


class Place(Enum):
    """Which place of a record a bound is about."""

    WORST = "worst"
    AVERAGE = "average"
    HIDDEN = "hidden"

    @property
    def averaged(self) -> bool:
        """Whether the place is drawn, so that each has its probability."""
        return self is not Place.WORST


def place_evidence(process: Process, place: Place, slack: float | None = None, most: int | None = None) -> Evidence:
    """Return what the best schedules for a record at each place prove of its worst, average or hidden place.

    With `slack`, noise before the record's step hides it, too, except with this probability. Of a hidden place about `most`
    places stand for others where two are compared.
    """
    places, wanted = _wanted(process, place, slack)
    most = most or (MOST_REPRESENTED if slack is None else _MOST_PREPAID)
    pairs = representative_pairs(places, most) if place is Place.HIDDEN else []
    # A hidden place has three different pushes, of each two of three records.
    functions = 3 if place is Place.HIDDEN else 1
    found, prepaying = schedules(process, places, [*((one,) for one in wanted), *pairs], slack, functions)
    own = tuple(RecordSchedules(one, weight, found[(one,)]) for one, weight in wanted.items())
    if not all(math.isfinite(record.mu) for record in own):
        raise NoFiniteBound("no_finite_schedule" if slack is None else "prepayment_not_finite")
    compared = tuple(PairSchedules(pair, found[pair]) for pair in pairs)
    return Evidence(_notion(place, places, own, compared), schedules=own, pairs=compared, prepaying=prepaying)


def _wanted(process: Process, place: Place, slack: float | None) -> tuple[Places, dict[int, float]]:
    """Return the places of a record, and those of them that are looked at, each with its probability."""
    if slack is None:
        places = places_of(process, place.averaged)
        return places, places.wanted
    places = prepaid_places_of(process, place.averaged)
    exchange = places.exchange if place is Place.HIDDEN else 1.0
    return places, prepaid_places(places, smooth_of(process), math.inf, exchange)


def _notion(place: Place, places: Places, own: tuple[RecordSchedules, ...], pairs: tuple[PairSchedules, ...]) -> Notion:
    mus, weights = [record.mu for record in own], [record.weight for record in own]
    if place is Place.WORST:
        return GaussianDP(max(mus))
    if place is Place.AVERAGE:
        return AveragedGaussianDP(mus=mus, weights=weights)
    known = {record.place: record.mu for record in own}
    found = np.minimum(pair_mus(places, known, {pair.places: pair.mu for pair in pairs}), NOT_COMPARED)
    return HiddenPlaceDP(mus=mus, pair_mus=found, weights=weights)


# The places of a record in a run, as the kernel knows them.


def places_of(process: Process, averaged: bool) -> Places:
    """Return the places of a record in this run; `averaged` if a bound is not about the worst of them alone."""
    return new_orders(process, averaged) if process.batches.reshuffled else Places(**_facts(process, averaged))


def new_orders(process: Process, averaged: bool) -> NewOrders:
    """Return the places of a record in this run as if each epoch had its own order."""
    return NewOrders(**_facts(process, averaged))


def prepaid_places_of(process: Process, averaged: bool) -> Places:
    """Return the places of a record in this run where its push may be prepaid."""
    return when_prepaid(places_of(process, averaged), smooth_of(process))


def smooth_of(process: Process) -> Smooth:
    """Return what prepayment uses of a smooth loss; refused where it is not known."""
    if isinstance(process.smooth, Fact):
        raise Refused(str(process.smooth))
    return process.smooth


def place_sizes(process: Process, count: int) -> tuple[Floats, int]:
    """Return how many records are at each of the first `count` places of an epoch, in some unit, and at all of them."""
    usual, last = _sizes(process)
    return process.batches.pattern(usual, last, count), usual * (process.batches.per_epoch - 1) + last


def exchange_of(process: Process, averaged: bool = True) -> float:
    """Return how many times as far as beside its neighbour a record pushes beside others, where these may be at its place.

    A neighbour's record that contributes nothing is halfway between the gradients of two records that are opposite.
    """
    return 2.0 if averaged and not process.adjacency.replaces else 1.0


def _facts(process: Process, averaged: bool) -> dict[str, Any]:
    return {
        "steps": Steps(process.sensitivity, process.noise, process.lipschitz, process.diameter),
        # In a random batch the record may be at every step, and more turns never help it.
        "every": process.batches.per_epoch if process.batches.passes and not process.members else 1,
        "releases": process.releases,
        "averaged": averaged,
        "sizes": _sizes(process),
        "exchange": exchange_of(process, averaged),
    }


def _sizes(process: Process) -> tuple[int, int]:
    """Return the size of each batch and of the last of an epoch; where all are alike, nothing but that counts."""
    return (process.batches.largest, process.batches.last_size) if process.batches.uneven else (1, 1)


# Schedules for a record at one place, or for a record at one place and its neighbour at another.


def schedules(
    process: Process, places: Places, asked: list[At], slack: float | None = None, functions: int = 1
) -> tuple[dict[At, tuple[Stretch, ...]], Prepaying | None]:
    """Return the best schedules at each of these places or pairs of places, and what they assume if they prepay."""
    if slack is not None:
        return _prepaid_schedules(process, places, asked, slack, functions)
    return {at: best_stretches(places, *at) for at in tracked(asked, "records")}, None


def best_stretches(places: Places, *at: int) -> tuple[Stretch, ...]:
    """Return the best schedule between each two releases, for a record at this place or for one at two places."""
    return tuple(
        Stretch(0.0, None) if steps is None else Stretch(*best_schedule(steps)) for steps in places.stretches(*at)
    )


def _prepaid_schedules(
    process: Process, places: Places, asked: list[At], slack: float, functions: int
) -> tuple[dict[At, tuple[Stretch, ...]], Prepaying]:
    """Return paths that may prepay; found again, with less that is prepaid, if a payment is larger than was assumed."""
    smooth, exchange = smooth_of(process), places.exchange if any(len(at) > 1 for at in asked) else 1.0
    for times in _PAYMENTS:
        largest = times * largest_payment(places.steps, smooth, exchange)
        keeping = kept(smooth, process.noise, largest, slack, functions)
        try:
            found = {at: _prepaid_stretches(places, at, smooth, keeping, largest) for at in tracked(asked, "records")}
            return found, Prepaying(functions, slack, largest)
        except TooLarge:
            continue
    raise NoFiniteBound("prepayment_not_finite")


def _prepaid_stretches(places: Places, at: At, smooth: Smooth, keeping: Kept, largest: float) -> tuple[Stretch, ...]:
    facts = smooth.pushed(places.exchange if len(at) > 1 else 1.0)
    return tuple(
        _prepaid_stretch(steps, facts.part(*ends), keeping.part(*ends), largest)
        for steps, ends in zip(places.dense(*at), places.ends, strict=True)
    )


def _prepaid_stretch(steps: Steps, smooth: Smooth, keeping: Kept, largest: float) -> Stretch:
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


# Of many places, some stand for others where two are compared.


def representative_pairs(places: Places, most: int) -> list[tuple[int, int]]:
    """Return pairs such that every two places can be counted as one of them: both as later ones, or as themselves.

    Two places that are counted as the same one can be counted as that and the place before it. Where a record pushes farther
    beside others than beside its neighbour, either place may be the one where it does.
    """
    chosen = representatives(places, most)
    before = [(place - 1, place) for place in chosen if place and place - 1 not in chosen]
    found = [(first, second) for first in chosen for second in chosen if first < second] + before
    return found if places.exchange == 1 else found + [(second, first) for first, second in found]


def representatives(places: Places, most: int) -> list[int]:
    """Return all places, or some that stand for those before them; more towards the end."""
    present = [place for place in places.wanted if place >= 0]
    if not places.later_is_no_better or len(present) <= most:
        return sorted(present)
    parts = [part for part in (range(places.more_turns), range(places.more_turns, places.count)) if part]
    return [place for part in parts for place in _towards_the_end(part, most // len(parts))]


def _towards_the_end(part: range, most: int) -> list[int]:
    """Return the last of these places, and others before it, at most `most`: farther away, farther apart."""
    near = min(_NEAR_THE_END, most // 2)
    distances = list(range(min(near, len(part))))
    times = max(_FARTHER, (len(part) / near) ** (1 / (most - near)))
    while (following := math.ceil(distances[-1] * times)) < len(part) and len(distances) > 1:
        distances.append(following)
    return [part[-1] - distance for distance in reversed(distances)]


# How much work that is.


def steps_to_go_through(process: Process, place: Place) -> float:
    """Return about how many steps `place_evidence` goes through, where only noise after a record's step hides it."""
    places = places_of(process, place.averaged)
    if place is not Place.HIDDEN:
        return work(places)
    return work(places) + 2 * work_of_turns(places, len(representative_pairs(places, MOST_REPRESENTED)))


def prepaid_records(process: Process, place: Place) -> int:
    """Return for how many places and pairs of places `place_evidence` looks for a path that prepays, at most."""
    if place is not Place.HIDDEN:
        return process.batches.per_epoch
    places = prepaid_places_of(process, averaged=True)
    return len(places.wanted) + len(representative_pairs(places, _MOST_PREPAID))


def most_places(places: Places) -> int:
    """Return an upper bound on the number of places that are looked at, which takes no time to find."""
    if isinstance(places, NewOrders):
        return min(places.last_piece, MOST_PLACES) if places.later_is_no_better else places.last_piece
    if places.alike or (places.averaged and places.later_is_no_better):
        return min(places.every, 2 * MOST_PLACES) if places.averaged else 1
    return places.every if places.averaged else min(places.every, len(places.steps))


def work(places: Places) -> float:
    """Return about how many steps there are to go through for all places that are looked at."""
    steps = len(places.steps)
    if places.every == 1:
        return steps
    of_turns = work_of_turns(places, most_places(places))
    return steps + places.every * places.last_piece + of_turns if isinstance(places, NewOrders) else of_turns


def work_of_turns(places: Places, count: int) -> float:
    """Return about how many steps there are to go through for `count` places, each with its own turns."""
    if count * _OVERHEAD > _TOO_MANY or places.whole_stretches[0].dense:
        return len(places.steps) * count
    turns = 2 * len(places.steps) / places.every
    return count * (turns + _OVERHEAD * len(places.whole_stretches))
