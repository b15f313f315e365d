"""What entries come to together: by a filter, if later ones may depend on earlier results; else by composition.

A filter (docs/budget.md has the proof): if each entry's profile lies below that of μᵢ plus τᵢ, and Σμᵢ² ≤ μ² and Στᵢ ≤ τ
whatever comes out, then all together lies below that of μ plus τ, however entries were chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lastiterate.budget.entries import BudgetEntry, Cost, Terms
from lastiterate.curves.compose import compose
from lastiterate.curves.gaussian import GaussianDP, composed_mu
from lastiterate.curves.gaussian_cover import covering_mu, largest_mu, tabled
from lastiterate.curves.notion import Notion
from lastiterate.errors import MU
from lastiterate.numerics.rounding import AGAIN, down, up

_SHARE = 0.1  # of the slack that is left: it never runs out, and μ hardly depends on it
_WORTH = 1e-3  # of μ: less than that is not worth a slack
_CLOSE = 1e-3  # of the largest μ of all, where what is left has to be searched for


@dataclass(frozen=True, eq=False)
class Proposal:
    """A guarantee that may become an entry, and what the budget would be charged."""

    notion: Notion
    cost: Cost | None


class Rule(ABC):
    """How entries add up under these terms."""

    @abstractmethod
    def priced(self, entries: Sequence[BudgetEntry], notion: Notion) -> Proposal:
        """Return the release with what it would be charged after these entries."""

    @abstractmethod
    def epsilon(self, entries: Sequence[BudgetEntry], more: Proposal | None = None) -> float:
        """ε of all entries together, and of one more release if given, at the budget's δ."""

    @abstractmethod
    def allows(self, entries: Sequence[BudgetEntry], more: Proposal | None = None) -> bool:
        """Return whether all entries together, and one more release if given, are within the budget."""

    @abstractmethod
    def left(self, entries: Sequence[BudgetEntry]) -> GaussianDP:
        """Return the largest Gaussian release that is still allowed."""


def rule_of(terms: Terms) -> Rule:
    return Filter(terms) if terms.adaptive else Composition(terms)


@dataclass(frozen=True)
class Filter(Rule):
    """Σμ² and Σ slack, each with its limit: for entries whose guarantees are chosen after seeing earlier results."""

    terms: Terms

    @cached_property
    def largest(self) -> float:
        """√ of the limit of Σμ², which is fixed with the budget, as the limit of slacks is."""
        terms = self.terms
        return largest_mu(epsilon=terms.epsilon, delta=down(terms.delta - terms.set_aside))

    def priced(self, entries: Sequence[BudgetEntry], notion: Notion) -> Proposal:
        if isinstance(notion, GaussianDP):
            return Proposal(notion, Cost(notion.mu, 0.0))
        table = tabled(notion, self.terms.delta)
        if table is None:
            return Proposal(notion, Cost(math.inf, 0.0))
        room = max(down(self.terms.set_aside) - total_slack(entries), 0.0)
        slack = min(max(_SHARE * room, float(table[1][-1])), room)
        without, with_slack = (up(covering_mu(*table, one), by=AGAIN) for one in (0.0, slack))
        worth = with_slack < without * (1 - _WORTH)
        return Proposal(notion, Cost(with_slack, slack) if worth else Cost(without, 0.0))

    def epsilon(self, entries: Sequence[BudgetEntry], more: Proposal | None = None) -> float:
        mu = total_mu(entries, more)
        if not mu <= MU.high or total_slack(entries, more) > self.terms.set_aside:
            return math.inf
        return float(GaussianDP(mu).epsilon(down(self.terms.delta - self.terms.set_aside)))

    def allows(self, entries: Sequence[BudgetEntry], more: Proposal | None = None) -> bool:
        return total_mu(entries, more) <= self.largest and total_slack(entries, more) <= self.terms.set_aside

    def left(self, entries: Sequence[BudgetEntry]) -> GaussianDP:
        square = self.largest**2 - total_mu(entries) ** 2
        mu = down(math.sqrt(max(square, 0.0)))
        while mu > 0 and not self.allows(entries, Proposal(GaussianDP(mu), Cost(mu, 0.0))):
            mu = down(mu, by=1e-9) if mu > 1e-6 * self.largest else 0.0
        return GaussianDP(mu, self.terms.adjacency)


@dataclass(frozen=True)
class Composition(Rule):
    """The composition of all guarantees: for entries that were all decided before the first result."""

    terms: Terms

    def priced(self, entries: Sequence[BudgetEntry], notion: Notion) -> Proposal:
        return Proposal(notion, None)

    def epsilon(self, entries: Sequence[BudgetEntry], more: Proposal | None = None) -> float:
        parts = [entry.notion for entry in entries] + ([] if more is None else [more.notion])
        return float(compose(parts).epsilon(self.terms.delta)) if parts else 0.0

    def allows(self, entries: Sequence[BudgetEntry], more: Proposal | None = None) -> bool:
        return self.epsilon(entries, more) <= self.terms.epsilon

    def left(self, entries: Sequence[BudgetEntry]) -> GaussianDP:
        """Search the largest μ that fits, by composing a Gaussian of each that is tried."""
        adjacency, low = self.terms.adjacency, 0.0
        high = largest = largest_mu(epsilon=self.terms.epsilon, delta=self.terms.delta)
        spent = [compose([entry.notion for entry in entries])] if entries else []

        def fits(mu: float) -> bool:
            return float(compose([*spent, GaussianDP(mu, adjacency)]).epsilon(self.terms.delta)) <= self.terms.epsilon

        mus = [one.mu for one in spent if isinstance(one, GaussianDP)]
        of_gaussians = down(math.sqrt(max(largest**2 - math.fsum(mu**2 for mu in mus), 0.0)))  # exact if all are
        if fits(of_gaussians):
            return GaussianDP(of_gaussians, adjacency)
        while high - low > _CLOSE * largest:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return GaussianDP(low, adjacency)


def total_mu(entries: Sequence[BudgetEntry], more: Proposal | None = None) -> float:
    """√Σμ², rounded up."""
    mus = [cost.mu for cost in _costs(entries, more)]
    return composed_mu(mus, [1] * len(mus))


def total_slack(entries: Sequence[BudgetEntry], more: Proposal | None = None) -> float:
    return math.fsum(cost.slack for cost in _costs(entries, more))


def _costs(entries: Sequence[BudgetEntry], more: Proposal | None) -> list[Cost]:
    return [entry.cost for entry in entries] + ([more.cost] if more is not None and more.cost is not None else [])
