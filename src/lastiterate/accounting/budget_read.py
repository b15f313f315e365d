"""A ledger as it was read, and whether anything in it was changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lastiterate.accounting.budget_entry import BudgetEntry, chained, entries_of, first_digest
from lastiterate.accounting.budget_file import Written
from lastiterate.accounting.budget_terms import Terms
from lastiterate.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class History:
    """Terms and entries that belong together, word for word; `digest` covers all of them."""

    terms: Terms
    entries: tuple[BudgetEntry, ...]
    texts: tuple[str, ...]
    digest: str


def history_of(path: Path | None, found: Written) -> History:
    """Refused if an entry was edited, removed or put in: as far as the ledger itself can tell."""
    try:
        if (content := json.loads(found.terms)) is None:
            raise InvalidInput("budget_without_terms")
        terms = Terms.from_dict(content)
        digests = chained(terms, found.texts)
        _check_chain([first_digest(terms), *digests], found)
        return History(terms, entries_of(found.texts), found.texts, found.digest)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput("budget_damaged", field="file", file=path or "the budget", error=str(error)) from error


def _check_chain(digests: list[str], found: Written) -> None:
    for number, (now, then) in enumerate(zip(digests[1:], found.digests, strict=True), 1):
        if now != then:
            raise InvalidInput("entry_changed", number=number)
    if (len(found.texts), digests[-1]) != (found.count, found.digest):
        raise InvalidInput("entries_missing", count=found.count)
