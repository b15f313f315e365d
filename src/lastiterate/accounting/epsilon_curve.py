"""How ε grows along a run: for the last iterate alone, and for all iterates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Report
from lastiterate.certificate.claims import released
from lastiterate.progress import tracked
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.evidence import About
from lastiterate.theorems.theorem import Theorem, best_rung

_POINTS = 24
_CLOSE = 1.4  # of rungs: one is the next one of the other


@dataclass(frozen=True)
class Growth:
    """ε along the run: for releasing the iterate after each listed step alone, and for releasing every iterate."""

    steps: tuple[int, ...]
    hidden: tuple[float, ...]
    released: tuple[float, ...]

    def along(self, per_epoch: int) -> tuple[list[float], str]:
        """Return the places in epochs if all of them end one, else in steps, and the name of the unit."""
        unit = per_epoch if per_epoch > 1 and all(place % per_epoch == 0 for place in self.steps) else 1
        return [place / unit for place in self.steps], "epochs" if unit > 1 else "steps"


def growth(
    run: Run,
    delta: float,
    releases: tuple[int, ...] = (),
    points: int = _POINTS,
    group: tuple[int, ...] = (),
    theorems: tuple[Theorem, ...] = CATALOGUE,
) -> Growth:
    """Compute ε at up to `points` places along a run, after whole epochs if it has several; for these records, if named."""
    run = replace(run, user_records=1) if group else run
    per_epoch = run.batches.per_epoch
    unit = per_epoch if run.steps % per_epoch == 0 and run.steps > per_epoch else 1
    counts = np.unique(np.linspace(1, run.steps // unit, min(points, run.steps // unit)).astype(np.intp))
    places = tuple(unit * count for count in counts.tolist())
    known: dict[int, _Point] = {}
    for index in tracked(_halved(len(places)), "growth"):
        known[index] = _point(run, places[index], delta, releases, group, theorems, _around(known, index, len(places)))
    found = [known[index] for index in range(len(places))]
    return Growth(places, tuple(one.hidden for one in found), tuple(one.released for one in found))


def _halved(count: int) -> list[int]:
    """Return all places in the order in which they are asked: both ends, then halfway between two earlier ones."""
    order, gaps = list(dict.fromkeys([0, count - 1])), [(0, count - 1)]
    for first, last in gaps:
        if last - first > 1:
            order.append((first + last) // 2)
            gaps += [(first, order[-1]), (order[-1], last)]
    return order


@dataclass(frozen=True)
class _Point:
    """After so many steps: ε of the last iterate, by which theorem and rung, and of all iterates."""

    steps: int
    hidden: float
    theorem: Theorem
    rung: int | None
    released: float

    @property
    def whole(self) -> bool:
        """Whether the best rung is the whole run."""
        return self.rung == self.steps


def _around(known: dict[int, _Point], index: int, count: int) -> tuple[_Point, _Point] | None:
    """Return the nearest known points on both sides, if they are not too far off."""
    before, after = [i for i in known if i < index], [i for i in known if i > index]
    if not before or not after or min(after) - max(before) > count // 2:
        return None
    return known[max(before)], known[min(after)]


def _point(
    run: Run,
    place: int,
    delta: float,
    releases: tuple[int, ...],
    group: tuple[int, ...],
    theorems: tuple[Theorem, ...],
    sides: tuple[_Point, _Point] | None,
) -> _Point:
    """Account for the run up to a place; between two points only by their best theorems and rungs, and composition."""
    shorter, kept = run.first(place), [release for release in releases if release < place]
    if sides is None:
        return _measured(place, account_by(theorems, shorter, delta, kept, group))
    rungs = _between(*sides, place)
    best = () if rungs else tuple(side.theorem for side in sides)
    asked = [one for one in theorems if one.about is About.EVERY_ITERATE or one in best]
    report = account_by(asked, shorter, delta, kept, group)
    if not rungs:
        return _measured(place, report)
    theorem, process = sides[0].theorem, released(shorter.process, kept)
    epsilon, rung = min((float(theorem.rebuilt(process, rung).epsilon(delta)), rung) for rung in rungs)
    if report.epsilon < epsilon:
        return _measured(place, report)
    return _Point(place, epsilon, theorem, rung, report.epsilon_all_released)


def _measured(place: int, report: Report) -> _Point:
    rung = best_rung(report.best, report.delta)
    return _Point(place, report.epsilon, report.best.theorem, rung, report.epsilon_all_released)


def _between(before: _Point, after: _Point, place: int) -> tuple[int, ...]:
    """Return the rungs to try: those of both sides if they are close, as the best one moves slowly; () to try all."""
    if before.theorem is not after.theorem or before.rung is None or after.rung is None:
        return ()
    if before.whole and after.whole:
        return (place,)
    low, high = sorted((before.rung, after.rung))
    return (low,) if low == high else (low, high) if high <= _CLOSE * low and high <= place else ()
