"""A report as a notebook renders it: the claim in full, everything else folded. It says what `print(report)` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastiterate.accounting.page import claim, sections
from lastiterate.display import Html, alerts, bullets, card, folded, headline, lines, table

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report


def report_html(report: Report) -> str:
    first, *others = claim(report)
    parts = (folded(title, _body(entries)) for title, entries in sections(report))
    return card(alerts(report.caveats), headline(first), lines(others), *parts)


def _body(entries: list[str] | list[tuple[str, str]]) -> Html:
    rows = [one for one in entries if isinstance(one, tuple)]
    return table(rows) if rows else bullets(one for one in entries if isinstance(one, str))
