"""How ε grows as a run goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lastiterate.accounting.account import account
from lastiterate.algorithms.run import Run
from lastiterate.progress import tracked

_POINTS = 24


@dataclass(frozen=True)
class Growth:
    """ε after so many steps: of the last iterate alone, and of all of them."""

    steps: tuple[int, ...]
    hidden: tuple[float, ...]
    released: tuple[float, ...]


def growth(run: Run, delta: float, releases: tuple[int, ...] = ()) -> Growth:
    """At up to two dozen places along the run, after whole epochs where there are several."""
    per_epoch = run.batches.per_epoch
    unit = per_epoch if run.steps % per_epoch == 0 and run.steps > per_epoch else 1
    counts = np.unique(np.linspace(1, run.steps // unit, min(_POINTS, run.steps // unit)).astype(np.intp))
    places = tuple(unit * count for count in counts.tolist())
    reports = []
    for place in tracked(places, "growth"):
        reports.append(account(run.first(place), delta, [release for release in releases if release < place]))
    return Growth(
        places,
        tuple(report.epsilon for report in reports),
        tuple(report.composition for report in reports),
    )
