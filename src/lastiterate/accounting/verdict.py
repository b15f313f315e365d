"""What `verify` answers: accepted, with what was proved, or rejected, with the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lastiterate.digits import above
from lastiterate.display import summary
from lastiterate.facts import Fact, facts_to_json
from lastiterate.theorems.own import NOT_PART

HOW = {"replayed": "proof replayed step by step", "recomputed": "recomputed from the run"}


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate proves its claim: ε, δ, the releases and the assumptions; or the reason why it does not."""

    accepted: bool
    epsilon: float = math.inf
    delta: float = 1.0
    steps: int = 0
    releases: tuple[int, ...] = ()
    reason: str = ""
    assumptions: tuple[Fact, ...] = ()
    grade: str = ""
    unit: Fact | None = None
    released: str = ""
    own_theorem: str = ""

    def __repr__(self) -> str:
        return summary(self, str(self))

    def __str__(self) -> str:
        if not self.accepted:
            return f"rejected: {self.reason}"
        others = f" and those after {', '.join(map(str, self.releases))} steps" if self.releases else " alone"
        return (
            f"accepted: epsilon = {above(self.epsilon, 9)} at delta = {self.delta:g}, {self.unit}, "
            f"{self._what}{others} released; {HOW[self.grade]}"
            + (f", assuming the theorem {self.own_theorem}, {NOT_PART}" if self.own_theorem else "")
        )

    @property
    def _what(self) -> str:
        return f"{self.released}, of {self.steps}," if self.released else f"the last of {self.steps} iterates"

    def to_dict(self) -> dict[str, Any]:
        """As JSON could hold it."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
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
        if self.compared:
            return f"{super().__str__()}; the page says the same"
        return (
            f"{super().__str__()}; the page was written by lastiterate {self.version}: its numbers agree, its words were "
            "not compared, so rely on this line"
        )

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "digests": dict(self.digests)}


def rejected(reason: str) -> Verdict:
    return Verdict(False, reason=reason)
