"""Theorems that somebody brings along, beside those of the library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.facts import Fact, fact
from lastiterate.theorems.catalogue import ALL, CATALOGUE
from lastiterate.theorems.theorem import Theorem

_LONGEST = 100  # characters of a name


def of_the_library(theorem: Theorem) -> bool:
    """Whether it is one of the catalogue, and not only called like one."""
    return theorem in ALL


def checked_theorems(theorems: Any) -> tuple[Theorem, ...]:
    """Those that are to be tried, each by a name of its own; the catalogue if none are given."""
    if theorems is None:
        return CATALOGUE
    found = tuple(theorems) if isinstance(theorems, Iterable) and not isinstance(theorems, str) else ()
    wrong = next((one for one in found if not isinstance(one, Theorem)), None if found else theorems)
    if wrong is not None:
        raise must_be("theorems", "such as [*li.theorems.CATALOGUE, MINE]", f"{shown(wrong):.60}")
    for one in found:
        _check_name(one)
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise must_be("theorems", "of different names", f"{twice!r} twice")
    return found


def _check_name(theorem: Theorem) -> None:
    name: Any = theorem.name
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or not name.isprintable():
        raise must_be(
            "theorems", f"one line of 1 to {_LONGEST} characters", f"{shown(name):.60}", called="the name of a theorem"
        )
    if not of_the_library(theorem) and any(name == one.name for one in ALL):
        raise InvalidInput("name_of_another_theorem", field="theorems", name=name)


def own_assumption(theorem: Theorem) -> Fact:
    """What has to be guaranteed of a theorem that nobody here has looked at."""
    cited = isinstance(theorem.citation, str) and theorem.citation.isprintable()
    return fact("theorem_true", theorem=theorem.name, citation=theorem.citation[:400] if cited else "no citation")
