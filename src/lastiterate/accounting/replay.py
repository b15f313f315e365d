"""Schedules in the form that the kernel takes, and what they have to be about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.kernel.places import NewOrders, Places
from lastiterate.kernel.prepaid import FACTS, Smooth
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.schedule import Schedule, blocks
from lastiterate.theorems.evidence import Evidence, Path, Stretch

CHOSEN = ("slack", "largest")  # of what a proof says of prepayment: any choice is valid


def proof_of(process: Process, places: Places, evidence: Evidence) -> dict[str, Any]:
    """The steps, the turns, and the schedules for each place."""
    prepaying, found = evidence.prepaying, evidence.schedules
    if prepaying is not None:
        stated = statement(process, places, prepaying.functions)
        stated["prepaid"] |= {"slack": prepaying.slack, "largest": prepaying.largest}
        return {**stated, "schedules": [{"place": one.place, "parts": _paths(one.stretches)} for one in found]}
    schedules = [{"place": one.place, "parts": _written(places.stretches(one.place), one.stretches)} for one in found]
    return {**statement(process, places), "schedules": schedules}


def statement(process: Process, places: Places, functions: int = 0) -> dict[str, Any]:
    """What a proof has to be about: the steps of the process, and when a record takes its turns; how its push may turn."""
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


def _facts(smooth: Smooth | str, period: int) -> dict[str, Any]:
    if isinstance(smooth, str):
        raise Refused(f"nothing can be prepaid, because {smooth}")
    arrays = {name: packed(getattr(smooth, name), period) for name in FACTS}
    return {**arrays, "turning": smooth.turning, "rank": smooth.rank, "start": smooth.start}


def _paths(found: tuple[Stretch, ...]) -> list[dict[str, Any] | None]:
    paths = [stretch.schedule for stretch in found]
    return [{"segments": [list(one) for one in path.segments]} if isinstance(path, Path) else None for path in paths]


def _written(met: list[Steps | None], found: tuple[Stretch, ...]) -> list[dict[str, Any] | None]:
    pairs = [(steps, stretch.schedule) for steps, stretch in zip(met, found, strict=True)]
    return [
        {"start": schedule.start, "blocks": blocks(steps, schedule)}
        if steps is not None and isinstance(schedule, Schedule)
        else None
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
