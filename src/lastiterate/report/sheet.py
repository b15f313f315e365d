"""All that a report page is made of: the certificate, and beside it what the certificate does not prove."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from lastiterate.accounting.report import detection_rates
from lastiterate.certificate.replay import json_safe
from lastiterate.curves.notion import Notion
from lastiterate.errors import InvalidInput, shown
from lastiterate.report.label import Claimed, label_of
from lastiterate.theorems.catalogue import of_the_library

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report

FORMAT = "lastiterate report 1"
SAME = 1e-6  # of two computations of one number
RATES = (0.0, 0.001, 0.002, 0.005, *(count / 100 for count in range(1, 100)), 1.0)  # of false positives


@dataclass(frozen=True, eq=False)
class ReportSheet:
    """Data of a page: `shown` was computed for it; `stated` and `digests` are the owner's words.

    There is no text but names of theorems, digests, and what is stated: no page can put in words what nothing proves.
    """

    certificate: dict[str, Any]
    version: str
    date: str
    shown: dict[str, Any]
    stated: dict[str, Any]
    digests: dict[str, str]

    @cached_property
    def claimed(self) -> Claimed:
        return Claimed(self.certificate)

    @cached_property
    def label(self) -> dict[str, Any]:
        return label_of(self.claimed, self.version, self.stated)

    @property
    def title(self) -> str:
        """The name of what is released, in its owner's words; empty if none was stated."""
        name = self.stated.get("registry", {}).get("basic", {}).get("name", "")
        return name if isinstance(name, str) else ""

    @property
    def record(self) -> dict[str, Any]:
        """Everything but the certificate, as JSON can hold it."""
        names = ("version", "date", "shown", "stated", "digests")
        return {"format": FORMAT} | {name: getattr(self, name) for name in names}


def sheet_of(report: Report, stated: dict[str, Any], digests: dict[str, str], curves: bool) -> ReportSheet:
    """Return the sheet of a report, dated today."""
    certificate, now = report.certificate, datetime.now(UTC).date().isoformat()
    return ReportSheet(certificate, version("lastiterate"), now, _shown(report, curves), stated, digests)


def _shown(report: Report, curves: bool) -> dict[str, Any]:
    return {
        "lower_bound": report.lower_bound.epsilon,
        "detected": detected(report.best._proved) if math.isfinite(report.epsilon) else [1.0] * len(RATES),
        "composition": json_safe(report.epsilon_all_released),
        "guarantees": [
            [one.theorem.name, json_safe(epsilon)]
            for one, epsilon in zip(report.guarantees, report.epsilons, strict=True)
            if of_the_library(one.theorem)
        ],
        "refusals": [one.theorem.name for one in report.inapplicable if of_the_library(one.theorem)],
        "growth": _growth(report) if curves else None,
    }


def detected(proved: Notion) -> list[float]:
    """Largest rate at which an attacker detects a changed record, at each false-positive rate of `RATES`."""
    return [float(one) for one in detection_rates(proved, np.array(RATES))]


def _growth(report: Report) -> dict[str, Any] | None:
    """Curve of ε for the page; None if the report's theorems are not those of the curve, so that its end differs."""
    from lastiterate.accounting.epsilon_curve import growth

    found = growth(report.run, report.delta, report.releases, group=report.members)
    if not math.isclose(found.hidden[-1], report.epsilon, rel_tol=SAME):
        return None
    along, unit = found.along(report.run.batches.per_epoch)
    return json_safe({"unit": unit, "along": along, "hidden": found.hidden, "released": found.released})


def checked_sheet(sheet: ReportSheet) -> ReportSheet:
    """Return a sheet that was read, or raise an error if one of its entries is malformed."""
    growth = sheet.shown["growth"]
    for name, text, pattern in (
        ("version", sheet.version, r"[\w.+!-]{1,40}"),
        ("date", sheet.date, r"\d{4}-\d\d-\d\d"),
        ("unit", growth["unit"] if growth else "steps", "epochs|steps"),
        *((name, sheet.digests[name], r"(hmac-)?sha256:[0-9a-f]{64}") for name in sheet.digests),
    ):
        if not isinstance(text, str) or not re.fullmatch(pattern, text, re.ASCII):
            raise InvalidInput(f"{name} of the page must match {pattern}. Got {shown(text):.60}.")
    return sheet


# Curves as SVG, without a library or a script, in the colours of the page.


_WIDTH, _HEIGHT = 480, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 46
_TICKS = 5


@dataclass(frozen=True)
class ChartLine:
    """`style` is a class of the page: best, every or guess."""

    name: str
    style: str
    places: tuple[float, ...]
    heights: tuple[float, ...]

    @property
    def drawn(self) -> list[tuple[float, float]]:
        """Finite points of the line."""
        return [pair for pair in zip(self.places, self.heights, strict=True) if all(map(math.isfinite, pair))]


def chart(title: str, across: str, upwards: str, curves: Sequence[ChartLine]) -> list[str]:
    """Return lines of HTML: the picture, and a key to its curves. All values are 0 or more."""
    shown = [one for one in curves if len(one.drawn) > 1]
    widest = max((place for one in shown for place, _ in one.drawn), default=1.0)
    highest = max((height for one in shown for _, height in one.drawn), default=1.0) or 1.0
    axes = _Axes(_ticks(widest), _ticks(highest))
    return [
        "<figure>",
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">',
        *axes.lines(),
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:g}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(14 {(_TOP + _HEIGHT - _BOTTOM) / 2:g}) rotate(-90)" text-anchor="middle">'
        f"{escape(upwards)}</text>",
        *(axes.drawn(one) for one in shown),
        "</svg>",
        f"<figcaption><b>{escape(title)}</b> {_key(shown)}</figcaption>",
        "</figure>",
    ]


def _key(curves: Sequence[ChartLine]) -> str:
    return " ".join(
        f'<span class="key"><svg viewBox="0 0 24 8" aria-hidden="true"><path class="{one.style}" d="M0 4H24"/></svg> '
        f"{escape(one.name)}</span>"
        for one in curves
    )


@dataclass(frozen=True)
class _Axes:
    """Axes of a chart, each from 0 to its last tick."""

    across: tuple[float, ...]
    upwards: tuple[float, ...]

    def place(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / self.across[-1]

    def height(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.upwards[-1]

    def lines(self) -> list[str]:
        found = []
        for tick in self.upwards:
            y = self.height(tick)
            found.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
            found.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in self.across:
            x = self.place(tick)
            found.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
            found.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
        return found

    def drawn(self, curve: ChartLine) -> str:
        points = "L".join(f"{self.place(place):.1f} {self.height(height):.1f}" for place, height in curve.drawn)
        return f'<path class="{curve.style}" d="M{points}"/>'


def _ticks(highest: float) -> tuple[float, ...]:
    """Return round numbers from 0 to the first that is not below `highest`."""
    rough = highest / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return tuple(step * count for count in range(math.ceil(highest / step - 1e-9) + 1))
