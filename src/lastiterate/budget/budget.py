"""A privacy budget that a team shares: every release is recorded before it is made, or refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.budget.certificate import budget_certificate
from lastiterate.budget.entries import (
    BudgetEntry,
    Cost,
    Terms,
    checked_line,
    first_digest,
    guarantee_from_dict,
    guarantee_to_dict,
    next_digest,
    plain_text,
)
from lastiterate.budget.ledger import FileLedger, History, Ledger, append, create, history_of, in_memory, written
from lastiterate.budget.total import Filter, Proposal, Rule, rule_of, total_slack
from lastiterate.certificate.certificate import certificate_of
from lastiterate.certificate.claims import checked_releases
from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.compose import checked_notions
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.display import card, folded, headline, lines, preformatted, summary
from lastiterate.errors import (
    NON_NEGATIVE,
    BudgetExceeded,
    Incompatible,
    InvalidInput,
    checked_choice,
    checked_number,
    must_be,
    shown,
    worded,
)
from lastiterate.numerics.rounding import AGAIN, up
from lastiterate.runs.files import write_text
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import of_the_library

_PATIENCE = 30.0  # seconds
_MOST_SHOWN = 40  # entries on the printed page


@dataclass(frozen=True, init=False, eq=False)
class Budget:
    """An (ε, δ) budget for everything ever released from one data set, in a file that several processes may share.

    `Budget(epsilon=3.0, delta=1e-5, file="team.sqlite")` opens the file, or creates it; a file with other terms is refused.
    Without a file the budget ends with the process. `adaptive=True` (the default): each release may depend on earlier ones,
    as when people look at a model and then train another. `adaptive=False` is for releases that were all decided beforehand;
    only then are guarantees composed as tightly as by `li.compose`. `reserve`: the share of delta kept for guarantees that
    no Gaussian covers at every epsilon. `timeout`: the seconds to wait while others write.
    `user_records`: the budget is for users with up to this many records each, and takes only runs and reports with the same.
    """

    terms: Terms
    file: Path | None
    _ledger: Ledger = field(repr=False)

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: Adjacency | str = REPLACE_ONE,
        file: str | Path | None = None,
        *,
        dataset: str = "",
        adaptive: bool = True,
        reserve: float = 0.1,
        timeout: float = _PATIENCE,
        user_records: int = 1,
    ) -> None:
        neighbours = checked_choice("adjacency", adjacency, Adjacency)
        terms = Terms(epsilon, delta, neighbours, dataset, adaptive, reserve, user_records)
        patience = checked_number("timeout", timeout, NON_NEGATIVE)
        if file is None:
            self._fill(terms, None, in_memory(plain_text(terms.to_dict()), first_digest(terms)))
            return
        path = _checked_file(file)
        created = create(path, plain_text(terms.to_dict()), first_digest(terms))
        self._fill(terms, path, FileLedger(path, patience))
        if not created and (other := terms.difference(self._read().terms)):
            raise Incompatible("budget_terms_differ", field="file", file=file, **other)

    @classmethod
    def open(cls, file: str | Path, *, read_only: bool = False, timeout: float = _PATIENCE) -> Budget:
        """The budget in this file, whatever its terms are; with `read_only`, nothing can be spent."""
        path = _checked_file(file)
        ledger = FileLedger(path, checked_number("timeout", timeout, NON_NEGATIVE), bool(read_only))
        if not path.exists():
            raise InvalidInput("budget_missing", field="file", file=file)
        with ledger.transaction(writing=False) as connection:
            found = history_of(path, written(connection))
        budget = cls.__new__(cls)
        budget._fill(found.terms, path, ledger)
        return budget

    def _fill(self, terms: Terms, file: Path | None, ledger: Ledger) -> None:
        for name, value in (("terms", terms), ("file", file), ("_ledger", ledger)):
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> float:
        """ε that all releases together may reach at `delta`."""
        return self.terms.epsilon

    @property
    def delta(self) -> float:
        """The δ of the budget, and of every ε it names."""
        return self.terms.delta

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets are neighbours; all releases must agree on it."""
        return self.terms.adjacency

    @cached_property
    def _rule(self) -> Rule:
        return rule_of(self.terms)

    def _read(self) -> History:
        with self._ledger.transaction(writing=False) as connection:
            return history_of(self.file, written(connection))

    @property
    def history(self) -> tuple[BudgetEntry, ...]:
        """The recorded releases, in order."""
        return self._read().entries

    @property
    def digest(self) -> str:
        """A fingerprint of the whole ledger: kept elsewhere, it shows later whether the ledger was rewritten."""
        return self._read().digest

    @property
    def spent(self) -> float:
        """ε at `delta` of everything so far.

        For an adaptive budget this shows how much is used; the guarantee is the whole budget (docs/budget.md).
        """
        return self._rule.epsilon(self.history)

    @property
    def left(self) -> GaussianDP:
        """The largest Gaussian release that still fits: `budget.left.mu`, and its own `budget.left.epsilon(delta)`."""
        return self._rule.left(self.history)

    def would(self, release: Report | Run | Notion, *, releases: Iterable[int] = ()) -> float:
        """Return what `spent` would be after this release; nothing is spent."""
        found, entries = release_of(release, self.terms, releases), self.history
        return self._rule.epsilon(entries, self._rule.priced(entries, found.notion))

    def spend(
        self, release: Report | Run | Notion, what: str, *, who: str = "", releases: Iterable[int] = ()
    ) -> BudgetEntry:
        """Record a release before it is made; if it does not fit, raises `li.errors.BudgetExceeded` and records nothing.

        `release`: the report of a training (`trained.report(delta)`), a run, or any guarantee of `li.notions`. `what`
        describes it in one line. `releases`: the steps of a run after which a checkpoint is released as well.
        """
        checked_line("what", what, least=1)
        checked_line("who", who)
        found = release_of(release, self.terms, releases)
        notion = found.notion
        alone = up(float(notion.epsilon(self.terms.delta)), by=AGAIN)
        with self._ledger.transaction(writing=True) as connection:
            past = history_of(self.file, written(connection))
            proposal = self._rule.priced(past.entries, notion)
            if allowed := self._rule.allows(past.entries, proposal):
                entry = self._entry(len(past.entries) + 1, what, who, found, alone, proposal.cost)
                text = plain_text(entry.to_dict())
                append(connection, entry.number, text, next_digest(past.digest, text))
        if not allowed:
            raise refusal(self.terms, self._rule, past.entries, proposal)
        return entry

    def _entry(self, number: int, what: str, who: str, found: Spending, alone: float, cost: Cost | None) -> BudgetEntry:
        return BudgetEntry(
            number=number,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            what=what,
            who=who,
            epsilon=alone,
            mu=None if cost is None else cost.mu,
            slack=None if cost is None else cost.slack,
            guarantee=found.guarantee,
            certificate=found.certificate,
            adjacency=self.terms.adjacency,
        )

    @property
    def certificate(self) -> dict[str, Any]:
        """Every entry with its own certificate, and the total, which `li.verify` recomputes."""
        past = self._read()
        return budget_certificate(self.terms, self._rule, past)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self.certificate) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """The budget and its entries without their certificates, as a JSON-ready dictionary."""
        past = self._read()
        listed = [
            {**entry.to_dict(), "theorem": entry.theorem, "guarantee": entry.guarantee["kind"]}
            for entry in past.entries
        ]
        for entry in listed:
            del entry["certificate"], entry["adjacency"]
        return {
            **self.terms.to_dict(),
            "spent": self._rule.epsilon(past.entries),
            "left": {"mu": self._rule.left(past.entries).mu},
            "digest": past.digest,
            "entries": listed,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        kept = "in memory" if self.file is None else f"in {self.file.name!r}"
        return summary(self, self.terms.said(), "adaptive" if self.terms.adaptive else "decided beforehand", kept)

    def _repr_html_(self) -> str:
        first, *others = budget_page(self.terms, self._rule, self._read())
        end = others.index("") if "" in others else len(others)
        return card(headline(first), lines(others[:end]), folded("Ledger", preformatted("\n".join(others[end + 1 :]))))

    def __str__(self) -> str:
        past = self._read()
        return "\n".join(budget_page(self.terms, self._rule, past))


def _checked_file(file: Any) -> Path:
    if not isinstance(file, str | Path) or not str(file) or "\0" in str(file):
        raise must_be("file", "the name of a file", f"{shown(file):.60}")
    return Path(file).absolute()


@dataclass(frozen=True, eq=False)
class Spending:
    """What is to be released, as the ledger will hold it: a guarantee, and its certificate if a run is behind it."""

    guarantee: dict[str, Any]
    certificate: dict[str, Any] | None
    adjacency: Adjacency

    @property
    def notion(self) -> Notion:
        """The guarantee that the ledger holds, which may be a table a little above what was given."""
        return guarantee_from_dict(self.guarantee, self.adjacency)


def release_of(release: Any, terms: Terms, releases: Iterable[int]) -> Spending:
    """Return what a ledger holds of a report, a run or a guarantee, if its neighbours are those of the budget.

    A run is accounted for at the budget's δ.
    """
    places = checked_releases(releases)
    if isinstance(release, Run):
        _check_users(release, terms, report=False)
        _check_adjacency(release.adjacency, terms, run=True)
        return _of_report(account(release, terms.delta, places), terms)
    if places:
        raise InvalidInput("releases_without_run", field="releases")
    if isinstance(release, Report):
        if release.members:
            raise InvalidInput("budget_one_person", field="release", unit=release.unit)
        _check_users(release.run, terms, report=True)
        _check_adjacency(release.run.adjacency, terms, run=True)
        return _of_report(release, terms)
    if isinstance(release, Notion):
        (release,) = checked_notions("spend", [release])
        _check_adjacency(release.adjacency, terms, run=False)
        of_user = release.group(terms.user_records)  # what is stated without a run is for one record
        return Spending(guarantee_to_dict(of_user, terms.delta), None, terms.adjacency)
    raise InvalidInput("not_a_release", field="release", got=f"{shown(release):.60}")


def _of_report(report: Report, terms: Terms) -> Spending:
    """Return the guarantee with the least ε at the budget's δ, all of its curve, and the proof of it."""
    if report.caveats:
        raise InvalidInput("budget_caveat", field="release", caveat=report.caveats[0])
    best = min(report.ranked, key=lambda one: one.guarantee.epsilon(terms.delta)).guarantee
    if not of_the_library(best.theorem):
        raise InvalidInput("budget_own_theorem", field="release", theorem=best.theorem.name)
    process = replace(report.run.process, releases=report.releases)
    certificate = certificate_of(report.run, process, best, terms.delta, assumptions=report.assumptions)
    notion = best.notion
    if isinstance(notion, GaussianDP):  # with the μ that the certificate claims: this is what the kernel replays
        claimed = certificate["claim"]["mu"]
        notion = GaussianDP(up(notion.mu) if claimed is None else claimed, terms.adjacency)
    return Spending(guarantee_to_dict(notion, terms.delta), certificate, terms.adjacency)


def _check_users(run: Run, terms: Terms, *, report: bool) -> None:
    if run.user_records != terms.user_records:
        both = terms.user_records, run.user_records
        raise Incompatible("budget_other_users", field="user_records", budget=both[0], given=both[1], report=report)


def _check_adjacency(adjacency: Adjacency, terms: Terms, *, run: bool) -> None:
    if adjacency is not terms.adjacency:
        raise Incompatible(
            "budget_other_adjacency", field="adjacency", budget=terms.adjacency, given=adjacency, run=run
        )


def budget_page(terms: Terms, rule: Rule, past: History) -> Iterator[str]:
    """Yield the lines of the printed budget."""
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
        by = f" ({entry.who})" if entry.who else ""
        proof = f"by {entry.theorem}" if entry.theorem else "stated, not proved"
        yield f"{entry.number:>5}  {entry.when[:19]}  {entry.epsilon:>9.4g}  {entry.what}{by}, {proof}"
    yield from ("", f"digest {past.digest[:16]}")


def refusal(terms: Terms, rule: Rule, entries: Sequence[BudgetEntry], proposal: Proposal) -> BudgetExceeded:
    """Return the error of a release that does not fit: what is spent, what it would make of it, and what is left."""
    would, left = rule.epsilon(entries, proposal), rule.left(entries).mu
    if isinstance(rule, Filter) and math.isinf(would):
        room = max(terms.set_aside - total_slack(entries), 0.0)
        return BudgetExceeded("reserve_spent", room=room, reserve=terms.reserve, left=left)
    spent = rule.epsilon(entries)
    return BudgetExceeded("budget_spent", epsilon=terms.epsilon, delta=terms.delta, spent=spent, would=would, left=left)
