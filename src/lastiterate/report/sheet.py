"""All that a report page is made of: the certificate, and beside it what the certificate does not prove."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from lastiterate.accounting.detection import detection_rates
from lastiterate.accounting.plain import finite
from lastiterate.curves.notion import Notion
from lastiterate.errors import InvalidInput, shown
from lastiterate.report.claimed import Claimed
from lastiterate.report.label import label_of
from lastiterate.theorems.own import of_the_library

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report

FORMAT = "lastiterate report 1"
SAME = 1e-6  # of two computations of one number
RATES = (0.0, 0.001, 0.002, 0.005, *(count / 100 for count in range(1, 100)), 1.0)  # of false positives


@dataclass(frozen=True, eq=False)
class ReportSheet:
    """`shown` was computed when the report was written; `stated` and `digests` are the owner's words.

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
        """All but the certificate, as JSON could hold it."""
        names = ("version", "date", "shown", "stated", "digests")
        return {"format": FORMAT} | {name: getattr(self, name) for name in names}


def sheet_of(report: Report, stated: dict[str, Any], digests: dict[str, str], curves: bool) -> ReportSheet:
    """What is to be written about a report, today."""
    certificate, now = report.certificate, datetime.now(UTC).date().isoformat()
    return ReportSheet(certificate, version("lastiterate"), now, _shown(report, curves), stated, digests)


def _shown(report: Report, curves: bool) -> dict[str, Any]:
    return {
        "lower_bound": report.lower_bound.epsilon,
        "detected": detected(report.best._proved) if math.isfinite(report.epsilon) else [1.0] * len(RATES),
        "composition": finite(report.epsilon_all_released),
        "guarantees": [
            [one.theorem.name, finite(epsilon)]
            for one, epsilon in zip(report.guarantees, report.epsilons, strict=True)
            if of_the_library(one.theorem)
        ],
        "refusals": [one.theorem.name for one in report.inapplicable if of_the_library(one.theorem)],
        "growth": _growth(report) if curves else None,
    }


def detected(proved: Notion) -> list[float]:
    """How often an attacker detects a changed record at most, at each of `RATES`."""
    return [float(one) for one in detection_rates(proved, np.array(RATES))]


def _growth(report: Report) -> dict[str, Any] | None:
    """Not where the report is by other theorems than those of the curve: of a run that released every iterate, say."""
    from lastiterate.accounting.growth import growth

    found = growth(report.run, report.delta, report.releases, group=report.members)
    if not math.isclose(found.hidden[-1], report.epsilon, rel_tol=SAME):
        return None
    along, unit = found.along(report.run.batches.per_epoch)
    return finite({"unit": unit, "along": along, "hidden": found.hidden, "released": found.released})


def checked_sheet(sheet: ReportSheet) -> ReportSheet:
    """One that was read, if its entries are what they should be."""
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
