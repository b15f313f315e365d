"""A theorem of one's own, put under every law of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lastiterate.display import summary
from lastiterate.errors import UNIT, LastIterateError, checked_number, must_be, shown
from lastiterate.progress import tracked
from lastiterate.runs.run import Run, checked_run
from lastiterate.testing.examples import NothingToTry, Subject
from lastiterate.testing.laws import LAWS, TheoremLaw
from lastiterate.theorems.theorem import Theorem

_EXAMPLES, _INSTANCES, _SECONDS = 8, 60, 8.0


class LawBroken(LastIterateError, AssertionError):
    """A theorem breaks a law: it is false, or an assumption of it is missing."""


@dataclass(frozen=True)
class CheckedTheorem:
    """What was found out: `laws` that hold wherever they were tried, `untried` ones for which no run was found."""

    theorem: Theorem
    laws: tuple[str, ...]
    untried: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return summary(self, repr(self.theorem.name), f"{len(self.laws)} laws hold", f"{len(self.untried)} untried")

    def __str__(self) -> str:
        lines = [f"{self.theorem.name}: {len(self.laws)} laws hold wherever they were tried. This is no proof."]
        return "\n".join([*lines, *(f"  {one}" for one in self.laws), *(f"  not tried: {one}" for one in self.untried)])


def check_theorem(theorem: Theorem, *, runs: Iterable[Run] = (), tolerance: float = 1e-9) -> CheckedTheorem:
    """Put a theorem of yours under the laws that every theorem of the library obeys; `LawBroken` if it breaks one.

    It is tried on random runs and on runs whose privacy loss is known exactly, in less than a minute. To pass is no proof,
    but most mistakes do not pass: a factor, a forgotten assumption, a unit. `runs`: some of your own to try it on as well,
    where its assumptions are narrow. `tolerance`: by what part its numbers may move where they should not, 0.01 for a bound
    that is searched on a grid.
    """
    if not isinstance(theorem, Theorem):
        raise must_be("theorem", "a li.theorems.Theorem", f"{shown(theorem):.60}")
    allowed = checked_number("tolerance", tolerance, UNIT)
    processes = tuple(checked_run(run).process for run in runs)
    subject = Subject(theorem, allowed, _EXAMPLES, _INSTANCES, processes, fewer=True, seconds=_SECONDS)
    held: list[str] = []
    untried: list[str] = []
    for law in tracked(LAWS, "laws"):
        (held if _obeyed(law, subject) else untried).append(law.name)
    if not any(law.of_runs and law.name in held for law in LAWS):
        raise LawBroken(f"{theorem.name} applies to none of the runs that it was tried on. Give some runs=[...].")
    return CheckedTheorem(theorem, tuple(held), tuple(untried))


def _obeyed(law: TheoremLaw, subject: Subject) -> bool:
    """Whether it was tried; an error where it is broken."""
    name: Any = subject.theorem.name
    try:
        told = law.broken(subject)
    except NothingToTry:
        return False
    except Exception as error:
        raise LawBroken(f"{name} raised {type(error).__name__} under the law “{law.name}”: {error}") from error
    if told:
        raise LawBroken(f"{name} breaks the law “{law.name}”: {told}.")
    return True
