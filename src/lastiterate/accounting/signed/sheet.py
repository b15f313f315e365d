"""All that a report page is made of: the certificate, and beside it what the certificate does not prove."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from lastiterate.accounting.page import refusals
from lastiterate.accounting.plain import finite
from lastiterate.accounting.signed.claimed import Claimed
from lastiterate.accounting.signed.label import label_of

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report

FORMAT = "lastiterate report 1"


@dataclass(frozen=True, eq=False)
class Sheet:
    """`shown` was computed when the report was written; `stated` and `digests` are the owner's words."""

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
    def record(self) -> dict[str, Any]:
        """All but the certificate, as JSON could hold it."""
        names = ("version", "date", "shown", "stated", "digests")
        return {"format": FORMAT} | {name: getattr(self, name) for name in names}


def sheet_of(report: Report, stated: dict[str, Any], digests: dict[str, str], curves: bool) -> Sheet:
    """What is to be written about a report, today."""
    certificate, now = report.certificate, datetime.now(UTC).date().isoformat()
    return Sheet(certificate, version("lastiterate"), now, _shown(report, curves), stated, digests)


def _shown(report: Report, curves: bool) -> dict[str, Any]:
    lower = report.sandwich.lower
    return {
        "lower_bound": {"epsilon": lower.epsilon, "instance": lower.instance},
        "composition": finite(report.composition),
        "guarantees": [
            [one.theorem.name, one.theorem.citation, finite(epsilon)]
            for one, epsilon in zip(report.guarantees, report.epsilons, strict=True)
        ],
        "refusals": list(refusals(report)),
        "growth": _growth(report) if curves else None,
    }


def _growth(report: Report) -> dict[str, Any]:
    from lastiterate.accounting.growth import growth

    found = growth(report.run, report.delta, report.releases)
    along, unit = found.along(report.run.batches.per_epoch)
    return finite({"unit": unit, "along": along, "hidden": found.hidden, "released": found.released})
