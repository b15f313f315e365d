"""Its events as our notions."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import dp_accounting as dp

from lastiterate.accounting.account import account
from lastiterate.accounting.releases import released
from lastiterate.accounting.report import Report
from lastiterate.adapters.dp_accounting.event import LastIterateDpEvent
from lastiterate.adapters.dp_accounting.orders import compose_by_order
from lastiterate.adapters.dp_accounting.parts import Parts, counted, parts_of
from lastiterate.adapters.dp_accounting.profiles import NoPrivacy
from lastiterate.adapters.dp_accounting.refusals import UnsupportedEvent, unsupported
from lastiterate.adapters.dp_accounting.relations import adjacency_of, relation_of
from lastiterate.adapters.dp_accounting.repeated import trials_of_event
from lastiterate.adapters.dp_accounting.sampled import SAMPLED
from lastiterate.adapters.dp_accounting.single import SINGLE
from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.displaced import Displaced, as_computed
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.select import best_of_trials
from lastiterate.errors import INSIDE_UNIT, LastIterateError, checked_number
from lastiterate.numerics.rounding import up
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.theorem import Guarantee
from lastiterate.theorems.usual_sizes import without_exceptions

_NOTIONS = {**SINGLE, **SAMPLED}
_REPEATED = dp.dp_event.RepeatAndSelectDpEvent
_REPORTS = 16  # are kept: accountants ask for the same run and δ again


def notion_of(event: Any, neighboring_relation: Any, delta: float = 1e-6) -> Notion:
    """The guarantee of an event of dp-accounting as one notion; all its ε and δ are upper bounds.

    Noise multipliers are defined as in dp-accounting: noise divided by the norm of one record's contribution, so a Gaussian
    event is 2/noise_multiplier-GDP under REPLACE_ONE. If the event holds a run, its best theorem at `delta` is used; the
    notion is valid at every δ. An unsupported event raises `UnsupportedEvent`.
    """
    adjacency = adjacency_of(neighboring_relation)
    return composed(checked_parts(event, adjacency), adjacency, checked_number("delta", delta, INSIDE_UNIT))


def checked_parts(event: Any, adjacency: Adjacency, count: int = 1) -> Parts:
    """What the event is composed of, if each part is supported."""
    parts = list(parts_of(event, count))
    for part, _ in parts:
        _check(part, adjacency)
    return parts


def composed(parts: Parts, adjacency: Adjacency, delta: float) -> Notion:
    """All parts together; of the theorems about a run, the one that is best at δ."""
    notions = [(_notion(part, adjacency, delta), count) for part, count in counted(parts)]
    if any(isinstance(notion, NoPrivacy) for notion, _ in notions):
        return NoPrivacy(adjacency)
    if len(notions) == 1 and notions[0][1] == 1:
        return notions[0][0]
    return _together(notions) if notions else GaussianDP(0.0, adjacency)


def _together(notions: list[tuple[Notion, int]]) -> Notion:
    """What is computed is composed as what is proved, and all of it is as far from that as its parts are together.

    On each data set parts that are mu-GDP apart, one after the other, are √(Σ mu²)-GDP apart.
    """
    proved = [(without_exceptions(one.inner if isinstance(one, Displaced) else one), count) for one, count in notions]
    apart = [math.sqrt(count) * one.displacement for one, count in notions if isinstance(one, Displaced)]
    whole = compose_by_order(proved)
    return as_computed(whole, up(math.hypot(*apart), operations=5)) if apart else whole


def _notion(part: Any, adjacency: Adjacency, delta: float) -> Notion:
    if type(part) is LastIterateDpEvent:
        return _report(part.run, delta, part.releases).best.notion
    if type(part) is _REPEATED:
        return _best_of_repeated(part, adjacency, delta)
    if type(part) not in _NOTIONS:
        raise unsupported(part)
    try:
        return _NOTIONS[type(part)](part, adjacency)
    except UnsupportedEvent:
        raise
    except LastIterateError as error:
        raise UnsupportedEvent("dp_event_wrong", event=part, error=error) from error


def _best_of_repeated(event: Any, adjacency: Adjacency, delta: float) -> Notion:
    """All that the event repeats is one trial."""
    trials = trials_of_event(event)
    trial = composed(checked_parts(event.event, adjacency), adjacency, delta)
    return trial if trials is None or isinstance(trial, NoPrivacy) else best_of_trials(trial, trials)


@lru_cache(_REPORTS)
def _report(run: Any, delta: float, releases: tuple[int, ...]) -> Report:
    return account(run, delta, releases)


def _check(part: Any, adjacency: Adjacency) -> None:
    if type(part) is _REPEATED:
        trials_of_event(part)
        checked_parts(part.event, adjacency)
        return
    if type(part) is not LastIterateDpEvent:
        _notion(part, adjacency, 0.5)
        return
    if part.run.adjacency is not adjacency:
        raise UnsupportedEvent(
            "dp_event_relation",
            event=part,
            own=relation_of(part.run.adjacency),
            relation=relation_of(adjacency),
            adjacency=adjacency,
        )
    process = released(part.run.process, part.releases)
    if not any(isinstance(theorem.apply(process), Guarantee) for theorem in CATALOGUE):
        raise UnsupportedEvent("dp_event_no_theorem", event=part)
