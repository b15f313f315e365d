"""Schedules in the form that the kernel takes, and what they have to be about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.kernel.places import NewOrders, Places
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.hidden_place import HiddenPlaceDP
from lastiterate.shift.schedule import blocks
from lastiterate.theorems.evidence import Evidence, Stretch


def proof_of(process: Process, places: Places, evidence: Evidence, epsilon: float) -> dict[str, Any]:
    """The steps, the turns, the schedules for each place; and where the place is hidden, what is best at this ε."""
    schedules = [
        {"place": one.place, "parts": _written(places.stretches(one.place), one.stretches)}
        for one in evidence.schedules
    ]
    return {**statement(process, places), "schedules": schedules, **_hidden(places, evidence, epsilon)}


def _hidden(places: Places, evidence: Evidence, epsilon: float) -> dict[str, Any]:
    if not isinstance(evidence.notion, HiddenPlaceDP):
        return {}
    shares = evidence.notion.shares(epsilon)
    pairs = [
        {"places": list(one.places), "parts": _written(places.stretches(*one.places), one.stretches)}
        for one in evidence.pairs
        if (shares > 1).any()
    ]
    named = [[one.place, share] for one, share in zip(evidence.schedules, shares.tolist(), strict=True)]
    return {"hidden": {"shares": named, "pairs": pairs}}


def statement(process: Process, places: Places) -> dict[str, Any]:
    """What a proof has to be about: the steps of the process, and when a record takes its turns."""
    given, period = places.steps, process.batches.per_epoch
    return {
        "steps": {
            "count": len(process),
            "sensitivity": packed(given.sensitivity, period),
            "noise": packed(given.noise, period),
            "lipschitz": packed(given.lipschitz, period),
            "diameter": _plain(given.diameter),
        },
        "turns": {
            "order": "new each epoch" if isinstance(places, NewOrders) else "fixed",
            "every": places.every,
            "averaged": places.averaged,
            "releases": list(places.releases),
        },
        "displacement": process.displacement,
    }


def _written(met: list[Steps | None], found: tuple[Stretch, ...]) -> list[dict[str, Any] | None]:
    pairs = [(steps, stretch.schedule) for steps, stretch in zip(met, found, strict=True)]
    return [
        None if steps is None or schedule is None else {"start": schedule.start, "blocks": blocks(steps, schedule)}
        for steps, schedule in pairs
    ]


def packed(values: Floats, period: int = 0) -> Any:
    """[[value, how often], …]; or {"pattern": such a list}, for what repeats after `period`."""
    if values.strides == (0,):
        return [[_plain(float(values[0])), len(values)]]
    if 0 < period < values.size and np.array_equal(values[period:], values[:-period]):
        return {"pattern": packed(values[:period])}
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    counts = np.diff(np.append(starts, values.size))
    return [[_plain(value), count] for value, count in zip(values[starts].tolist(), counts.tolist(), strict=True)]


def _plain(value: float) -> float | None:
    """JSON knows no infinity; null stands for it."""
    return value if math.isfinite(value) else None
