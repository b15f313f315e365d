"""Reports in which one theorem stands alone: their certificates are its own, whichever is the best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import lastiterate as li
from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Ranked


def by_theorem(name: str, run: li.Run, delta: float, releases: Iterable[int] = ()) -> li.results.Report:
    """Only this theorem is asked."""
    return account_by([next(one for one in li.theorems.ALL if one.name == name)], run, delta, releases)


def alone(report: li.results.Report, guarantee: li.theorems.Guarantee) -> li.results.Report:
    """Of all that were asked, this one."""
    return replace(report, ranked=(Ranked(guarantee.epsilon(report.delta), guarantee),))
