"""Schedules in the form that the kernel takes, and what they have to be about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.errors import Unavailable
from lastiterate.kernel.places import NewOrders, Places
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.schedule import blocks
from lastiterate.theorems.places import places_of
from lastiterate.theorems.proof import Part, Proof
from lastiterate.theorems.shift_engine import RANDOM_ORDER, SHIFT_ENGINE
from lastiterate.theorems.theorem import Theorem

_AVERAGED = {SHIFT_ENGINE.name: False, RANDOM_ORDER.name: True}


def statement(process: Process, theorem: Theorem) -> dict[str, Any]:
    """What a proof by this theorem has to be about: the steps of the process, and when a record takes its turns."""
    if theorem.name not in _AVERAGED:
        raise Unavailable(f"{theorem.name} has no schedules that could be replayed.")
    return _statement(process, places_of(process, _AVERAGED[theorem.name]))


def proof_of(process: Process, proof: Proof) -> dict[str, Any]:
    """The same, and the schedules."""
    places = places_of(process, proof.averaged)
    schedules = [
        {
            "place": record.place,
            "parts": [_part(*pair) for pair in zip(places.stretches(record.place), record.parts, strict=True)],
        }
        for record in proof.records
    ]
    return {**_statement(process, places), "schedules": schedules}


def _statement(process: Process, places: Places) -> dict[str, Any]:
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


def _part(steps: Steps | None, part: Part) -> dict[str, Any] | None:
    if steps is None or part.schedule is None:
        return None
    return {"start": part.schedule.start, "blocks": blocks(steps, part.schedule)}


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
