"""ε as a run goes on: every iterate released, by the papers, by all theorems, and what no proof can go below."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lastiterate.accounting.account import account_by
from lastiterate.accounting.epsilon_curve import growth
from lastiterate.accounting.report import Report, detection_rates, lower_bound
from lastiterate.errors import Unavailable
from lastiterate.progress import tracked
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import OF_PAPERS
from lastiterate.theorems.evidence import About

_FINE, _COARSE = 24, 7  # places along the run
_EVERY = 3  # lower bounds at one place in so many: they are smooth, and take longest


def curves(report: Report, fine: bool) -> Iterator[dict[str, Any]]:
    """Yield ε along the run in three parts, at many places or at a few; None stands where nothing is known."""
    run, delta, releases = report.run, report.delta, report.releases
    found = growth(run, delta, releases, points=_FINE if fine else _COARSE)
    unit, name = _unit(run, found.steps)
    along = [place / unit for place in found.steps]
    yield {"along": along, "unit": name, "ours": found.hidden, "composition": found.released}
    yield {
        "part": "curves",
        "papers": [_by_papers(run.first(place), delta) for place in tracked(found.steps, "papers")],
    }
    lowers = [
        lower_bound(run.first(place), delta, _before(releases, place)).epsilon if _looked_at(index, along) else None
        for index, place in enumerate(tracked(found.steps, "lower bounds"))
    ]
    yield {"lower": lowers}


def _unit(run: Run, places: tuple[int, ...]) -> tuple[int, str]:
    per_epoch = run.batches.per_epoch
    whole = per_epoch > 1 and all(place % per_epoch == 0 for place in places)
    return (per_epoch, "epochs") if whole else (1, "steps")


def _by_papers(run: Run, delta: float) -> float | None:
    """ε by the papers' theorems; None if none is about the last iterate of such a run, or gives a finite ε."""
    try:
        report = account_by(OF_PAPERS, run, delta)
    except Unavailable:
        return None
    hidden = any(one.theorem.about is not About.EVERY_ITERATE for one in report.guarantees)
    return report.epsilon if hidden and math.isfinite(report.epsilon) else None


def _before(releases: tuple[int, ...], place: int) -> tuple[int, ...]:
    return tuple(release for release in releases if release < place)


def _looked_at(index: int, along: list[float]) -> bool:
    return index % _EVERY == 0 or index == len(along) - 1


# The trade-off curve: the largest detection rate for each rate of false alarms.


_RATES = np.concatenate([[0.0, 1e-4, 1e-3, 0.003], np.arange(0.01, 0.2, 0.01), np.linspace(0.2, 1.0, 33)])


def attack(report: Report) -> dict[str, Any]:
    """Rates of false positives and of detection, both as shares of 1."""
    found = np.broadcast_to(detection_rates(report.best._proved, _RATES), _RATES.shape)
    return {"false_positive_rates": _RATES.tolist(), "detection_rates": found.tolist()}
