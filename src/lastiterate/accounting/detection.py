"""How often an attacker can detect a changed record at most, for each false-positive rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from lastiterate.algorithms.run import Run
from lastiterate.digits import above
from lastiterate.privacy.averaged import AveragedGaussianDP
from lastiterate.privacy.chosen_slack import ChosenSlack
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.hidden_place import HiddenPlaceDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.profile import Profile

FALSE_POSITIVE_RATE = 0.01  # the 1% of the sentence
HARDLY_ANY_PROTECTION = 0.5  # a higher detection rate at 1% of false positives is called that

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report


def attack_sentence(run: Run, detected: float, who: str = "An attacker") -> str:
    """What a detection rate at 1% of false positives means."""
    changed, count = run.adjacency.changed, run.user_records
    article = "an" if changed[0] in "aeiou" else "a"
    whose = f"{article} {changed} record" if count == 1 else f"the {count} {changed} records of a user"
    return f"{who} with a 1% false-positive rate detects {whose} at most {above(100 * detected, 3)}% of the time."


def detection_rates(report: Report, false_positive_rates: ArrayLike) -> Any:
    """Upper bounds: from the best guarantee where that is quick, else from ε at `delta` alone."""
    notion = _quick(report)
    return 1.0 if notion is None else 1 - notion.tradeoff(false_positive_rates)


def _quick(report: Report) -> Notion | None:
    notion = report.best._proved
    if isinstance(notion, GaussianDP | AveragedGaussianDP | HiddenPlaceDP | ChosenSlack):
        return notion
    if not math.isfinite(report.epsilon):
        return None
    return Profile(epsilons=[report.epsilon], deltas=[report.delta], adjacency=notion.adjacency)
