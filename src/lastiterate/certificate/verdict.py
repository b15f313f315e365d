"""What `verify` is asked, and what it answers: accepted, with what was proved, or rejected, with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lastiterate.display import summary
from lastiterate.errors import LastIterateError, worded
from lastiterate.facts import Fact, facts_to_json
from lastiterate.runs.run import Run
from lastiterate.theorems.theorem import Theorem


@dataclass(frozen=True)
class Request:
    """Options of a check: what a certificate is held against, beside itself.

    `run`: the run that it must be about, if one is given, which sentences call `called`. `theorems`: those that may prove it
    although they are not part of the library.
    """

    run: Run | None = None
    called: str = "the run"
    theorems: tuple[Theorem, ...] = ()


@dataclass(frozen=True)
class Rejection:
    """The reason of a rejection: a code and its values; `str` is the sentence."""

    code: str
    values: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return worded(self.code, **dict(self.values))


@dataclass(frozen=True)
class Verdict:
    """The answer of `verify`: the claim that a certificate proves, with its assumptions; or why it does not prove it.

    `rejection` says so by a code and its values, `reason` in a sentence.
    """

    accepted: bool
    epsilon: float = math.inf
    delta: float = 1.0
    steps: int = 0
    releases: tuple[int, ...] = ()
    rejection: Rejection | Fact | None = None
    assumptions: tuple[Fact, ...] = ()
    grade: str = ""
    unit: Fact | None = None
    released: str = ""
    own_theorem: str = ""

    @property
    def reason(self) -> str:
        """Sentence on why the certificate is rejected; "" if it is not."""
        return "" if self.rejection is None else str(self.rejection)

    def __repr__(self) -> str:
        return summary(self, str(self))

    def __str__(self) -> str:
        if not self.accepted:
            return f"rejected: {self.reason}"
        return worded("accepted", **self._named("steps", "releases", "released", "grade", "own_theorem"))

    def _named(self, *names: str) -> dict[str, Any]:
        """Return the values of a sentence on the claim: ε, δ, its unit, and these fields."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "unit", *names)}

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values for JSON, but for an infinite ε."""
        names = ("reason" if name == "rejection" else name for name in self.__dataclass_fields__)
        given = {name: getattr(self, name) for name in names}
        lists = {"releases": list(self.releases), "assumptions": facts_to_json(self.assumptions)}
        return {**given, **lists, "unit": None if self.unit is None else self.unit.to_dict()}


@dataclass(frozen=True, repr=False)
class PageVerdict(Verdict):
    """The verdict on a report page, with its owner's statements: its date (`written`), `version` and `digests`.

    `compared`: whether the words of the page were compared with its certificate, as only the version that wrote it can.
    """

    written: str = ""
    version: str = ""
    digests: tuple[tuple[str, str], ...] = ()
    compared: bool = True

    def __str__(self) -> str:
        if not self.accepted:
            return super().__str__()
        return worded("accepted_page", verdict=super().__str__(), version=self.version, compared=self.compared)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "digests": dict(self.digests)}


def rejected(code: str | Fact, **values: Any) -> Verdict:
    """Return the verdict that rejects for this reason: a fact, or a code with its values."""
    return Verdict(False, rejection=code if isinstance(code, Fact) else Rejection(code, tuple(values.items())))


def told_by(error: Exception) -> Rejection | str:
    """Return what an error says, as a code and its values if it is one of the library."""
    return Rejection(error.code, tuple(error._given.items())) if isinstance(error, LastIterateError) else str(error)


# In which entries a certificate differs from what it must be.

_FIRST = 4  # one more than are told

Difference = tuple[str, Any, Any]


class _Absent:
    """Stands where one of them has nothing."""

    def __str__(self) -> str:
        return "not given"


_ABSENT = _Absent()


def differences(one: Any, two: Any, path: str = "") -> tuple[Difference, ...]:
    """Return the first few entries in which two JSON values differ: the dotted name of each, and both values.

    A list is one entry.
    """
    return tuple(islice(_differences(one, two, path), _FIRST))


def _differences(one: Any, two: Any, path: str) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(two, dict):
        for name in dict.fromkeys([*one, *two]):
            inside = f"{path}.{name}" if path else str(name)
            yield from _differences(one.get(name, _ABSENT), two.get(name, _ABSENT), inside)
    elif one != two:
        yield path, one, two
