"""Whether the report beside a certificate, as in the JSON of a trained model, agrees with it."""

from __future__ import annotations

import math
from typing import Any

from lastiterate.accounting.difference import differences
from lastiterate.accounting.verdict import Verdict, rejected

_NEAR = 1e-6  # of ε: curves that were drawn for other questions are as sharp as that
_OF_THE_CLAIM = ("delta", "unit", "releases")
_OF_THE_CERTIFICATE = ("theorem", "assumptions", "caveats", "run")


def misreported(report: Any, certificate: dict[str, Any]) -> Verdict | None:
    """Which entries differ; nothing if none does, or if there is no report."""
    if report is None:
        return None
    claim = certificate["claim"]
    if not math.isclose(_finite(report["epsilon"]), _finite(claim["epsilon"]), rel_tol=_NEAR):
        return rejected("report_epsilon_differs", reported=report["epsilon"], certified=claim["epsilon"])
    said = {name: report[name] for name in (*_OF_THE_CLAIM, *_OF_THE_CERTIFICATE)}
    meant = {name: claim[name] for name in _OF_THE_CLAIM} | {name: certificate[name] for name in _OF_THE_CERTIFICATE}
    found = differences(said, meant)
    return rejected("report_differs", differences=found) if found else None


def _finite(epsilon: float | None) -> float:
    """A certificate says null for infinity."""
    return math.inf if epsilon is None else float(epsilon)
