"""The least μ whose Gaussian lies above a whole guarantee, but for a slack: δ(ε) ≤ θ_ε(μ) + slack at every ε.

What is bounded so composes under any adaptive choice of later guarantees: μ² and slacks add up (docs/budget.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, POISSON, Adjacency, Sampling
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import LARGEST_TABLED, Profile
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
from lastiterate.numerics.arrays import Floats, lower_hull
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.numerics.rounding import down, up

_POINTS = 257  # chords between fewer lie higher, and still hold
_DEPTH, _DEPTHS = 1e-9, 6  # times δ: where a table ends, if the guarantee gets there; so many steps on the way
_CLOSE = 1e-9  # a difference of e^ε that keeps seven digits
AGAIN = 1e-6  # of δ: curves are certified to 1e-8 or so, and machines differ by less


def tabled(notion: Notion, delta: float, raised: float = AGAIN) -> tuple[Floats, Floats] | None:
    """Return ε and upper bounds on δ, from 0 to where δ is far below this `delta`; None where it never falls to it.

    `raised` is the part by which bounds are raised, so that whoever computes them again finds no more.
    """
    points = _given(notion) if isinstance(notion, Profile) and notion.points is not None else _asked(notion, delta)
    if points is None:
        return None
    epsilons, deltas = points
    deltas = np.minimum(np.where(deltas > 0, up(deltas, by=raised), 0.0), 1.0)
    order = np.lexsort((deltas, epsilons))
    return epsilons[order], np.minimum.accumulate(deltas[order])


def _given(profile: Profile) -> tuple[Floats, Floats]:
    """Return ε and δ at the points that the profile was given at: a kink lies on one of them."""
    epsilons = np.unique(np.append(0.0, [] if profile.points is None else profile.points))
    epsilons = epsilons[epsilons <= LARGEST_TABLED]
    return epsilons, np.asarray(profile.delta(epsilons))


def _asked(notion: Notion, delta: float) -> tuple[Floats, Floats] | None:
    """Return δ at many ε, and ε at some δ, where some notions are sharper; none beyond the last ε that is found so."""
    depths = np.append(delta, np.geomspace(max(0.1, delta), _DEPTH * delta, _DEPTHS))
    ends = np.asarray(notion.epsilon(depths))
    within = ends <= LARGEST_TABLED
    if not within[0]:
        return None
    grid = float(ends[within].max()) * np.linspace(0.0, 1.0, _POINTS) ** 1.5
    return np.append(grid, ends[within]), np.append(np.asarray(notion.delta(grid)), depths[within])


def covering_mu(epsilons: Floats, deltas: Floats, slack: float) -> float:
    """Return μ for upper bounds δ at these ε, from 0 on and increasing; ∞ where the last δ is above the slack.

    A profile is convex in y = e^ε, so it lies below the chords, and the chords below lines a − s·y. The Gaussian profile is
    the supremum of the lines Φ(μ + Φ⁻¹(s)) − s·y, so a line is below it plus the slack if a − slack ≤ Φ(μ + Φ⁻¹(s)). Below
    y = 1 a profile is the mirror image of the other order, with a smaller slack; so it also does if the Gaussian has that
    slope below 1, s ≥ Φ(−μ/2), and is above the line at 1: a − s − slack ≤ 2Φ(μ/2) − 1.
    """
    x, y = lower_hull(*apart(np.exp(epsilons), deltas))
    if y[-1] > slack:
        return math.inf
    slopes = np.clip(-np.diff(y) / np.diff(x), 0.0, 1.0)
    # Through the higher of both ends: rounding of a slope must not lower a line.
    heights = up(np.maximum(y[:-1] + slopes * x[:-1], y[1:] + slopes * x[1:])) - slack
    bound = (heights > 0) & ~((slopes == 0) & (y[:-1] <= slack))
    slopes, heights = slopes[bound], heights[bound]
    with np.errstate(invalid="ignore"):
        everywhere = ndtri(np.minimum(heights, 1.0)) - ndtri(slopes)
        at_one = np.maximum(2 * ndtri(np.clip((1 + heights - slopes) / 2, 0.0, 1.0)), -2 * ndtri(slopes))
    needed = np.fmin(everywhere, at_one)
    return up(max(float(np.where(np.isnan(needed), math.inf, needed).max(initial=0.0)), 0.0), by=1e-10)


def apart(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Leave out points too close to see a slope between them; the last may move to the right, where it holds, too."""
    kept = [0]
    for i in range(1, x.size - 1):
        if x[i] > x[kept[-1]] * (1 + _CLOSE):
            kept.append(i)
    last = max(x[-1], x[kept[-1]] * (1 + _CLOSE))
    return np.append(x[kept], last), np.append(y[kept], y[-1])


def gaussian_cover(notion: Notion, delta: float, slack: float) -> float:
    """Return the μ of `covering_mu` for this guarantee; exact, and without slack, for Gaussian differential privacy."""
    if isinstance(notion, GaussianDP):
        return notion.mu
    table = tabled(notion, delta)
    return math.inf if table is None else covering_mu(*table, slack)


# The largest μ, and so the least noise, that meets a target (ε, δ).


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
    """Start where a saddle-point estimate says, and find the noise by certified bounds with the secant method."""

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
