"""A theorem as a value: what it says, of what, under which assumptions, and its bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lastiterate.algorithms.process import Process
from lastiterate.errors import Unavailable
from lastiterate.privacy.displaced import Displaced, as_computed
from lastiterate.privacy.ladder import Ladder
from lastiterate.privacy.notion import Notion
from lastiterate.theorems.proof import Proof


@dataclass(frozen=True)
class Assumption:
    """What a theorem needs. `failure` looks at a process and says what is wrong, with the number, or None."""

    statement: str
    failure: Callable[[Process], str | None]


@dataclass(frozen=True)
class Theorem:
    """`bound` is only ever called where every assumption holds.

    Some bounds are the best of many, found by a search: then `rung` rebuilds one of them from its number, which is all that
    a certificate has to hold.
    """

    name: str
    citation: str
    covers: str
    assumptions: tuple[Assumption, ...]
    bound: Callable[[Process], Notion | Proof]
    erratum: str | None = None
    rung: Callable[[Process, int], Notion] | None = None

    def failures(self, process: Process) -> list[tuple[Assumption, str]]:
        """The assumptions that do not hold, each with what is wrong."""
        return [(one, reason) for one in self.assumptions if (reason := one.failure(process)) is not None]

    def apply(self, process: Process) -> Guarantee | Inapplicable:
        """What the theorem says of this process, or why it says nothing."""
        if failed := self.failures(process):
            return Inapplicable(self, tuple(reason for _, reason in failed), tuple(one for one, _ in failed))
        bound = self.bound(process)
        if not isinstance(bound, Proof):
            return Guarantee(self, as_computed(bound, process.displacement))
        if not bound.finite:
            return Inapplicable(self, (f"it finds no finite bound, because {process.reason}",))
        return Guarantee(self, as_computed(bound.notion, process.displacement), bound)

    def notion(self, process: Process) -> Notion:
        """What the theorem proves of this process; an error if it says nothing."""
        answer = self.apply(process)
        if isinstance(answer, Guarantee):
            return answer.notion
        raise Unavailable(str(answer))


@dataclass(frozen=True)
class Guarantee:
    """What a theorem proves of a run; with a `proof` that can be replayed, where there is one."""

    theorem: Theorem
    notion: Notion
    proof: Proof | None = None

    @property
    def ladder(self) -> Ladder | None:
        """The guarantees of which this is the best, if they can be rebuilt one by one."""
        found = self.notion.inner if isinstance(self.notion, Displaced) else self.notion
        return found if self.theorem.rung is not None and isinstance(found, Ladder) else None

    def epsilon(self, delta: float) -> float:
        return float(self.notion.epsilon(delta))


@dataclass(frozen=True)
class Inapplicable:
    """A theorem that says nothing of a run, and why: what it needs, what there is."""

    theorem: Theorem
    reasons: tuple[str, ...]
    failed: tuple[Assumption, ...] = ()

    def __str__(self) -> str:
        return f"{self.theorem.name} does not apply: {'; '.join(self.reasons)}."
