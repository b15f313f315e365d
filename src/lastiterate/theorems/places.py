"""The places of a record in a run, as the kernel knows them, and how much work they are."""

from __future__ import annotations

from typing import Any

from lastiterate.kernel.places import MOST_PLACES, NewOrders, Places
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process

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
