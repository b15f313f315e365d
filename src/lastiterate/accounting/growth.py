"""How ε grows as a run goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lastiterate.accounting.account import account_by
from lastiterate.algorithms.run import Run
from lastiterate.progress import tracked
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.evidence import About
from lastiterate.theorems.theorem import Theorem

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
    known: dict[int, _Point] = {}
    for index in tracked(_halved(len(places)), "growth"):
        known[index] = _point(run, places[index], delta, releases, _asked(known, index, len(places)))
    found = [known[index] for index in range(len(places))]
    return Growth(places, tuple(one.hidden for one in found), tuple(one.released for one in found))


def _halved(count: int) -> list[int]:
    """All places: both ends, then what is halfway between two that come before."""
    order, gaps = list(dict.fromkeys([0, count - 1])), [(0, count - 1)]
    for first, last in gaps:
        if last - first > 1:
            order.append((first + last) // 2)
            gaps += [(first, order[-1]), (order[-1], last)]
    return order


def _asked(known: dict[int, _Point], index: int, count: int) -> tuple[Theorem, ...]:
    """Where one theorem is the best on both sides, not too far off, it alone is asked in between, and composition."""
    before, after = [i for i in known if i < index], [i for i in known if i > index]
    if not before or not after or min(after) - max(before) > count // 2:
        return CATALOGUE
    best = known[max(before)].theorem
    if known[min(after)].theorem is not best:
        return CATALOGUE
    return tuple(one for one in CATALOGUE if one is best or one.about is About.EVERY_ITERATE)


@dataclass(frozen=True)
class _Point:
    """After so many steps: ε of the last iterate, by which theorem, and of all iterates."""

    hidden: float
    theorem: Theorem
    released: float


def _point(run: Run, place: int, delta: float, releases: tuple[int, ...], asked: tuple[Theorem, ...]) -> _Point:
    report = account_by(asked, run.first(place), delta, [release for release in releases if release < place])
    return _Point(report.epsilon, report.best.theorem, report.composition)
