"""A report as a notebook renders it: the claim in full, all else of `report.details()` folded, without alternatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastiterate.display import Html, alerts, bullets, card, folded, headline, lines, table
from lastiterate.report.text import claim, sections

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report


def report_html(report: Report) -> str:
    first, *others = claim(report)
    parts = (folded(title, _body(entries)) for title, entries in sections(report))
    return card(alerts(map(str, report.caveats)), headline(first), lines(others), *parts)


def _body(entries: list[str] | list[tuple[str, str]]) -> Html:
    rows = [one for one in entries if isinstance(one, tuple)]
    return table(rows) if rows else bullets(one for one in entries if isinstance(one, str))
