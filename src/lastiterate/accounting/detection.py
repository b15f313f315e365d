"""What an attacker can find out at most: how often a record is detected, for each rate of false alarms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from lastiterate.privacy.averaged import AveragedGaussianDP
from lastiterate.privacy.chosen_slack import ChosenSlack
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.hidden_place import HiddenPlaceDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.profile import Profile

HARDLY_ANY_PROTECTION = 0.5  # of those who look are right, at 1% of false alarms

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report


def detection_rates(report: Report, false_positive_rates: ArrayLike) -> Any:
    """At most these: by the best guarantee where that is quick, else by ε at `delta` alone."""
    notion = _quick(report)
    return 1.0 if notion is None else 1 - notion.tradeoff(false_positive_rates)


def _quick(report: Report) -> Notion | None:
    notion = report.best.notion
    if isinstance(notion, GaussianDP | AveragedGaussianDP | HiddenPlaceDP | ChosenSlack):
        return notion
    if not math.isfinite(report.epsilon):
        return None
    return Profile(epsilons=[report.epsilon], deltas=[report.delta], adjacency=notion.adjacency)
