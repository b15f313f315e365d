"""Reports in which one theorem stands alone: their certificates are its own, whichever is the best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import lastiterate as li
from lastiterate.accounting.account import account_by
from lastiterate.accounting.ranked import Ranked


def by_theorem(name: str, run: li.Run, delta: float, releases: Iterable[int] = ()) -> li.accounting.Report:
    """Only this theorem is asked."""
    return account_by([next(one for one in li.theorems.ALL if one.name == name)], run, delta, releases)


def alone(report: li.accounting.Report, guarantee: li.theorems.Guarantee) -> li.accounting.Report:
    """Of all that were asked, this one."""
    return replace(report, ranked=(Ranked(guarantee.epsilon(report.delta), guarantee),))
