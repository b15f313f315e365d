"""What each trial may spend, so that the best of a random number of them meets a target (ε, δ)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.select import best_of_trials
from lastiterate.curves.trials import Trials
from lastiterate.errors import INSIDE_UNIT, POSITIVE, Unavailable, checked_number, must_be, shown
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.roots import decreasing_crossing

# Of log mu, below that of one trial: mu = e^−20 times that is no guarantee anybody can use.
_FARTHEST = 20.0
_CLOSENESS = 1e-7  # in log δ: mu is then within 1e-7 or so of the largest
_EITHER_WAY = 2.0  # in log mu: fewer trials than one on average may each spend more than all of them


def largest_mu_per_trial(*, epsilon: float, delta: float, trials: Trials) -> float:
    """The largest μ, rounded down, for which a search whose trials are μ-GDP is (ε, δ)-private.

    Only the best trial is released, and `trials` is the distribution of their number. One trial has
    ε = `li.notions.GaussianDP(mu).epsilon(delta)`. For trials that are not Gaussian DP, such as most training runs, use
    `li.calibrate(run, epsilon=, delta=, trials=)`.
    """
    epsilon, delta = checked_number("epsilon", epsilon, POSITIVE), checked_number("delta", delta, INSIDE_UNIT)
    trials = checked_trials(trials)
    alone, log_delta = float(shift_below(math.log(delta), epsilon)), math.log(delta)

    def mu_at(fall: float) -> float:
        return alone * math.exp(-fall)

    def excess(fall: float) -> float:
        found = best_of_trials(GaussianDP(mu_at(fall)), trials)
        return max(float(found._log_delta(np.array([epsilon]))[0]) - log_delta, -1e300)

    mu = mu_at(decreasing_crossing(excess, -_EITHER_WAY, _FARTHEST, 0.3, 0.2, _CLOSENESS)) if alone > 0 else 0.0
    if not (mu > 0 and float(best_of_trials(GaussianDP(mu), trials).epsilon(delta)) <= epsilon):
        raise Unavailable("no_trial_private_enough", field="epsilon", epsilon=epsilon, delta=delta, trials=trials.mean)
    return mu


def checked_trials(trials: Any) -> Trials:
    if not isinstance(trials, Trials):
        raise must_be("trials", "such as li.trials.Geometric(mean=10)", f"{shown(trials):.60}")
    return trials
