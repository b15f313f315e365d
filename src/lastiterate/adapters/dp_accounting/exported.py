"""Our guarantees as its events."""

from __future__ import annotations

from typing import Any

import dp_accounting as dp

from lastiterate.accounting.report import Report
from lastiterate.adapters.dp_accounting.event import LastIterateDpEvent
from lastiterate.adapters.dp_accounting.relations import adjacency_of, records_apart, relation_of
from lastiterate.curves.adjacency import POISSON, Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.errors import Incompatible, InvalidInput, Unavailable, checked_count, must_be, shown
from lastiterate.numerics.rounding import down
from lastiterate.theorems.usual_sizes import without_exceptions


def event_of(guarantee: Notion | Report) -> Any:
    """The guarantee as an event of dp-accounting: exact for μ-GDP and for compositions with Poisson sampling.

    μ-GDP becomes GaussianDpEvent(2/μ) under REPLACE_ONE and GaussianDpEvent(1/μ) otherwise. Compose it with an accountant
    whose relation is `relation_of(guarantee.adjacency)`; under REPLACE_ONE use only PLDAccountant or LastIterateAccountant
    (`compose_into` checks both). Any other report becomes a `LastIterateDpEvent` with its run, which only
    `LastIterateAccountant` accepts. For any other notion use `privacy_loss_distribution`.
    """
    event = _exact_event(without_exceptions(best_notion(guarantee)))
    if event is not None:
        return event
    if isinstance(guarantee, Report):
        return LastIterateDpEvent(guarantee.run, guarantee.releases)
    raise Unavailable("exported_no_event")


def compose_into(accountant: Any, guarantee: Notion | Report, count: int = 1) -> Any:
    """Compose the guarantee, `count` times, into an accountant of dp-accounting, and return the accountant.

    A `LastIterateAccountant` accepts every report; others accept only events of dp-accounting. An accountant that would
    return a wrong ε is an error: another neighboring relation, or RdpAccountant under REPLACE_ONE.
    """
    adjacency, times = best_notion(guarantee).adjacency, checked_count("count", count)
    if not isinstance(accountant, dp.PrivacyAccountant):
        raise must_be("accountant", "an accountant of dp-accounting", f"{shown(accountant):.60}")
    if adjacency_of(accountant.neighboring_relation) is not adjacency:
        got = accountant.neighboring_relation.name
        raise Incompatible("dp_accountant_relation", relation=relation_of(adjacency), got=got)
    if isinstance(accountant, dp.rdp.RdpAccountant) and adjacency.replaces:
        raise Incompatible("dp_accountant_not_doubling")
    event = event_of(guarantee)
    if isinstance(event, LastIterateDpEvent) and not accountant.supports(event):
        raise Unavailable("dp_accountant_without_runs", got=type(accountant).__name__)
    return accountant.compose(event, times)


def best_notion(guarantee: Any) -> Notion:
    """The notion itself, or that of a report's best theorem; an error if it has a caveat."""
    if isinstance(guarantee, Report) and guarantee.members:
        raise InvalidInput("exported_of_one_user", field="guarantee")
    notion = guarantee.best.notion if isinstance(guarantee, Report) else guarantee
    if not isinstance(notion, Notion):
        raise InvalidInput("exported_kind", field="guarantee", got=f"{shown(guarantee):.60}")
    return notion.as_notion()


def _exact_event(notion: Notion) -> Any:
    """None where there is no event that says the same."""
    match notion:
        case GaussianDP():
            return _gaussian(notion.mu, notion.adjacency)
        case SubsampledGaussians() if all(step.sampling is POISSON and not step.mixed for step, _ in notion.steps):
            events = [_counted(step, count, notion.adjacency) for step, count in notion.steps]
            return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)
    return None


def _gaussian(mu: float, adjacency: Adjacency) -> Any:
    return dp.GaussianDpEvent(down(records_apart(adjacency) / mu, 2)) if mu else dp.NoOpDpEvent()


def _counted(step: Any, count: int, adjacency: Adjacency) -> Any:
    inside = _gaussian(step.mu, adjacency)
    event = dp.PoissonSampledDpEvent(step.inclusion, inside) if step.inclusion < 1 else inside
    return event if count == 1 else dp.SelfComposedDpEvent(event, count)
