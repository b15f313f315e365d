"""docs/papers.md says what the verdicts are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lastiterate.reproduction.exhibit import Outcome
from lastiterate.reproduction.reproduce import Shown

DOCUMENT = Path(__file__).parents[2] / "docs" / "papers.md"
TRAINED = {"table-2", "table-5", "table-6"}


def test_the_table_of_verdicts_is_right(shown: Sequence[Shown]) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for one in shown:
        needs_data = one.exhibit.paper == "bok2024" and one.exhibit.name in TRAINED
        outcome = Outcome.REPRODUCED.value + " with MNIST" if needs_data else one.verdict.outcome.value
        assert f"| {one.exhibit.paper} {one.exhibit.name} | {outcome} | {', '.join(one.verdict.errata)} |" in text
    assert text.count("\n| ") == len(shown) + 1
