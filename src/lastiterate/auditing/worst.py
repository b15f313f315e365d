"""A worst case as data: a code and its values, as JSON holds them; `report/messages` has its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lastiterate.errors import worded


@dataclass(frozen=True)
class WorstCase:
    """A loss and data that a run allows, by a code and its values; `str` describes it in English."""

    code: str
    values: Mapping[str, float | str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return worded(self.code, **self.values)

    def to_dict(self) -> dict[str, Any]:
        """The code with its values, for JSON."""
        return {"code": self.code, **self.values}
