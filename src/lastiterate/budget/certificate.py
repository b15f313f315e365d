"""The certificate of a budget: all entries with their own certificates, chained, and what they come to together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lastiterate.budget.entries import BudgetEntry, Terms, chained, entries_of, first_digest, implied, plain_text
from lastiterate.budget.ledger import History
from lastiterate.budget.total import Filter, Rule, rule_of, total_mu, total_slack
from lastiterate.certificate.certificate import BUDGET_FORMAT, proved_by, rounded_up
from lastiterate.certificate.verdict import Request, Verdict, rejected
from lastiterate.certificate.verify import verify
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.gaussian_cover import gaussian_cover
from lastiterate.errors import INSIDE_UNIT, NON_NEGATIVE, checked_number, worded
from lastiterate.facts import Fact, fact, fact_from_json, facts_from_json
from lastiterate.numerics.rounding import AGAIN, up


@dataclass(frozen=True, repr=False)
class BudgetVerdict(Verdict):
    """The verdict on a budget: how each of its `entries` was checked."""

    entries: tuple[str, ...] = ()

    def __str__(self) -> str:
        return worded("accepted_budget", **self._named("entries"))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "entries": list(self.entries)}


def budget_certificate(terms: Terms, rule: Rule, past: History) -> dict[str, Any]:
    """Return the certificate of what may be claimed: that an adaptive budget was kept; else, what its entries come to."""
    epsilon = terms.epsilon if terms.adaptive else rounded_up(up(rule.epsilon(past.entries), by=AGAIN))
    return {
        "format": BUDGET_FORMAT,
        "grade": "recomputed",
        "claim": {"unit": terms.unit.to_dict(), "delta": terms.delta, "epsilon": epsilon},
        "terms": terms.to_dict(),
        "entries": [json.loads(text) for text in past.texts],
        "digest": past.digest,
    }


def check_budget_certificate(content: dict[str, Any], question: Request) -> Verdict:
    """Check the certificate of a budget: the chain of its entries, their sum, then each entry by its own grade."""
    if question.run is not None:
        return rejected("budget_not_run")
    terms = Terms.from_dict(content["terms"])
    texts = [plain_text(entry) for entry in content["entries"]]
    if [first_digest(terms), *chained(terms, texts)][-1] != content["digest"]:
        return rejected("entries_not_of_digest")
    entries = entries_of(texts)
    claim = content["claim"]
    if (fact_from_json(claim["unit"]), claim["delta"]) != (terms.unit, terms.delta):
        return rejected("claim_not_of_terms")
    epsilon = checked_number("epsilon", claim["epsilon"], NON_NEGATIVE)
    if otherwise := _not_the_sum(terms, entries, epsilon):
        return otherwise
    for proved in (_miscounted, _unbacked):  # certificates last: they take long
        for entry in entries:
            if otherwise := proved(entry, terms):
                return rejected("entry_rejected", number=entry.number, because=otherwise.rejection)
    return BudgetVerdict(
        True,
        epsilon,
        checked_number("delta", claim["delta"], INSIDE_UNIT),
        assumptions=tuple(dict.fromkeys(_assumptions(terms, entries))),
        grade="recomputed",
        unit=terms.unit,
        entries=tuple(str(one.certificate["grade"]) if one.certificate else "stated" for one in entries),
    )


def _miscounted(entry: BudgetEntry, terms: Terms) -> Verdict | None:
    """Reject an entry that is not what its curve says: its neighbours, its own ε, what it was charged."""
    if entry.adjacency is not terms.adjacency:
        return rejected("entry_other_neighbours", adjacency=entry.adjacency)
    if not float(entry.notion.epsilon(terms.delta)) <= entry.epsilon:
        return rejected("entry_other_epsilon", epsilon=entry.epsilon)
    if terms.adaptive:
        cost = entry.cost
        if not gaussian_cover(entry.notion, terms.delta, cost.slack) <= cost.mu:
            return rejected("entry_not_covered", mu=cost.mu, slack=cost.slack)
    return None


def _unbacked(entry: BudgetEntry, terms: Terms) -> Verdict | None:
    """Reject an entry whose certificate does not prove its curve; a stated guarantee has no certificate."""
    if (certificate := entry.certificate) is None:
        return None
    verdict = verify(certificate)
    if not verdict.accepted:
        return verdict
    if type(verdict) is not Verdict or verdict.unit != terms.unit:
        return rejected("entry_not_of_run")
    return None if implied(entry.guarantee, proved_by(certificate), terms.delta) else rejected("entry_curve_unproved")


def _not_the_sum(terms: Terms, entries: tuple[BudgetEntry, ...], epsilon: float) -> Verdict | None:
    rule = rule_of(terms)
    if not isinstance(rule, Filter):
        found = rule.epsilon(entries)
        return None if found <= epsilon else rejected("entries_make_more", claimed=epsilon, epsilon=found)
    if epsilon < terms.epsilon:
        return rejected("adaptive_claims_less", epsilon=terms.epsilon)
    if total_slack(entries) > terms.set_aside:
        return rejected("reserve_exceeded")
    mu = total_mu(entries)
    together = float(GaussianDP(mu).delta(terms.epsilon)) + terms.set_aside if math.isfinite(mu) else 1.0
    return None if together <= terms.delta else rejected("entries_exceed_budget", mu=mu)


def _assumptions(terms: Terms, entries: tuple[BudgetEntry, ...]) -> Iterator[Fact]:
    """Yield the assumptions of the ledger, then those of its entries."""
    yield from (fact("ledger_complete"), fact("releases_adaptive", adaptive=terms.adaptive))
    if terms.user_records > 1:
        yield fact("user_records", at_most=terms.user_records)
    unproved = tuple(entry.number for entry in entries if entry.certificate is None)
    if unproved:
        yield fact("stated_by_owner", entries=unproved)
    for certificate in (entry.certificate for entry in entries if entry.certificate is not None):
        yield from facts_from_json(certificate["assumptions"])
