"""The page that a budget prints, and the sentence of a refusal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lastiterate.accounting.budget_entry import BudgetEntry
from lastiterate.accounting.budget_read import History
from lastiterate.accounting.budget_sum import Filter, Proposal, Rule, total_slack
from lastiterate.accounting.budget_terms import Terms

_MOST_SHOWN = 40
_HOW = {
    True: "Each release may depend on earlier ones. The guarantee for all of them together is the budget.",
    False: "All releases were decided before the first was made. The guarantee for all of them together is what is spent.",
}


def budget_page(terms: Terms, rule: Rule, past: History) -> Iterator[str]:
    """The lines."""
    entries = past.entries
    spent, left = rule.epsilon(entries), rule.left(entries)
    yield f"Budget: {terms.said()}"
    yield f"Spent: epsilon = {spent:.4g} in {len(entries)} release{'' if len(entries) == 1 else 's'}"
    yield f"Left: one Gaussian release of mu = {left.mu:.4g}, which alone has epsilon = {left.epsilon(terms.delta):.4g}"
    yield _HOW[terms.adaptive]
    if entries:
        yield from ("", f"{'no.':>5}  {'when (UTC)':<19}  {'epsilon':>9}  what")
    if len(entries) > _MOST_SHOWN:
        yield f"       … and {len(entries) - _MOST_SHOWN} before these"
    for entry in entries[-_MOST_SHOWN:]:
        yield f"{entry.number:>5}  {entry.when[:19]}  {entry.epsilon:>9.4g}  {_named(entry)}"
    yield from ("", f"digest {past.digest[:16]}")


def _named(entry: BudgetEntry) -> str:
    by = f" ({entry.who})" if entry.who else ""
    return f"{entry.what}{by}, {f'by {entry.theorem}' if entry.theorem else 'stated, not proved'}"


def refusal(terms: Terms, rule: Rule, entries: Sequence[BudgetEntry], proposal: Proposal) -> str:
    """What is spent, what this would make of it, what is left."""
    would, left = rule.epsilon(entries, proposal), rule.left(entries)
    ends = f"What is left covers one Gaussian release of mu = {left.mu:.4g}."
    if isinstance(rule, Filter) and math.isinf(would):
        room = max(terms.set_aside - total_slack(entries), 0.0)
        return (
            f"the budget cannot cover this release: its own delta is above {room:.2g} at every epsilon, which is all "
            f"that is left of the delta reserved for such releases (reserve = {terms.reserve:g}). Lower the release's own "
            f"delta, or make a budget with a larger reserve. {ends}"
        )
    return (
        f"the budget is epsilon = {terms.epsilon:g} at delta = {terms.delta:g}; {rule.epsilon(entries):.4g} is spent, and "
        f"this release would make it {would:.4g}. {ends}"
    )
