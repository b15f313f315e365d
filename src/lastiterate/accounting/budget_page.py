"""The page that a budget prints, and its refusal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lastiterate.accounting.budget_entry import BudgetEntry
from lastiterate.accounting.budget_read import History
from lastiterate.accounting.budget_sum import Filter, Proposal, Rule, total_slack
from lastiterate.accounting.budget_terms import Terms
from lastiterate.errors import BudgetExceeded, worded

_MOST_SHOWN = 40


def budget_page(terms: Terms, rule: Rule, past: History) -> Iterator[str]:
    """The lines."""
    entries = past.entries
    spent, left = rule.epsilon(entries), rule.left(entries)
    yield f"Budget: {terms.said()}"
    yield f"Spent: epsilon = {spent:.4g} in {len(entries)} release{'' if len(entries) == 1 else 's'}"
    yield worded("budget_left", mu=left.mu, epsilon=left.epsilon(terms.delta))
    yield worded("budget_adaptive" if terms.adaptive else "budget_decided_beforehand")
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


def refusal(terms: Terms, rule: Rule, entries: Sequence[BudgetEntry], proposal: Proposal) -> BudgetExceeded:
    """What is spent, what this would make of it, what is left."""
    would, left = rule.epsilon(entries, proposal), rule.left(entries).mu
    if isinstance(rule, Filter) and math.isinf(would):
        room = max(terms.set_aside - total_slack(entries), 0.0)
        return BudgetExceeded("reserve_spent", room=room, reserve=terms.reserve, left=left)
    spent = rule.epsilon(entries)
    return BudgetExceeded("budget_spent", epsilon=terms.epsilon, delta=terms.delta, spent=spent, would=would, left=left)
