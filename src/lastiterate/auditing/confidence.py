"""From counts to what they prove: Clopper and Pearson's intervals, exact for any number of trials."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import betaincinv, ndtri


def rate_above(hits: int, trials: int, doubt: float) -> float:
    """The rate is at least this, but for a probability of `doubt`."""
    return 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, doubt))


def rate_below(hits: int, trials: int, doubt: float) -> float:
    """The rate is at most this, but for a probability of `doubt`."""
    return 1.0 if hits == trials else 1 - rate_above(trials - hits, trials, doubt)


@dataclass(frozen=True)
class Rates:
    """How often a test says “the data” when it was: at least `true_alarms`; when it was not: at most `false_alarms`."""

    true_alarms: float
    false_alarms: float

    def epsilon(self, delta: float) -> float:
        """true ≤ e^ε·false + δ, and the same of the opposite answers, in which both change their roles."""
        forwards = _log_ratio(self.true_alarms - delta, self.false_alarms)
        return max(forwards, _log_ratio(1 - self.false_alarms - delta, 1 - self.true_alarms), 0.0)

    @property
    def mu(self) -> float:
        """No μ-GDP mechanism with a smaller μ has such rates."""
        if not self.true_alarms > 0 or not self.false_alarms < 1:
            return 0.0
        return max(float(ndtri(self.true_alarms) - ndtri(self.false_alarms)), 0.0)


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 and below > 0 else 0.0
