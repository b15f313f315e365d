"""Guarantees of this library as events of dp-accounting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dp_accounting
import dp_accounting as dp
import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as distributions

from lastiterate.accounting.report import Report
from lastiterate.adapters.dp_accounting.imported import (
    LastIterateDpEvent,
    Parts,
    UnsupportedEvent,
    checked_parts,
    composed,
    counted,
)
from lastiterate.adapters.dp_accounting.orders import adjacency_of, records_apart, relation_of
from lastiterate.curves.adjacency import POISSON, Adjacency
from lastiterate.curves.compose import largest_loss, profile_to_masses
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.minimum import Best
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    POSITIVE,
    Incompatible,
    InvalidInput,
    Unavailable,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.lattice import Masses
from lastiterate.numerics.rounding import ULP, down
from lastiterate.theorems.typical_batches import without_exceptions


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
    """Return the guarantee, or that of a report's best theorem; an error if it has a caveat."""
    if isinstance(guarantee, Report) and guarantee.members:
        raise InvalidInput("exported_of_one_user", field="guarantee")
    notion = guarantee.best.notion if isinstance(guarantee, Report) else guarantee
    if not isinstance(notion, Notion):
        raise InvalidInput("exported_kind", field="guarantee", got=f"{shown(guarantee):.60}")
    return notion.as_notion()


def _exact_event(notion: Notion) -> Any:
    """Return the event with exactly this guarantee, or None if there is none."""
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


# Guarantees as privacy-loss distributions of dp-accounting, on the safe side.


_MOST_CELLS = 3_000_000


def privacy_loss_distribution(
    guarantee: Notion | Report, value_discretization_interval: float = 1e-4
) -> distributions.PrivacyLossDistribution:
    """A `PrivacyLossDistribution` of dp-accounting that dominates the guarantee, in both orders of the data sets.

    Its ε and δ are at least those of the guarantee, alone and after composition. It connects the dots of the privacy
    profile, which is convex in e^ε, at multiples of `value_discretization_interval`; a loss whose excess has δ below 1e-16
    counts as infinite. It has no neighboring relation: compose it only with distributions under the same relation as the
    guarantee.
    """
    interval = checked_number("value_discretization_interval", value_discretization_interval, POSITIVE)
    notion = best_notion(guarantee)
    notion = guarantee.notion if isinstance(guarantee, Report) else notion
    quick = notion if _is_quick(notion) else dotted(notion)
    largest = largest_loss(quick)
    if largest / interval > _MOST_CELLS:
        raise must_be(
            "value_discretization_interval",
            f"at least {largest / _MOST_CELLS:.3g}",
            f"{interval:g}",
        )
    return distributions.PrivacyLossDistribution(_pmf(profile_to_masses(quick, interval), interval))


def _is_quick(notion: Notion) -> bool:
    formula = isinstance(notion, SubsampledGaussians) and notion.is_a_formula
    return formula or isinstance(notion, GaussianDP | Profile)


def _pmf(masses: Masses, interval: float) -> Any:
    cells = len(masses.masses) // 2
    return pld_pmf.DensePLDPmf(interval, -cells, _raised(masses.masses, interval), masses.infinite, True)


def _raised(masses: Floats, interval: float) -> Floats:
    """Move a part of every mass one cell up: more than its sums over all cells, and its losses, which it reaches by
    adding up the interval, may lose by rounding.
    """
    count = len(masses)
    part = min(1e-6 + ULP * count * (count + 2 / interval), 1.0)
    return np.append((1 - part) * masses, 0.0) + np.append(0.0, part * masses)


# A few dots of a profile whose chords lie close above it, where each point is costly.


# δ, and how many dots lie between it and the δ before: most where people ask.
_DOTS = ((1e-2, 40), (1e-4, 60), (1e-7, 80), (1e-10, 40), (1e-13, 20), (1e-16, 20))


def dotted(notion: Notion) -> Profile:
    """Return the profile on about 260 dots, equally far apart in log δ between the δ of the list.

    Of several guarantees for one release only those that are the best at one of these δ are asked: every choice is valid.
    """
    members = notion.members if isinstance(notion, Best) else (notion,)
    thresholds = np.array([member.epsilon_at_log(np.log([delta for delta, _ in _DOTS])) for member in members])
    useful = sorted({int(np.argmin(column)) for column in thresholds.T})
    epsilons = _places(thresholds.min(axis=0), notion)
    deltas = np.min([np.asarray(members[index].delta(epsilons)) for index in useful], axis=0)
    return Profile(epsilons=epsilons, deltas=deltas, adjacency=notion.adjacency)


def _places(thresholds: Floats, notion: Notion) -> Floats:
    if not np.isfinite(thresholds).all():
        thresholds = np.minimum(thresholds, largest_loss(notion))
    ends = np.append(0.0, np.minimum(np.maximum.accumulate(thresholds), 500.0))
    pieces = [np.linspace(*pair, count + 1) for pair, (_, count) in zip(pairwise(ends), _DOTS, strict=True)]
    return np.unique(np.concatenate(pieces))


# Accountant for dp-accounting.


_TYPICAL_DELTA = 1e-6  # chooses the theorem by which δ is found at first
_LEAST_DELTA, _LARGEST_DELTA = 1e-30, 0.5  # at which a theorem is chosen


class LastIterateAccountant(dp_accounting.PrivacyAccountant):  # type: ignore[misc]
    """Composes `LastIterateDpEvent` with the events of dp-accounting; ε and δ are certified upper bounds.

    For a single run, ε equals that of `li.account`. An event that is not supported raises `UnsupportedEvent`: a run with
    another neighboring relation, or a mechanism for which no bound is implemented.
    """

    def __init__(self, neighboring_relation: dp_accounting.NeighboringRelation) -> None:
        self._adjacency = adjacency_of(neighboring_relation)
        self._parts: Parts = []
        super().__init__(neighboring_relation)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            parts = checked_parts(event, self._adjacency, count)
        except UnsupportedEvent as refusal:
            return self.CompositionErrorDetails(invalid_event=refusal.event, error_message=str(refusal))
        if do_compose:
            self._parts = counted([*self._parts, *parts])
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """The smallest provable ε for everything composed so far."""
        delta = checked_number("target_delta", target_delta, INSIDE_UNIT)
        return float(composed(self._parts, self._adjacency, delta).epsilon(delta))

    def get_delta(self, target_epsilon: float) -> float:
        """The smallest provable δ for everything composed so far."""
        epsilon = checked_number("target_epsilon", target_epsilon, NON_NEGATIVE)
        found = self._delta_by_theorems_for(_TYPICAL_DELTA, epsilon)
        if not _LEAST_DELTA < found < _LARGEST_DELTA:
            return found
        return min(found, self._delta_by_theorems_for(found, epsilon))

    def _delta_by_theorems_for(self, delta: float, epsilon: float) -> float:
        return float(composed(self._parts, self._adjacency, delta).delta(epsilon))
