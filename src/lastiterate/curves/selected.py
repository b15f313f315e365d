"""The best of a random number of trials: its profile, from that of one trial.

A trial is better than z with probability `tail` on one data set, and on the other it is worse with probability u at least
T(tail), T the trade-off function. The best of the trials has density f'(1 − tail)·g relative to that, against f'(u) on the
other data set, g the likelihood ratio of one trial. So δ(ε) is at most E Φ(g), Φ(x) = sup over tails of
(f'(1 − tail)·x − e^ε·f'(T(tail)))₊, a convex function of x: a sum of (x − e^ε·κ)₊ with weights, which makes δ(ε) a sum of
profiles of one trial at shifted ε. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.gaussian_cover import tabled
from lastiterate.curves.minimum import ForEachDepth, Least
from lastiterate.curves.notion import Notion, Wrapped
from lastiterate.curves.profile import Profile
from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.curves.trials import NegativeBinomial, PoissonTrials, Trials
from lastiterate.errors import INSIDE_UNIT, POSITIVE, Unavailable, checked_number, must_be, shown
from lastiterate.numerics.arrays import ROUNDOFF, Floats, lower_hull
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.numerics.rounding import down, up

_POINTS = 1025  # of f', a geometric grid: the error falls with their square


@dataclass(frozen=True, eq=False)
class Selected(Wrapped):
    """The guarantee of the best of a random number of trials, given `inner`, that of one trial, which is quick to ask."""

    trials: Trials

    @cached_property
    def pieces(self) -> tuple[Floats, Floats]:
        """(log κ, weights): δ(ε) ≤ Σ weight·δ_trial(ε + log κ). The weights add up to the mean number of trials."""
        heights, others = self._heights()
        heights, others = lower_hull(np.append(0.0, heights), np.append(0.0, others))
        weights = np.diff(heights)
        slopes = np.minimum.accumulate((np.diff(others) / weights)[::-1])[::-1]
        reached = np.cumsum(weights * slopes)
        slopes = down(slopes * min(1.0, float((others[1:] / reached).min())))
        return np.log(slopes), up(weights)

    def _heights(self) -> tuple[Floats, Floats]:
        """Return f' on one data set, increasing, and a lower bound on f' on the other; between two of them both are chords.

        f' and T are convex, so that f'(T) lies above the continuation of the chord to its left; and it increases.
        """
        falls = np.linspace(float(self.trials.fall(np.ones(1))[0]), 0.0, _POINTS)
        tails = np.clip(self.trials.tail(falls), 0.0, 1.0)
        tails[0], tails[-1] = 1.0, 0.0
        worse = np.asarray(self.inner.tradeoff(tails))
        other = self.trials.mean * np.exp(-self.trials.fall(1 - worse))
        steps = -np.diff(tails)
        continued = other[1:-1] + np.diff(other)[:-1] * steps[1:] / steps[:-1]
        # `worse` is off by a few 1e-16, and so are its differences.
        doubt = 1e-10 + 4 * float(self.trials.fall(np.array([1e-14]))[0])
        lower = np.concatenate([other[:1], other[:1], np.maximum(down(continued, by=doubt), down(other[1:-1]))])
        return self.trials.mean * np.exp(-falls), down(lower, by=1e-12)

    def log_delta(self, epsilons: Floats) -> Floats:
        log_slopes, weights = self.pieces
        levels = epsilons[:, None] + log_slopes
        levels = levels - 8 * ROUNDOFF * (epsilons[:, None] + np.abs(log_slopes))
        logs = np.logaddexp.reduce(log_delta_anywhere(self.inner, levels) + np.log(weights), axis=1)
        return np.minimum(logs + ROUNDOFF * (2 * weights.size + 8 + 2 * np.abs(np.maximum(logs, -1e300))), 0.0)


def log_delta_anywhere(notion: Notion, epsilons: Floats) -> Floats:
    """Return log δ(ε) for ε of either sign; below 0 by the other order of the data sets: δ(−ε) = 1 − e^{−ε}(1 − δ(ε))."""
    logs = notion.log_delta(np.abs(epsilons).ravel()).reshape(epsilons.shape)
    sizes = np.minimum(np.abs(epsilons), 700.0)
    with np.errstate(divide="ignore"):
        mirrored = np.log(up(-np.expm1(-sizes) + np.exp(-sizes + np.minimum(logs, 0.0))))
    return np.where(epsilons >= 0, logs, np.minimum(mirrored, 0.0))


# The best of a random number of trials in Rényi divergences: Papernot and Steinke 2022, Theorems 2 and 6.
#
# At every order α the divergence is at most ρ(α) + c(α) + log(mean)/(α − 1), where c(α) bounds by how much f' can differ
# on the two data sets. Proofs, also for numbers of trials that may be 0 or are less than 1 on average: docs/proofs.md.


def has_divergences(notion: Notion) -> bool:
    """Whether a guarantee knows its Rényi divergences at once."""
    return isinstance(notion, GaussianDP | RenyiDP)


def selected_renyi(trial: Notion, trials: Trials) -> RenyiDP:
    """Return the Rényi curve of the best of a random number of trials, at the orders of one trial."""
    known = np.array(trial.orders) if isinstance(trial, RenyiDP) and trial.rho is None else DEFAULT_ORDERS
    divergences = np.asarray(trial.rdp(known))
    paid = _difference(trial, trials, known, divergences) + math.log(trials.mean) / (known - 1)
    together = divergences + np.maximum(paid, 0.0)
    finite = np.isfinite(together)
    return RenyiDP(orders=known[finite], divergences=up(together[finite]), adjacency=trial.adjacency)


def _difference(trial: Notion, trials: Trials, orders: Floats, divergences: Floats) -> Floats:
    """Return c at these orders: how much f' may differ on the two data sets, ∞ where no bound is known."""
    match trials:
        case NegativeBinomial():
            least = ((1 - 1 / orders) * divergences - math.log(trials.stop) / orders).min()
            return np.full_like(orders, up((1 + trials.shape) * float(least)))
        case PoissonTrials():
            deltas = np.asarray(trial.delta(np.log1p(1 / (orders - 1))))
            # Bretagnolle and Huber: the total variation, from the divergence at the least order.
            variation = math.sqrt(-math.expm1(-float(divergences.min())))
            return up(trials.mean * np.minimum(deltas, variation))
    return np.full_like(orders, math.inf)


