"""Our guarantees as its events."""

from __future__ import annotations

from typing import Any

import dp_accounting as dp

from lastiterate.accounting.report import Report
from lastiterate.adapters.dp_accounting.event import LastIterateDpEvent
from lastiterate.adapters.dp_accounting.relations import adjacency_of, records_apart, relation_of
from lastiterate.errors import Incompatible, InvalidInput, Unavailable, checked_count, shown
from lastiterate.numerics.rounding import down
from lastiterate.privacy.adjacency import POISSON, Adjacency
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.subsampled import SubsampledGaussians
from lastiterate.theorems.usual_sizes import without_exceptions

_NOT_DOUBLED = (
    "dp-accounting's RdpAccountant takes no account of REPLACE_ONE: it does not double the sensitivity of a Gaussian event, "
    "and its epsilon is too small. Use dp_accounting.pld.PLDAccountant or LastIterateAccountant."
)
_NO_EVENT = (
    "the best guarantee of this report is no event of dp-accounting, and accountants of dp-accounting take nothing else. "
    "Compose it into a LastIterateAccountant, which takes their events too, or compose distributions by "
    "privacy_loss_distribution(report)."
)


def event_of(guarantee: Notion | Report) -> Any:
    """The event of dp-accounting that is this guarantee: exact for μ-GDP and for compositions with Poisson sampling.

    μ-GDP is GaussianDpEvent(2/μ) under REPLACE_ONE and GaussianDpEvent(1/μ) otherwise: to be composed by an accountant with
    the relation `relation_of(guarantee.adjacency)`, and under REPLACE_ONE by none but the PLDAccountant and ours, as
    `compose_into` sees to. A report of any other guarantee becomes a `LastIterateDpEvent` that carries its run, which
    `LastIterateAccountant` composes and every other accountant refuses. Any other notion has a `privacy_loss_distribution`.
    """
    event = _exact_event(without_exceptions(best_notion(guarantee)))
    if event is not None:
        return event
    if isinstance(guarantee, Report):
        return LastIterateDpEvent(guarantee.run, guarantee.releases)
    raise Unavailable(
        "no event of dp-accounting says what this guarantee says. Use privacy_loss_distribution(guarantee), or give the "
        "report of the run instead."
    )


def compose_into(accountant: Any, guarantee: Notion | Report, count: int = 1) -> Any:
    """Composes the guarantee, `count` times, into an accountant of dp-accounting, and returns that.

    Every report goes into a `LastIterateAccountant`; into others what is an event of dp-accounting. Refuses an accountant
    that would be wrong about it: one with another neighboring relation, and RdpAccountant under REPLACE_ONE.
    """
    adjacency, times = best_notion(guarantee).adjacency, checked_count("count", count)
    if not isinstance(accountant, dp.PrivacyAccountant):
        raise InvalidInput(
            f"accountant must be an accountant of dp-accounting. Got {shown(accountant):.60}.", field="accountant"
        )
    if adjacency_of(accountant.neighboring_relation) is not adjacency:
        raise Incompatible(
            f"a guarantee under {adjacency!r} says nothing about {accountant.neighboring_relation.name}. Use an accountant "
            f"with neighboring_relation={relation_of(adjacency)}."
        )
    if isinstance(accountant, dp.rdp.RdpAccountant) and adjacency.replaces:
        raise Incompatible(_NOT_DOUBLED)
    event = event_of(guarantee)
    if isinstance(event, LastIterateDpEvent) and not accountant.supports(event):
        raise Unavailable(f"{_NO_EVENT} Got {type(accountant).__name__}.")
    return accountant.compose(event, times)


def best_notion(guarantee: Any) -> Notion:
    """Of a report, that of its best theorem."""
    if isinstance(guarantee, Report) and guarantee.members:
        raise InvalidInput(
            "a report for the records of one person is no guarantee for everybody. Leave out group.", field="guarantee"
        )
    notion = guarantee.best.notion if isinstance(guarantee, Report) else guarantee
    if not isinstance(notion, Notion):
        raise InvalidInput(
            "guarantee must be a report of li.account or a notion, such as li.GaussianDP(mu=1.0). "
            f"Got {shown(guarantee):.60}.",
            field="guarantee",
        )
    return notion


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
