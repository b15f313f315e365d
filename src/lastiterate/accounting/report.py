"""The report of a run: ε, the theorem that proves it, the other theorems that were tried, and the assumptions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from lastiterate.auditing.lower import LowerBound, named_instance, worst_instance
from lastiterate.certificate.certificate import certificate_of
from lastiterate.certificate.claims import at_their_places, checked_group, promises, released, run_for
from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.group import of_two
from lastiterate.curves.minimum import best
from lastiterate.curves.notion import Notion, refuse_caveats, with_caveats
from lastiterate.digits import above
from lastiterate.display import summary
from lastiterate.errors import (
    INSIDE_UNIT,
    Incompatible,
    InvalidInput,
    checked_choice,
    checked_count,
    checked_number,
    worded,
)
from lastiterate.facts import Basis, Fact, fact, facts_to_json
from lastiterate.plots import draw_comparison, draw_growth
from lastiterate.runs.files import run_to_dict, write_text
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.catalogue import ALL, of_the_library, own_assumption
from lastiterate.theorems.evidence import About, Grade
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

if TYPE_CHECKING:
    from lastiterate.accounting.alternatives import Alternative

FALSE_POSITIVE_RATE = 0.01  # the 1% in the sentence on an attacker
_LITTLE_BETTER = 1.25  # ε of every iterate over ε: up to here hiding the iterates brings little
_ONE_PERSON = fact("of_one_person")


def check_theorem_of_the_library(report: Report, what: str) -> None:
    """Others cannot tell what a theorem is worth that they do not have."""
    if not of_the_library(theorem := report.best.theorem):
        raise InvalidInput("own_theorem_for_others", field="theorems", what=what, theorem=theorem.name)


@dataclass(frozen=True, eq=False)
class Report:
    """The smallest provable ε of a run, with all guarantees, refusals and assumptions. `print(report)` shows them.

    `guarantees` are sorted, the smallest ε first; `epsilons` are theirs at `delta`. `ranked` holds both. `members`: the
    records of the person whom the report is for, if they were given; `run` has their number. `caveats`: known defects of one
    execution, such as noise from a seed, with which every guarantee of the report is marked. `also_assumed`: further
    assumptions of that execution. `basis`: the codes of assumptions that the execution enforced or checked.
    """

    run: Run
    delta: float
    releases: tuple[int, ...]
    ranked: tuple[Ranked, ...]
    inapplicable: tuple[Inapplicable, ...]
    caveats: tuple[Fact, ...] = ()
    also_assumed: tuple[Fact, ...] = ()
    members: tuple[int, ...] = ()
    basis: tuple[tuple[str, Basis], ...] = ()

    def __post_init__(self) -> None:
        caveats = (*self.caveats, *((_ONE_PERSON,) if self.members else ()))
        ranked = tuple(replace(one, guarantee=one.guarantee.with_caveats(caveats)) for one in self.ranked)
        object.__setattr__(self, "ranked", ranked)
        object.__setattr__(self, "caveats", tuple(one for one in self.best.caveats if one != _ONE_PERSON))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process is accounted for there: theorems are functions, which do not travel."""
        theorems = tuple(one.name if of_the_library(one) else one for one in self.theorems)
        about = self.run, self.delta, self.releases, self.members
        return accounted_again, (*about, theorems, self.caveats, self.also_assumed, self.basis)

    @property
    def best(self) -> Guarantee:
        """The guarantee with the smallest ε."""
        return self.ranked[0].guarantee

    @property
    def epsilon(self) -> float:
        """The smallest provable ε at `delta`: an upper bound."""
        return self.ranked[0].epsilon

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The guarantees of all theorems that apply, smallest ε first."""
        return tuple(one.guarantee for one in self.ranked)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The ε of each of `guarantees`, at `delta`."""
        return tuple(one.epsilon for one in self.ranked)

    @property
    def theorems(self) -> tuple[Theorem, ...]:
        """All theorems that were tried: those of the library in the order of the catalogue, then others."""
        tried = [one.theorem for one in self.guarantees] + [one.theorem for one in self.inapplicable]
        return (*(one for one in ALL if one in tried), *(one for one in tried if not of_the_library(one)))

    @property
    def unit(self) -> Fact:
        """The privacy unit: which records may differ between neighbouring data sets."""
        return self.run.adjacency.unit(self.run.user_records, self.members)

    @property
    def mu(self) -> float | None:
        """μ, if the best guarantee is Gaussian differential privacy."""
        return self.best.mu

    @property
    def epsilon_all_released(self) -> float:
        """ε if every iterate were released; ∞ if no theorem gives one."""
        every = (one.epsilon for one in self.ranked if one.guarantee.evidence.about is About.EVERY_ITERATE)
        return min(every, default=math.inf)

    @cached_property
    def lower_bound(self) -> LowerBound:
        """Lower bound that no theorem can be below: the true ε is between it and `epsilon`. Computed on first use."""
        return lower_bound_for(self.run, self.delta, self.releases, self.members)

    @property
    def ratio(self) -> float:
        """ε over its lower bound: 1 if ε is exact, ∞ if no lower bound is known."""
        if self.epsilon == 0:
            return 1.0
        return self.epsilon / self.lower_bound.epsilon if self.lower_bound.epsilon > 0 else math.inf

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """Runs that differ in one respect and have a smaller ε, smallest first; none if hiding iterates already helps.

        Each keeps the neighbours, the number of steps and the noise per step. Computed on first use; none for the
        records of one person, because other batches would change when they are used.
        """
        from lastiterate.accounting.alternatives import cheaper

        return cheaper(self)

    @cached_property
    def notion(self) -> Notion:
        """All guarantees together: the smallest δ at every ε."""
        return with_caveats(best(one._proved for one in self.guarantees), self.best.caveats)

    def as_notion(self) -> Notion:
        """The best guarantee, to be composed with others; an error for reports with a caveat or for one person alone."""
        if self.members:
            raise InvalidInput("one_person_composed", field="guarantees")
        return self.best.as_notion()

    def under(self, adjacency: Adjacency | str) -> Notion:
        """The best guarantee under another adjacency: replacing a record is removing one and adding one."""
        wanted = checked_choice("adjacency", adjacency, Adjacency)
        if wanted is self.run.adjacency:
            return self.best.notion
        if not wanted.replaces:
            raise Incompatible("adjacency_not_implied", proved=self.run.adjacency, wanted=wanted)
        return with_caveats(of_two(self.best._proved, wanted), self.best.caveats)

    def group(self, size: int) -> Report:
        """The report for a person with up to `size` records, anywhere in the data: that of the run with `user_records=size`.

        If you know which records they are, `li.account(run, delta, group=[...])` may prove a smaller ε.
        """
        from lastiterate.accounting.account import account

        if self.run.user_records != 1:
            raise InvalidInput("group_of_group", field="size", user_records=self.run.user_records)
        run = replace(self.run, user_records=checked_count("size", size))
        found = account(run, self.delta, self.releases, theorems=self.theorems)
        return replace(found, caveats=self.caveats, also_assumed=self.also_assumed, basis=self.basis)

    def profile(self, epsilons: ArrayLike) -> Any:
        """δ for each ε."""
        return self.notion.delta(epsilons)

    def tradeoff(self, type_i_errors: ArrayLike) -> Any:
        """A lower bound on the type II error of any test, for each type I error."""
        return self.notion.tradeoff(type_i_errors)

    @property
    def assumptions(self) -> tuple[Fact, ...]:
        """What the guarantee rests on, each with who stands for it; of a theorem of your own, that it is true."""
        theorem, basis = self.best.theorem, dict(self.basis)
        stated = promises(self.run, self.releases, self.members)
        own = () if of_the_library(theorem) else (own_assumption(theorem),)
        return (*(one.on(basis.get(one.code, Basis.PROMISED)) for one in stated), *self.also_assumed, *own)

    @property
    def promises(self) -> tuple[Fact, ...]:
        """The assumptions that you must guarantee: no program has checked them."""
        return tuple(one for one in self.assumptions if one.basis is Basis.PROMISED)

    @property
    def certificate(self) -> dict[str, Any]:
        """The proof of the best guarantee, for `lastiterate verify`: replayed step by step, or recomputed from the run.

        Each access returns a copy.
        """
        return deepcopy(self._certificate)

    @cached_property
    def _certificate(self) -> dict[str, Any]:
        process = at_their_places(replace(self.run.process, releases=self.releases), self.members)
        return certificate_of(self.run, process, self.best, self.delta, self.caveats, self.assumptions, self.members)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self._certificate) + "\n")

    def save(
        self,
        path: str | Path,
        *,
        stated: dict[str, Any] | None = None,
        model: Any = None,
        data: Any = None,
        data_key: str | Path | None = None,
        data_is_public: bool = False,
        curves: bool = True,
    ) -> None:
        """Write the report: a page to print and sign (.html), JSON with the certificate (.json), or text (.txt).

        The page is self-contained: claim, run, theorem, assumptions with a box each for initials, bounds, curves, proof and
        label; `lastiterate verify` checks it. `stated` fills fields of the label. `model` (what is released) and `data`
        are files, bytes or arrays, whose digests are written. A digest of private data needs `data_key`, the name of a file
        with a secret key (created if missing), because a plain digest would itself be a release. The curve of ε takes up to
        two dozen accounts; `curves=False` leaves it out.
        """
        from lastiterate.report.write import save

        check_theorem_of_the_library(self, "file")
        save(self, path, stated, model, data, data_key, data_is_public, curves)

    def label(self, stated: dict[str, Any] | None = None) -> dict[str, Any]:
        """The fields of public deployment registries and of NIST SP 800-226, each filled or "not stated".

        `stated` fills the others, by section, group and name.
        """
        from lastiterate.report.label import report_label

        check_theorem_of_the_library(self, "label")
        refuse_caveats(self.caveats)  # a label is read alone
        return report_label(self._certificate, stated)

    def to_dict(self) -> dict[str, Any]:
        """The report without its certificate, as a JSON-ready dictionary."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "lower_bound": {"epsilon": self.lower_bound.epsilon, "instance": self.lower_bound.instance.to_dict()},
            "unit": self.unit.to_dict(),
            "theorem": self.best.theorem.name,
            "citation": self.best.theorem.citation,
            "releases": list(self.releases),
            "guarantees": [
                {"theorem": one.theorem.name, "citation": one.theorem.citation, "epsilon": epsilon}
                for one, epsilon in zip(self.guarantees, self.epsilons, strict=True)
            ],
            "inapplicable": [
                {"theorem": one.theorem.name, "reasons": facts_to_json(one.reasons)} for one in self.inapplicable
            ],
            "assumptions": facts_to_json(self.assumptions),
            "caveats": facts_to_json(self.caveats),
            "run": run_to_dict(self.run),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """ε against steps: for this release, if every iterate were released, and the lower bound. Returns matplotlib axes.

        Drawn on `ax`, or on a new figure; written to `path` if given.
        """
        from lastiterate.accounting.epsilon_curve import growth

        found = growth(self.run, self.delta, self.releases, group=self.members, theorems=self.theorems)
        along, name = found.along(self.run.batches.per_epoch)
        what = worded("curve_of_releases", more=len(self.releases))
        curves = along, found.released, found.hidden, name
        return draw_growth(*curves, self.delta, what, self.lower_bound.epsilon, path, ax)

    def plot_comparison(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """ε of every theorem that applies, as bars, and the lower bound. Takes and returns what `plot` does."""
        names = [guarantee.theorem.name for guarantee in self.guarantees]
        return draw_comparison(names, self.epsilons, self.delta, self.lower_bound.epsilon, path, ax)

    def __str__(self) -> str:
        from lastiterate.report.text import summary_text

        return "\n".join(summary_text(self))

    def details(self) -> str:
        """The whole report as text: the run, every assumption, all theorems that apply, and why others do not."""
        from lastiterate.report.text import details_text

        return "\n".join(details_text(self))

    def __repr__(self) -> str:
        return summary(
            self,
            *map(str, self.caveats[:1]),
            f"epsilon={above(self.epsilon)}",
            f"delta={self.delta:g}",
            f"by {self.best.theorem.name!r}",
            f"{self.run.steps} steps",
            str(self.unit),
        )

    def _repr_html_(self) -> str:
        from lastiterate.report.page import report_html

        return report_html(self)


def hiding_helps_little(report: Report) -> bool:
    """Return whether ε is nearly that of releasing every iterate; never for the records of one person."""
    return not report.members and report.epsilon_all_released <= _LITTLE_BETTER * report.epsilon


def detection_rates(proved: Notion, false_positive_rates: ArrayLike) -> Any:
    """Upper bounds on how often an attacker detects a changed record, for each false-positive rate."""
    return 1 - proved.tradeoff(false_positive_rates)


def accounted_again(
    run: Run,
    delta: float,
    releases: tuple[int, ...],
    members: tuple[int, ...],
    theorems: tuple[Theorem | str, ...],
    caveats: tuple[Fact, ...],
    also_assumed: tuple[Fact, ...],
    basis: tuple[tuple[str, Basis], ...],
) -> Report:
    """Account for a run once more, in another process, and return the report that was copied there."""
    from lastiterate.accounting.account import account_by

    named = {one.name: one for one in ALL}
    tried = [named[one] if isinstance(one, str) else one for one in theorems]
    found = account_by(tried, replace(run, user_records=1) if members else run, delta, releases, members)
    return replace(found, caveats=caveats, also_assumed=also_assumed, basis=basis)


@dataclass(frozen=True)
class Ranked:
    """A guarantee and its ε at the report's δ; sorted by `rank`."""

    epsilon: float
    guarantee: Guarantee

    def rank(self) -> tuple[float, bool, bool, bool, bool, str]:
        """Order: nine digits of ε; then the library's, replayed, of every iterate, without pairs; then by name."""
        evidence = self.guarantee.evidence
        recomputed, last_alone = evidence.grade is not Grade.REPLAYED, evidence.about is not About.EVERY_ITERATE
        theorem = self.guarantee.theorem
        proof = not of_the_library(theorem), recomputed, last_alone, bool(evidence.pairs)
        return float(f"{self.epsilon:.9g}"), *proof, theorem.name


def lower_bound(run: Run, delta: float, releases: Iterable[int] = (), group: Iterable[int] = ()) -> LowerBound:
    """A lower bound on ε at `delta`: no valid guarantee for this run can be smaller.

    It is the ε of the worst instance found among those that the run's assumptions allow: any loss with the stated
    smoothness, convexity and gradient bounds, any data, any first iterate. `releases`: the steps after which a checkpoint is
    released as well. `group`: the records of one person, all of which may differ.
    """
    target, members = checked_number("delta", delta, INSIDE_UNIT), checked_group(checked_run(run), group)
    return lower_bound_for(run_for(run, members), target, releases, members)


def lower_bound_for(run: Run, delta: float, releases: Iterable[int], members: tuple[int, ...]) -> LowerBound:
    """Lower bound on ε for a run whose `user_records` is the number of these records, if any are named."""
    process = at_their_places(released(run.process, releases), members)
    if process.members:
        return named_instance(run, delta, process.releases, process.members)
    return worst_instance(run, delta, process.releases)
