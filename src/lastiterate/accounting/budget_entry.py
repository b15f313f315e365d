"""One line of a ledger, and how lines are chained: each digest covers all that was written before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lastiterate.accounting.budget_guarantee import guarantee_from_dict
from lastiterate.accounting.budget_terms import Terms, adjacency_named, checked_line
from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.digits import above
from lastiterate.display import summary
from lastiterate.errors import MU, NON_NEGATIVE, UNIT, InvalidInput, checked_count, checked_number


@dataclass(frozen=True)
class Cost:
    """What an adaptive budget is charged: its profile lies below that of μ, plus the slack."""

    mu: float
    slack: float


@dataclass(frozen=True, eq=False)
class BudgetEntry:
    """A recorded release. `epsilon` is its own, at the budget's δ; an adaptive budget is charged `mu` and `slack`.

    `guarantee` is a whole curve, as plain numbers: `notion` of it. `certificate` is that of the run, if it was one.
    """

    number: int
    when: str
    what: str
    who: str
    epsilon: float
    mu: float | None
    slack: float | None
    guarantee: dict[str, Any]
    certificate: dict[str, Any] | None
    adjacency: Adjacency

    def __repr__(self) -> str:
        return summary(self, f"number {self.number}", repr(self.what), f"epsilon={above(self.epsilon)}", self.when)

    @cached_property
    def notion(self) -> Notion:
        """The guarantee of this release alone."""
        return guarantee_from_dict(self.guarantee, self.adjacency)

    @property
    def cost(self) -> Cost:
        """Of an entry of an adaptive budget."""
        return Cost(checked_number("mu", self.mu, MU), checked_number("slack", self.slack, UNIT))

    @property
    def theorem(self) -> str:
        """The theorem that proves it; "" if its guarantee was only stated."""
        return str(self.certificate["theorem"]) if self.certificate else ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON could hold it."""
        plain = {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}
        return {**plain, "adjacency": self.adjacency.name.lower()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> BudgetEntry:
        """Back; whatever is missing or wrong raises."""
        values = {name: content[name] for name in cls.__dataclass_fields__}
        checked_count("number", values["number"])
        for name in ("when", "what", "who"):
            checked_line(name, values[name])
        checked_number("epsilon", values["epsilon"], NON_NEGATIVE)
        entry = cls(**{**values, "adjacency": adjacency_named(content["adjacency"])})
        if (entry.mu, entry.slack) != (None, None):
            _ = entry.cost
        return entry


def first_digest(terms: Terms) -> str:
    """Of a ledger without entries."""
    return _hashed(plain_text(terms.to_dict()))


def next_digest(digest: str, text: str) -> str:
    """Of a ledger that had this digest and got one more line."""
    return _hashed(f"{digest}\n{text}")


def chained(terms: Terms, texts: Iterable[str]) -> list[str]:
    """The digest after each line."""
    found, digest = [], first_digest(terms)
    for text in texts:
        digest = next_digest(digest, text)
        found.append(digest)
    return found


def plain_text(content: dict[str, Any]) -> str:
    """JSON that is the same for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def entries_of(texts: Iterable[str]) -> tuple[BudgetEntry, ...]:
    """Numbered from 1 on, without a gap."""
    entries = tuple(BudgetEntry.from_dict(json.loads(text)) for text in texts)
    if [entry.number for entry in entries] != list(range(1, len(entries) + 1)):
        raise InvalidInput("entries_not_numbered")
    return entries


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
