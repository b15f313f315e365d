"""What a budget is: fixed before the first release, and never changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    Interval,
    InvalidInput,
    check_fields,
    checked_choice,
    checked_count,
    must_be,
    shown,
)
from lastiterate.facts import Fact

FORMAT = "lastiterate budget 1"
_BELOW_ONE = Interval(0.0, 1.0, low_included=True)
_LONGEST = 200


@dataclass(frozen=True)
class Terms:
    """`adaptive`: a release may depend on earlier ones; `reserve`: the share of δ for what no Gaussian covers.

    `user_records`: everything is for a whole user, who has up to so many records.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    dataset: str
    adaptive: bool
    reserve: float
    user_records: int = 1

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "epsilon")
        check_fields(self, INSIDE_UNIT, "delta")
        check_fields(self, _BELOW_ONE, "reserve")
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))
        checked_line("dataset", self.dataset)
        checked_count("user_records", self.user_records)
        if not isinstance(self.adaptive, bool):
            raise must_be("adaptive", "True or False", f"{shown(self.adaptive):.60}")

    @property
    def unit(self) -> Fact:
        """The privacy unit of the budget."""
        return self.adjacency.unit(self.user_records)

    @property
    def set_aside(self) -> float:
        """The part of δ for what no Gaussian covers."""
        return self.reserve * self.delta if self.adaptive else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON could hold it."""
        return {"format": FORMAT, **asdict(self), "adjacency": self.adjacency.name.lower()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Terms:
        """Back; whatever is missing or wrong raises."""
        if content["format"] != FORMAT:
            raise InvalidInput("budget_format", format=FORMAT)
        values = {name: content[name] for name in cls.__dataclass_fields__}
        return cls(**{**values, "adjacency": adjacency_named(content["adjacency"])})

    def said(self) -> str:
        """In one line."""
        of = f", data set {self.dataset}" if self.dataset else ""
        return f"epsilon = {self.epsilon:g} at delta = {self.delta:g} ({self.unit}{of})"

    def difference(self, other: Terms) -> dict[str, Any]:
        """The first thing in which another budget differs; empty if there is none."""
        for name in self.__dataclass_fields__:
            if (wanted := getattr(self, name)) != (found := getattr(other, name)):
                return {"term": name, "found": found, "wanted": wanted}
        return {}


def adjacency_named(name: Any) -> Adjacency:
    """By the name that files have for it, or the command line, which has hyphens."""
    named = {one.name.lower(): one for one in Adjacency}
    if str(name).replace("-", "_") not in named:
        raise must_be("adjacency", f"one of {', '.join(named)}", f"{shown(name):.60}")
    return named[str(name).replace("-", "_")]


def checked_line(name: str, value: Any, least: int = 0) -> str:
    """A text of one bearable line."""
    if not isinstance(value, str) or not least <= len(value) <= _LONGEST or not (value.isprintable() or not value):
        raise must_be(name, f"{least} to {_LONGEST} printable characters", f"{shown(value):.60}")
    return value