# The guarantee of the best of a random number of trials: the better of two bounds.


# A table that is made for a power of ten ends a factor of 100 below it, and of the mean number of trials: what is below
# that hardly counts. A table goes a billion times deeper than it is told.
_ENDS = 1e7
_LARGEST_DELTA = 0.5


def best_of_trials(one: Notion, trials: Trials) -> Notion:
    """Return the guarantee of the best of these trials: from the profile of one, and its Rényi divergences if known.

    Proofs: docs/proofs.md.
    """
    if isinstance(one, GaussianDP) and one.mu == 0:
        return one  # nothing depends on the data
    by_profile = Selected(one, trials) if _is_quick(one) else SelectedByTables(one, trials)
    if not has_divergences(one):
        return by_profile
    return Least((by_profile, selected_renyi(one, trials)), one.adjacency)


def _is_quick(notion: Notion) -> bool:
    """Whether a guarantee answers many questions at once, and has a convex trade-off function."""
    return isinstance(notion, GaussianDP) or (isinstance(notion, Profile) and notion.points is not None)


@dataclass(frozen=True, eq=False)
class SelectedByTables(Wrapped, ForEachDepth):
    """The guarantee of the best of a random number of trials, by tables of `inner`, that of one, as deep as is asked."""

    trials: Trials

    def _make(self, power: int) -> Notion:
        depth = _ENDS * self.exception(power) / max(self.trials.mean, 1.0)
        table = tabled(self.inner, min(depth, _LARGEST_DELTA), raised=0.0)
        epsilons, deltas = ([0.0], [1.0]) if table is None else table
        return Selected(Profile(epsilons=epsilons, deltas=deltas, adjacency=self.adjacency), self.trials)


# What each trial may spend, so that the best of a random number of them meets a target (ε, δ).


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
        return max(float(found.log_delta(np.array([epsilon]))[0]) - log_delta, -1e300)

    mu = mu_at(decreasing_crossing(excess, -_EITHER_WAY, _FARTHEST, 0.3, 0.2, _CLOSENESS)) if alone > 0 else 0.0
    if not (mu > 0 and float(best_of_trials(GaussianDP(mu), trials).epsilon(delta)) <= epsilon):
        raise Unavailable("no_trial_private_enough", field="epsilon", epsilon=epsilon, delta=delta, trials=trials.mean)
    return mu


def checked_trials(trials: Any) -> Trials:
    """Return `trials` if it is a law of the number of trials; raise if not."""
    if not isinstance(trials, Trials):
        raise must_be("trials", "such as li.trials.Geometric(mean=10)", f"{shown(trials):.60}")
    return trials
