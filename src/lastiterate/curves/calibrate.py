"""The largest μ, and so the least noise, that meets a target (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, POISSON, Adjacency, Sampling
from lastiterate.curves.subsampled import SubsampledGaussians, subsampled_gaussian
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    RATE,
    Unavailable,
    checked_choice,
    checked_count,
    checked_number,
)
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.numerics.rounding import down

# Of log noise. At mu = 100, and already above 50, sampling is not credited; mu = e^−40 is far below the 1e-6 that
# smaller ones are raised to.
_LOWEST, _HIGHEST = -4.6, 40.0
_CLOSENESS = 1e-6  # in log δ: the noise is then within 1e-6 or so of the least; closer takes more evaluations
_MOST_SECANTS = 8  # if so few do not do, a bracket is sought, which always ends; more would delay that


def largest_mu(
    *,
    epsilon: float,
    delta: float,
    inclusion: float = 1.0,
    times: int = 1,
    sampling: Sampling = POISSON,
    adjacency: Adjacency = ADD_OR_REMOVE_ONE,
) -> float:
    """The largest sensitivity/noise for which `times` steps are (ε, δ)-private, rounded down: the answer meets the target.

    The noise multiplier of DP-SGD libraries is 1/μ under add-or-remove, 2/μ under replace-one.
    """
    epsilon, delta = checked_number("epsilon", epsilon, NON_NEGATIVE), checked_number("delta", delta, INSIDE_UNIT)
    rate, steps = checked_number("inclusion", inclusion, RATE), checked_count("times", times)
    adjacency = checked_choice("adjacency", adjacency, Adjacency)
    if rate == 1:
        return down(float(shift_below(math.log(delta), epsilon)) / math.sqrt(steps), operations=2)

    def composed(log_noise: float) -> SubsampledGaussians:
        step = subsampled_gaussian(mu=math.exp(-log_noise), inclusion=rate, sampling=sampling, adjacency=adjacency)
        return step.compose(steps)  # type: ignore[return-value]

    log_noise = _least_log_noise(composed, epsilon, math.log(delta))
    return math.exp(-log_noise)


def _least_log_noise(composed: Callable[[float], SubsampledGaussians], epsilon: float, log_delta: float) -> float:
    """Saddle-point estimates say where to start and how steep it is; certified bounds decide, by the secant method."""

    def estimate(log_noise: float) -> float:
        return composed(log_noise).log_delta_estimate(epsilon) - log_delta

    def excess(log_noise: float) -> float:
        return composed(log_noise).log_delta_upper(epsilon) - log_delta

    log_noise = decreasing_crossing(estimate, _LOWEST, _HIGHEST, 0.0, 0.2, 0.1)
    value = excess(log_noise)
    slope = (estimate(log_noise + 0.01) - estimate(log_noise)) / 0.01
    for _ in range(_MOST_SECANTS):
        if -_CLOSENESS <= value <= 0 or not slope < 0:
            break
        step = -(value + _CLOSENESS / 2) / slope
        moved = log_noise + min(max(step, -1.0), 1.0)
        if moved == log_noise or not _LOWEST < moved < _HIGHEST:
            break
        at_moved = excess(moved)
        slope = (at_moved - value) / (moved - log_noise)
        log_noise, value = moved, at_moved
    if -_CLOSENESS <= value <= 0:
        return log_noise
    found = decreasing_crossing(excess, _LOWEST, _HIGHEST, log_noise, 0.01, _CLOSENESS)
    if not excess(found) <= 0:
        raise Unavailable("no_noise_known", epsilon=epsilon, delta=math.exp(log_delta))
    return found
