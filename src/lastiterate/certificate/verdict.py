"""What `verify` answers: accepted, with what was proved, or rejected, with the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lastiterate.display import summary
from lastiterate.errors import LastIterateError, worded
from lastiterate.facts import Fact, facts_to_json


@dataclass(frozen=True)
class Rejection:
    """Why a certificate is rejected: a code and its values; `str` is the sentence."""

    code: str
    values: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return worded(self.code, **dict(self.values))


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate proves its claim: ε, δ, the releases and the assumptions; or why it does not.

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
        """Why it is rejected; "" if it is not."""
        return "" if self.rejection is None else str(self.rejection)

    def __repr__(self) -> str:
        return summary(self, str(self))

    def __str__(self) -> str:
        if not self.accepted:
            return f"rejected: {self.reason}"
        return worded("accepted", **self._named("steps", "releases", "released", "grade", "own_theorem"))

    def _named(self, *names: str) -> dict[str, Any]:
        """The claim, and these."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "unit", *names)}

    def to_dict(self) -> dict[str, Any]:
        """As JSON could hold it."""
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
    """For this reason; a fact is one already."""
    return Verdict(False, rejection=code if isinstance(code, Fact) else Rejection(code, tuple(values.items())))


def told_by(error: Exception) -> Rejection | str:
    """What an error says."""
    return Rejection(error.code, tuple(error._given.items())) if isinstance(error, LastIterateError) else str(error)
