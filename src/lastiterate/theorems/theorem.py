"""A theorem as a value: what it covers, its assumptions, and its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.group import of_group
from lastiterate.curves.minimum import Ladder, best
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import as_computed
from lastiterate.display import summary
from lastiterate.errors import Unavailable
from lastiterate.facts import Fact, fact
from lastiterate.kernel.places import Places
from lastiterate.runs.process import Process
from lastiterate.theorems.evidence import About, Evidence, Grade, NoFiniteBound
from lastiterate.theorems.features import (
    ADDED_OR_REMOVED,
    ANY_BATCHES,
    BY_THE_FRAME,
    FEATURES,
    ONLY_WITH,
    REPLACED,
    UNKNOWN,
    ZEROED_OUT,
    Assumption,
    Feature,
    features_of,
)
from lastiterate.theorems.typical_batches import REFERENCE, OfUsualSizes, UsualSizes, without_exceptions


@dataclass(frozen=True)
class Theorem:
    """A bound with its assumptions; `bound` is only called if all of them hold.

    `features`: what its proof covers, of all that a run may have (theorems/features.py). A run with any other feature is
    refused before an assumption is looked at; `apply` itself takes care of those of `BY_THE_FRAME`.

    How a certificate is checked: with `places`, the kernel replays the schedules for these positions of a record in an
    epoch; they may prepay if `functions` is above 0, the number of different functions that describe a record's effect.
    With `rung`, the bound is the best of many, and one of them is rebuilt from its number. Otherwise the bound is computed
    again.

    `about`: whether the bound covers every iterate or the last. If batches have random sizes, assumptions and bound are
    evaluated for all but unusual sizes, unless the kernel replays them; `sees` lists what the bound then depends on.

    If several records of a user may differ, the guarantee for one record is converted to one for the group
    (curves/group.py), or by `of_group` if that is sharper; a theorem may also treat all records of a user `as_one`.

    `recent`: the last steps of a process as one of their own, with a `displacement` for what came before.
    """

    name: str
    citation: str
    covers: str
    features: Set[Feature]
    assumptions: tuple[Assumption, ...]
    bound: Callable[[Process], Evidence]
    erratum: str | None = None
    about: About = About.LAST_ITERATE
    rung: Callable[[Process, int], Notion] | None = None
    places: Callable[[Process], Places] | None = None
    functions: int = 0
    sees: Callable[[Process], tuple[Any, ...]] = attrgetter(
        "sensitivity", "noise", "lipschitz", "drift", "retain", "sampled"
    )
    of_group: Callable[[Process, Notion], Notion | None] | None = None
    as_one: Callable[[Process], Process] | None = None
    recent: Callable[[Process], Process] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozenset(self.features))

    def __repr__(self) -> str:
        return summary(self, repr(self.name), self.citation)

    @property
    def adjacencies(self) -> tuple[Adjacency, ...]:
        """The neighbours that the proof covers, in both orders."""
        known = zip((REPLACED, ZEROED_OUT, ADDED_OR_REMOVED), Adjacency, strict=True)
        return tuple(adjacency for feature, adjacency in known if feature in self.features)

    @property
    def needs(self) -> tuple[str, ...]:
        """What it needs of a run, in words: its batches, the features that it does not cover, its assumptions."""
        batches = [one.name for one in FEATURES if one.group == "batches" and one in self.features]
        covered = self.features | BY_THE_FRAME | {UNKNOWN}
        lacking = [one for one in FEATURES if one.group is None and one not in covered]
        lacking = [one for one in lacking if one not in ONLY_WITH or ONLY_WITH[one] & self.features]
        kinds = () if len(batches) == len(ANY_BATCHES) else (" or ".join(batches),)
        return (*kinds, *(one.statement for one in (*lacking, *self.assumptions)))

    @property
    def grade(self) -> Grade:
        """How its certificates are checked."""
        return Grade.RECOMPUTED if self.places is None else Grade.REPLAYED

    def failures(self, process: Process) -> list[tuple[Assumption, Fact]]:
        """Return the assumptions that fail, each with the reason."""
        return list(self.failing(process))

    def seen(self, process: Process) -> Process:
        """Return the process as the theorem sees it: all records of a user as one, if it can; else without their positions.

        It is given the last steps alone where these forget the start: of a very long run, if they are to have schedules.
        """
        if self.recent is not None:
            process = self.recent(process)
        elif self.places is not None:
            process = process.without_a_distant_start()
        if process.group == 1 and not process.members:
            return process
        return replace(process, members=()) if self.as_one is None else self.as_one(process)

    def failing(self, process: Process) -> Iterator[tuple[Assumption, Fact]]:
        """Yield the features that it does not cover, or else the assumptions that fail: some take long to check."""
        given = self.seen(process).but_for(0.0 if self.places else REFERENCE)
        if uncovered := [one for one in features_of(given) if one[0] not in self.features | BY_THE_FRAME]:
            return iter(uncovered)
        return ((one, reason) for one in self.assumptions if (reason := one.failure(given)) is not None)

    def holds(self, process: Process) -> bool:
        """Whether the theorem covers every feature of this process and every assumption holds."""
        return next(self.failing(process), None) is None

    def apply(self, process: Process) -> Guarantee | Inapplicable:
        """Return the guarantee for this process, or why the theorem does not apply."""
        if failed := self.failures(process):
            return self._refusal(process, failed)
        process = self.seen(process)
        try:
            evidence = self._of_usual_sizes(process) if process.usual and not self.places else self.bound(process)
        except NoFiniteBound:
            return self._refusal(process, failed)
        whole = evidence.after(process.prior_mu)
        computed = as_computed(whole.notion, process.displacement).relabelled(process.adjacency)
        if process.group > 1:
            return Guarantee(self, Evidence(self._of_all(process, computed), about=self.about))
        return Guarantee(self, replace(whole, notion=computed, about=self.about))

    def refusal(self, process: Process) -> Inapplicable:
        """Return why it does not apply, without computing its bound."""
        return self._refusal(process, self.failures(process))

    def _refusal(self, process: Process, failed: list[tuple[Assumption, Fact]]) -> Inapplicable:
        if not failed:
            return Inapplicable(self, (fact("no_finite_bound", because=process.reason),))
        return Inapplicable(self, tuple(reason for _, reason in failed), tuple(one for one, _ in failed))

    def _of_all(self, process: Process, one: Notion) -> Notion:
        """Return what holds for a whole group, from what holds for one record of it."""
        found = of_group(one, process.group)
        sharper = None if self.of_group is None else self.of_group(process, one)
        return found if sharper is None else best([found, sharper])

    def notion(self, process: Process) -> Notion:
        """Return what the theorem proves for this process; an error if it does not apply."""
        answer = self.apply(process)
        if isinstance(answer, Guarantee):
            return answer.notion
        raise Unavailable(str(answer))

    def rebuilt(self, process: Process, rung: int | None) -> Notion:
        """Return what the theorem proves from what a certificate names: this rung of its ladder, or all over again."""
        if rung is None or self.rung is None or process.group > 1:
            return self.notion(process)
        found = (
            self.rung(process, rung)
            if process.usual is None
            else OfUsualSizes(self._usual(process), partial(_at, self.rung, rung))
        )
        whole = found.after(process.prior_mu)
        return as_computed(whole, process.displacement).relabelled(process.adjacency)

    def _of_usual_sizes(self, process: Process) -> Evidence:
        """Return the evidence for all but unusual sizes of batches: rung by rung, so that a certificate finds one again."""
        sizes, climb = self._usual(process), self.rung
        found = None if climb is None else self.bound(process.but_for(REFERENCE))
        if climb is None or found is None or found.ladder is None:
            return Evidence(OfUsualSizes(sizes, lambda given: self.bound(given).notion))
        ladder = Ladder(found.ladder.rungs, lambda rung: OfUsualSizes(sizes, partial(_at, climb, rung)))
        return Evidence(ladder, ladder)

    def _usual(self, process: Process) -> UsualSizes:
        return UsualSizes(process, self.holds, self.sees)


def _at(climb: Callable[[Process, int], Notion], rung: int, process: Process) -> Notion:
    return climb(process, rung)


@dataclass(frozen=True)
class Guarantee:
    """What a theorem proves for a run, and the evidence."""

    theorem: Theorem
    evidence: Evidence

    def __repr__(self) -> str:
        return summary(self, f"by {self.theorem.name!r}", f"about {self.evidence.about.value}", repr(self.notion))

    @property
    def notion(self) -> Notion:
        return self.evidence.notion

    @property
    def caveats(self) -> tuple[Fact, ...]:
        """Known defects of the execution that it is about, for which it does not hold."""
        return self.notion.caveats

    def with_caveats(self, caveats: tuple[Fact, ...]) -> Guarantee:
        """The guarantee, marked with these defects of an execution besides those that it has."""
        more = tuple(one for one in caveats if one not in self.caveats)
        if not more:
            return self
        return replace(self, evidence=self.evidence._without_caveats.with_caveats((*self.caveats, *more)))

    @property
    def mu(self) -> float | None:
        """μ, if it is Gaussian differential privacy."""
        return self._proved.mu if isinstance(self._proved, GaussianDP) else None

    @property
    def _proved(self) -> Notion:
        """The curve that the theorem proves of the run, whatever happened in an execution: for numbers."""
        return self.evidence._without_caveats.notion

    def as_notion(self) -> Notion:
        """The guarantee, to be composed with others; an error if it has a caveat."""
        return without_exceptions(self.notion.as_notion())

    def epsilon(self, delta: float) -> float:
        return float(self.notion.epsilon(delta))


@dataclass(frozen=True)
class Inapplicable:
    """A theorem that does not apply to a run, and the reasons: one fact for each assumption that failed."""

    theorem: Theorem
    reasons: tuple[Fact, ...]
    failed: tuple[Assumption, ...] = ()

    def __repr__(self) -> str:
        return summary(self, repr(self.theorem.name), *self.sentences)

    def __str__(self) -> str:
        return f"{self.theorem.name} does not apply: {self.because}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons in words: all that the run lacks in one sentence, then each of the others."""
        from lastiterate.report.english.refusals import sentences

        return sentences(self.reasons)

    @property
    def because(self) -> str:
        """The reasons as one text, without the last full stop."""
        from lastiterate.report.english.refusals import one_text

        return one_text(self.reasons)


def best_rung(answer: Guarantee | Inapplicable, delta: float) -> int | None:
    """Return the number of the best of the many guarantees that a theorem is made of; none where there is one alone."""
    if not isinstance(answer, Guarantee) or answer.evidence.ladder is None or answer.theorem.rung is None:
        return None
    return answer.evidence.ladder.best_rung(math.log(delta))
