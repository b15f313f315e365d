"""What one trial may spend, for trials of any kind: found by trying, and checked for the whole search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.per_trial import largest_mu_per_trial
from lastiterate.curves.trials import Trials
from lastiterate.errors import Unavailable

Made = TypeVar("Made")

_CLOSE = 0.01  # below the target that the whole search may stay: closer takes more calibrations
_MOST = 10  # mostly two or three do; sizes that jump never come close
_SMALLEST = 1e-6  # of an ε that a run is calibrated for


def largest_spending(
    made: Callable[[float], tuple[Made, float]], *, epsilon: float, delta: float, trials: Trials
) -> Made:
    """What `made` makes for the largest ε of one trial, of those tried, with which the whole search meets the target.

    `made(ε of one trial)` is what will be run, and ε of the whole search: that is computed, not assumed. Gaussian trials say
    where to begin.
    """
    mu = largest_mu_per_trial(epsilon=epsilon, delta=delta, trials=trials)
    low, high, found, tried = 0.0, math.inf, None, []
    spent = max(float(GaussianDP(mu).epsilon(delta)), _SMALLEST)
    for _ in range(_MOST):
        what, total = made(spent)
        if total <= epsilon:
            same, low, found = what == found, spent, what
            if same or total >= (1 - _CLOSE) * epsilon:
                break
        else:
            high = spent
        tried.append((spent, total))
        spent = _next(tried[-2:], (1 - _CLOSE / 2) * epsilon, low, high)
        if not (low < spent < high and spent >= _SMALLEST):
            break
    if found is None:
        raise Unavailable("no_trial_meets", field="epsilon", mean=trials.mean, epsilon=epsilon, delta=delta)
    return found


def _next(tried: list[tuple[float, float]], aim: float, low: float, high: float) -> float:
    """By the secant of the last two in logarithms, at first in proportion; between what was enough and what was too much."""
    (spent, total), before = tried[-1], tried[0]
    if not 0 < total < math.inf:
        guess = spent / 10 if total else 2 * spent
    else:
        guess = spent * min(max(aim / total, 1e-3), 2.0) ** (1 / _slope(before, tried[-1]))
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if low > 0 and math.isfinite(high) else guess


def _slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    if one[0] == other[0] or not 0 < one[1] < math.inf:
        return 1.0
    return min(max(math.log(other[1] / one[1]) / math.log(other[0] / one[0]), 0.2), 5.0)
