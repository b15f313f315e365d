"""English: one sentence for each kind of fact. A second language would be a second package with the same functions."""

from __future__ import annotations

from typing import Any

from lastiterate.report.english import promises, refusals
from lastiterate.report.english.caveats import warning
from lastiterate.report.english.claims import (
    attack,
    claim,
    definition,
    every_iterate,
    lower_bound,
    nothing_proved,
    released,
    trials,
    unit,
)
from lastiterate.report.english.words import SENTENCES, SHORT, counted

__all__ = [
    "attack",
    "claim",
    "counted",
    "definition",
    "every_iterate",
    "lower_bound",
    "nothing_proved",
    "promises",
    "refusals",
    "released",
    "sentence",
    "short",
    "trials",
    "unit",
    "warning",
]


def sentence(code: str, values: dict[str, Any]) -> str:
    """Return the sentence of a fact."""
    return SENTENCES[code](**values)


def short(code: str, values: dict[str, Any]) -> str:
    """Return a few words for a fact among many, or its sentence if it has none."""
    return SHORT[code](**values) if code in SHORT else sentence(code, values).rstrip(".")
