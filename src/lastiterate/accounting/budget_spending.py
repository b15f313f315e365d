"""From what is to be released, a report, a run or a guarantee, to what a ledger holds of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.budget_guarantee import guarantee_from_dict, guarantee_to_dict
from lastiterate.accounting.budget_terms import Terms
from lastiterate.accounting.certificate import certificate_of
from lastiterate.accounting.releases import checked_releases
from lastiterate.accounting.report import Report
from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.compose import checked_notions
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.errors import Incompatible, InvalidInput, shown
from lastiterate.numerics.rounding import up
from lastiterate.runs.run import Run
from lastiterate.theorems.own import of_the_library


@dataclass(frozen=True, eq=False)
class Spending:
    """A guarantee as the ledger will hold it, and its certificate, if a run is behind it."""

    guarantee: dict[str, Any]
    certificate: dict[str, Any] | None
    adjacency: Adjacency

    @property
    def notion(self) -> Notion:
        """What the ledger holds, not what was given: a table is a little above it."""
        return guarantee_from_dict(self.guarantee, self.adjacency)


def release_of(release: Any, terms: Terms, releases: Iterable[int]) -> Spending:
    """Checked against the budget's neighbours; a run is accounted for at the budget's δ."""
    places = checked_releases(releases)
    if isinstance(release, Run):
        _check_users(release, terms, report=False)
        _check_adjacency(release.adjacency, terms, run=True)
        return _of_report(account(release, terms.delta, places), terms)
    if places:
        raise InvalidInput("releases_without_run", field="releases")
    if isinstance(release, Report):
        _check_everybody(release)
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
    """The guarantee with the least ε at the budget's δ, all of its curve, and the proof of it."""
    if report.caveats:
        raise InvalidInput("budget_caveat", field="release", caveat=report.caveats[0])
    best = min(report.ranked, key=lambda one: one.guarantee.epsilon(terms.delta)).guarantee
    if not of_the_library(best.theorem):
        raise InvalidInput("budget_own_theorem", field="release", theorem=best.theorem.name)
    process = replace(report.run.process, releases=report.releases)
    certificate = certificate_of(report.run, process, best, terms.delta, assumptions=report.assumptions)
    return Spending(_curve(certificate, best.notion, terms), certificate, terms.adjacency)


def _curve(certificate: dict[str, Any], notion: Notion, terms: Terms) -> dict[str, Any]:
    """μ as the certificate claims it, where it does: this is what the kernel replays."""
    if isinstance(notion, GaussianDP):
        claimed = certificate["claim"]["mu"]
        notion = GaussianDP(up(notion.mu) if claimed is None else claimed, terms.adjacency)
    return guarantee_to_dict(notion, terms.delta)


def _check_users(run: Run, terms: Terms, *, report: bool) -> None:
    if run.user_records != terms.user_records:
        both = terms.user_records, run.user_records
        raise Incompatible("budget_other_users", field="user_records", budget=both[0], given=both[1], report=report)


def _check_everybody(report: Report) -> None:
    if report.members:
        raise InvalidInput("budget_one_person", field="release", unit=report.unit)


def _check_adjacency(adjacency: Adjacency, terms: Terms, *, run: bool) -> None:
    if adjacency is not terms.adjacency:
        raise Incompatible(
            "budget_other_adjacency", field="adjacency", budget=terms.adjacency, given=adjacency, run=run
        )
