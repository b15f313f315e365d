"""Schedules in the form that the kernel takes, and what they have to be about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.errors import worded
from lastiterate.facts import Fact
from lastiterate.kernel.places import NewOrders, Places
from lastiterate.kernel.prepaid import FACTS, Smooth
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process
from lastiterate.shift.schedule import Schedule, blocks
from lastiterate.theorems.evidence import Evidence, PairSchedules, Path, RecordSchedules

CHOSEN = ("slack", "largest")  # of what a proof says of prepayment: any choice is valid


def proof_of(process: Process, places: Places, evidence: Evidence, epsilon: float) -> dict[str, Any]:
    """The steps, the turns, the schedules for each place; and where the place is hidden, what is best at this ε."""
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
    """One for each stretch; None where the record is absent."""
    schedules = [stretch.schedule for stretch in found.stretches]
    if any(isinstance(schedule, Path) for schedule in schedules):
        return [_path(schedule) for schedule in schedules]
    return [_schedule(*pair) for pair in zip(places.stretches(*at), schedules, strict=True)]


def _path(schedule: Schedule | Path | None) -> dict[str, Any] | None:
    return {"segments": [list(one) for one in schedule.segments]} if isinstance(schedule, Path) else None


def _schedule(steps: Steps | None, schedule: Schedule | Path | None) -> dict[str, Any] | None:
    if steps is None or not isinstance(schedule, Schedule):
        return None
    return {"start": schedule.start, "blocks": blocks(steps, schedule)}


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


# Plain values as JSON can hold them.


def finite(content: Any) -> Any:
    """JSON knows no infinity; null stands for it."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
