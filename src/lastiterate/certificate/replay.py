"""Proofs as JSON: schedules in the form that the kernel takes, and the steps and turns that they have to be about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.errors import worded
from lastiterate.facts import Fact
from lastiterate.kernel.places import NewOrders, Places
from lastiterate.kernel.prepaid import FACTS, Smooth
from lastiterate.kernel.steps import Refused
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process
from lastiterate.shift.schedule import Schedule, blocks
from lastiterate.theorems.evidence import Evidence, PairSchedules, Path, RecordSchedules

CHOSEN = ("slack", "largest")  # of what a proof says of prepayment: any choice is valid


def proof_of(process: Process, places: Places, evidence: Evidence, epsilon: float) -> dict[str, Any]:
    """Return what the kernel replays: steps, turns, schedules for each place; for a hidden place, what is best at this ε."""
    prepaying = evidence.prepaying
    stated = statement(process, places, 0 if prepaying is None else prepaying.functions)
    if prepaying is not None:
        stated["prepaid"] |= {"slack": prepaying.slack, "largest": prepaying.largest}
    schedules = [{"place": one.place, "parts": _parts(places, (one.place,), one)} for one in evidence.schedules]
    return {**stated, "schedules": schedules, **_hidden(places, evidence, epsilon)}


def _hidden(places: Places, evidence: Evidence, epsilon: float) -> dict[str, Any]:
    if not isinstance(evidence.notion, HiddenPlaceDP):
        return {}
    shares = evidence.notion.shares(epsilon)
    pairs = [
        {"places": list(one.places), "parts": _parts(places, one.places, one)}
        for one in evidence.pairs
        if (shares > 1).any()
    ]
    named = [[one.place, share] for one, share in zip(evidence.schedules, shares.tolist(), strict=True)]
    return {"hidden": {"shares": named, "pairs": pairs}}


def statement(process: Process, places: Places, functions: int = 0) -> dict[str, Any]:
    """Return what a proof has to be about: the steps of a process, the turns of a record, and how its push may turn."""
    given, period = places.steps, process.batches.per_epoch
    smooth = process.smooth
    prepaid = {"prepaid": {**_facts(smooth, period), "functions": functions}} if functions and smooth else {}
    return {
        **prepaid,
        "steps": {
            "count": len(process),
            "sensitivity": packed(given.sensitivity, period),
            "noise": packed(given.noise, period),
            "lipschitz": packed(given.lipschitz, period),
            "diameter": json_safe(given.diameter),
        },
        "turns": {
            "order": "new each epoch" if isinstance(places, NewOrders) else "fixed",
            "every": places.every,
            "averaged": places.averaged,
            "releases": list(places.releases),
            **({} if places.sizes == (1, 1) else {"sizes": list(places.sizes)}),
            **({} if places.exchange == 1 else {"exchange": places.exchange}),
        },
        "displacement": process.displacement,
        **({"prior_mu": process.prior_mu} if process.prior_mu else {}),
    }


def _facts(smooth: Smooth | Fact, period: int) -> dict[str, Any]:
    if isinstance(smooth, Fact):
        raise Refused(worded("nothing_prepaid", because=smooth))
    arrays = {name: packed(getattr(smooth, name), period) for name in FACTS}
    return {**arrays, "turning": smooth.turning, "rank": smooth.rank, "start": smooth.start}


def _parts(places: Places, at: tuple[int, ...], found: RecordSchedules | PairSchedules) -> list[dict[str, Any] | None]:
    """Return the schedule of each stretch between two turns as JSON holds it; None where the record is absent."""
    schedules = [stretch.schedule for stretch in found.stretches]
    if any(isinstance(schedule, Path) for schedule in schedules):
        return [
            {"segments": [list(one) for one in schedule.segments]} if isinstance(schedule, Path) else None
            for schedule in schedules
        ]
    return [
        None
        if steps is None or not isinstance(schedule, Schedule)
        else {"start": schedule.start, "blocks": blocks(steps, schedule)}
        for steps, schedule in zip(places.stretches(*at), schedules, strict=True)
    ]


def packed(values: Floats, period: int = 0) -> Any:
    """Return values as [[value, how often], …], or as {"pattern": such a list} if they repeat after `period`."""
    if values.strides == (0,):
        return [[json_safe(float(values[0])), len(values)]]
    if 0 < period < values.size and np.array_equal(values[period:], values[:-period]):
        return {"pattern": packed(values[:period])}
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    counts = np.diff(np.append(starts, values.size))
    return [[json_safe(value), count] for value, count in zip(values[starts].tolist(), counts.tolist(), strict=True)]


def json_safe(content: Any) -> Any:
    """Return dictionaries, lists and numbers with null for every number that is not finite, which JSON does not know."""
    if isinstance(content, dict):
        return {name: json_safe(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [json_safe(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
