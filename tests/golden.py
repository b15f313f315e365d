"""Every page of `report` as its readers see it, kept in `tests/golden`; `make golden` writes them when words change."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import lastiterate as li
from signed.reports import REPORTS, page_of

FOLDER = Path(__file__).parent / "golden"
_PLANNED, _EXECUTED = "average", "trained"


def seen(page: str) -> str:
    """The text of an HTML page, one element in a line; what differs from day to day or by version has a name instead."""
    body = re.sub(r"<(script|style|svg|title)\b.*?</\1>", "", page, flags=re.DOTALL)
    lines = (html.unescape(one).rstrip() for one in re.sub(r"<[^>]*>", "\n", body).splitlines())
    text = "\n".join(one for one in lines if one)
    text = re.sub(r"\b[0-9a-f]{16}([0-9a-f]{48})?\b", "DIGEST", text)
    text = re.sub(r"\d{4}-\d\d-\d\d(T[\d:]+)?", "DATE", text)
    text = re.sub(
        r"\d+\.\d{7,}", lambda found: f"{float(found[0]):.6g}", text
    )  # the last digits are those of a machine
    return text.replace(version("lastiterate"), "VERSION")


def _budget() -> str:
    budget = li.Budget(epsilon=30.0, delta=1e-5)
    budget.spend(REPORTS["replayed"], what="first model")
    return seen(str(budget))


def _selection() -> str:
    return str(li.select(REPORTS["replayed"], trials=li.trials.Geometric(mean=10)))


PAGES: dict[str, Callable[[], str]] = {
    "report.txt": lambda: str(REPORTS["replayed"]),
    "report-every-iterate.txt": lambda: str(REPORTS["every iterate"]),
    "report-seeded.txt": lambda: str(REPORTS["seeded"]),
    "details.txt": lambda: REPORTS["random"].details(),
    "card.txt": lambda: seen(REPORTS["poisson"]._repr_html_()),
    "page-planned.txt": lambda: seen(page_of(_PLANNED)),
    "page-executed.txt": lambda: seen(page_of(_EXECUTED)),
    "verdict.txt": lambda: str(li.verify(REPORTS["replayed"].certificate)),
    "verdict-of-a-page.txt": lambda: seen(str(li.verify(page_of("checkpoints")))),
    "budget.txt": _budget,
    "selection.txt": _selection,
}


def text_of(name: str) -> str:
    """A page, as its file holds it."""
    return PAGES[name]().rstrip() + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name in PAGES:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")
