"""A record takes part in some steps by chance, and in which is hidden: more than the average over the sets of its steps.

P = Σ p_V·P_V and Q = Σ p_V·Q_V are mixtures over the sets V of the steps that use the record; P_V and Q_{V'} are μ(V)-GDP
apart for every V' ⊂ V. A set where the record is easy to see may be compared with its subsets, too. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.errors import NON_NEGATIVE, UNIT, InvalidInput, checked_choice, checked_lists, must_be
from lastiterate.numerics.arrays import ROUNDOFF, Floats, lower_hull
from lastiterate.numerics.levels import few_weighted
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.payment_law import face_costs
from lastiterate.numerics.rounding import up

_POINTS = 120  # of the profile: chords lie above it, with fewer by more
_FARTHEST = 9.0  # deviations: δ is 1e-18 there, below what is followed in compositions


def hidden_participation(mus: Floats, weights: Floats, lost: float, adjacency: Adjacency = REPLACE_ONE) -> Profile:
    """Return δ(ε) = Σ p_V·θ_{ε(V)}(μ(V)) for a good choice of ε(V) = f(μ(V)), f not decreasing, with Σ p_V·e^{ε(V)} ≤ e^ε.

    `mus` increase; `weights` are upper bounds on their probabilities, `lost` on that of more than the largest. The best
    choice is ε(V) = μ(V)·(q − μ(V)/2), as far as that increases: for each q it gives a point of the profile.
    """
    mus, weights = few_weighted(mus, weights, MOST_LEVELS)
    deviations = np.linspace(0.0, 1.0, _POINTS)[:, None] ** 1.5 * (_FARTHEST + float(mus[-1]))
    levels = np.where(mus < deviations, mus * (deviations - mus / 2), np.square(deviations) / 2)
    levels = np.minimum(levels, LARGEST_TABLED)
    with np.errstate(under="ignore"):
        terms = np.where(mus > 0, np.exp(log_gap_above(levels, np.maximum(mus, 1e-300))), 0.0)
        deltas = up(terms @ weights) + lost
        largest = levels.max(axis=1)
        shares = up(np.exp(levels - largest[:, None]) @ weights + lost)
    epsilons = up(np.maximum(largest + np.log(shares), 0.0)) + 1e-12
    return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0), adjacency=adjacency)


def participation_or_nothing(mus: Floats, weights: Floats, lost: float, adjacency: Adjacency = REPLACE_ONE) -> Profile:
    """Return the profile of Σ p_V·N(μ(V), 1) against N(0, 1): nothing takes the record's place, whatever V is.

    In the worse of both orders; `weights` and `lost` as above. What the weights are too large by, the mixture may lack:
    N(0, 1) sticks out of it by at most e^ε times that more.
    """
    mus, weights = few_weighted(mus, weights, MOST_LEVELS)
    excess = max(up(float(weights.sum()), operations=len(weights)) - (1 - lost), 0.0)
    present, (epsilons, deltas) = present_against_absent(mus, weights, lost), absent_against_present(mus, weights)
    with np.errstate(over="ignore"):
        missing = deltas + up(np.exp(epsilons) * excess)
    absent = epsilons, np.minimum(np.minimum.accumulate(missing), 1.0)
    return worse_of(present, absent, adjacency)


# Hidden participation without its law: what it is compared with before anything is computed. Estimates, never reported.
#
# All faces of a convex minorant have the slope of their sum at least in the mean, so that a window of k steps with h
# heads costs about k·ψ(h/k) or more, ψ convex and below the cost of a step on a face of each slope.


_SLOPES = 400  # of faces that ψ is drawn through
_GAPS = 60  # steps before the end at which a last turn is looked at by itself
_HEADS = 200
_NEGLIGIBLE = 1e-16


def _per_step(slopes: Floats, factor: float) -> Floats:
    """Return ψ, the greatest convex function below the cost of a step on faces of these slopes."""
    if factor >= 1:
        return np.square(slopes)
    points = np.linspace(0.0, 1.0, _SLOPES + 1)[1:] ** 3
    costs = face_costs(np.ones_like(points), 1 / points, factor) * points
    return np.asarray(np.interp(slopes, *lower_hull(np.append(0.0, points), np.append(0.0, costs))))


def _rough_law(length: int, rate: float, factor: float) -> tuple[Floats, Floats]:
    """Return costs and their probabilities: of all heads spread evenly, or of the last alone, whichever is more."""
    heads = np.unique(np.linspace(1, length, min(length, _HEADS)).round())
    gaps = np.arange(1.0, min(length, _GAPS) + 1)
    of_heads, of_gaps = length * _per_step(heads / length, factor), face_costs(np.ones_like(gaps), gaps, factor)
    costs = np.unique(np.concatenate([[0.0], of_heads, of_gaps]))
    most = np.concatenate([[0.0], heads])[np.searchsorted(of_heads, costs, side="right")]
    free = len(gaps) - np.searchsorted(of_gaps[::-1], costs, side="right")
    below = (1 - rate) ** free * bdtr(np.minimum(most, length - free), length - free, rate)
    chances = np.diff(np.maximum.accumulate(below), prepend=0.0)
    kept = chances > _NEGLIGIBLE
    return costs[kept], chances[kept]


def rough_window(length: int, rate: float, mu: float, factor: float) -> Profile:
    """Estimate the profile of one window, mostly from below."""
    costs, chances = _rough_law(length, rate, factor)
    return hidden_participation(mu * np.sqrt(costs), chances, 0.0)


# A mechanism that is μ-GDP with a μ that was drawn at random, and not from the data.


_SMALLEST_LOG = -1e300  # stands for −∞, which minus itself would be NaN; below every log δ that is computed


@dataclass(frozen=True, init=False, repr=False)
class AveragedGaussianDP(Notion):
    """δ(ε) = Σ weight·θ_ε(μ): with this probability the mechanism is one that is μ-GDP (joint convexity).

    The last iterate after a random order of the data is an example: a record's μ depends on when it was used.
    """

    mus: tuple[float, ...]
    weights: tuple[float, ...]
    adjacency: Adjacency

    def __init__(self, *, mus: ArrayLike, weights: ArrayLike, adjacency: Adjacency = REPLACE_ONE) -> None:
        adjacency = checked_choice("adjacency", adjacency, Adjacency)
        mu_array, weight_array = checked_lists(("mus", mus, NON_NEGATIVE), ("weights", weights, UNIT))
        if abs(float(weight_array.sum()) - 1) > 1e-9:
            raise must_be("weights", "of sum 1", f"{float(weight_array.sum()):.6g}")
        kept = (weight_array > 0) & (mu_array > 0)
        object.__setattr__(self, "mus", tuple(mu_array[kept].tolist()))
        object.__setattr__(self, "weights", tuple(weight_array[kept].tolist()))
        object.__setattr__(self, "adjacency", adjacency)

    def _said(self) -> str:
        return f"{len(self.mus)} mus up to {max(self.mus, default=0.0):.4g}"

    def log_delta(self, epsilons: Floats) -> Floats:
        if not self.mus:
            return np.full_like(epsilons, -np.inf)
        logs = log_gap_above(epsilons[:, None], np.array(self.mus)) + np.log(self.weights)
        top = np.maximum(logs.max(axis=1), _SMALLEST_LOG)
        with np.errstate(under="ignore"):
            total = np.exp(logs - top[:, None]).sum(axis=1)
        slack = ROUNDOFF * (len(self.mus) + 8 + 2 * np.abs(top))
        return np.minimum(top + np.log(total) + slack, 0.0)

    def _after(self, mu: float) -> AveragedGaussianDP:
        """Compose each μ by itself, as what was drawn does not depend on the data; what cost nothing costs mu."""
        free = max(0.0, 1.0 - math.fsum(self.weights))
        mus = up(np.hypot((*self.mus, 0.0), mu), operations=2)
        return AveragedGaussianDP(mus=mus, weights=(*self.weights, free), adjacency=self.adjacency)

    def _rdp(self, orders: Floats) -> Floats:
        """Return the log of the average of e^{(α−1)αμ²/2}, over α − 1."""
        if not self.mus:
            return np.zeros_like(orders)
        exponents = (orders * (orders - 1))[:, None] * np.square(self.mus) / 2
        rest = max(1.0 - sum(self.weights), 0.0)  # perfect privacy with this probability
        logs = np.concatenate(
            [exponents + np.log(self.weights), np.log(np.full((len(orders), 1), rest + 1e-300))], axis=1
        )
        top = logs.max(axis=1)
        total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        return up(np.maximum(total / (orders - 1), 0.0), operations=500) + 1e-15


# A record is in the data or not, and where it takes part is hidden: Σ w_k·N(μ_k, 1) against N(0, 1), in both orders.
#
# Given k, whatever was drawn, the runs with and without the record are μ_k-GDP apart, and without it nothing depends on
# k. Then this pair dominates in both orders, whatever the order of the μ_k: δ(ε) ≤ Σ w_k·θ_{ε_k}(μ_k) where
# Σ w_k·e^{ε_k} = e^ε, and δ(ε) ≤ Σ u_k·θ_{ε + log(w_k/u_k)}(μ_k) for any probabilities u. Where its likelihood ratio at t
# is e^ε, ε_k is μ_k·(t − μ_k/2); where it is e^{−ε}, u_k is what x = t says of k. Each t gives a point of a profile.
# Proof: docs/proofs.md.


_RATIO_POINTS = 400  # of a profile: chords lie above it, with fewer by more
_FARTHEST_LOSS = 9.0  # deviations: δ is 1e-18 there
MOST_LEVELS = 600  # of μ: each is rounded up to the next, which costs a thousandth of ε on average
_ACCURATE = 1e-9  # part of a probability that it may be off by
Points = tuple[Floats, Floats]  # ε, which increase and may be negative, and upper bounds on δ there


def present_or_absent(
    mus: Floats, weights: Floats, lost: float = 0.0, adjacency: Adjacency = ADD_OR_REMOVE_ONE
) -> Profile:
    """Return the worse of both orders. Weights are probabilities to a part of 1e-9; `lost` bounds that of other k."""
    if adjacency.replaces:
        raise InvalidInput("present_or_absent_adjacency", field="adjacency", adjacency=adjacency)
    mus, weights = few_weighted(mus, weights, MOST_LEVELS)
    return worse_of(present_against_absent(mus, weights, lost), absent_against_present(mus, weights), adjacency)


def worse_of(present: Points, absent: Points, adjacency: Adjacency) -> Profile:
    """Return the worse of both orders at every ε."""
    orders = present, absent
    epsilons = np.unique(np.clip(np.concatenate([order[0] for order in orders]), 0.0, LARGEST_TABLED))
    deltas = np.max([_along(order, epsilons) for order in orders], axis=0)
    return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0), adjacency=adjacency)


def present_against_absent(mus: Floats, weights: Floats, lost: float = 0.0) -> Points:
    """Return how far the mixture sticks out of e^ε·N(0, 1)."""
    levels = mus * (_places(mus) - mus / 2)
    logs = np.logaddexp.reduce(levels + _logs(weights), axis=1)
    return _rounded(logs, up(_gaps(levels, mus) @ weights, by=4 * _ACCURATE) + lost)


def absent_against_present(mus: Floats, weights: Floats) -> Points:
    """Return how far N(0, 1) sticks out of e^ε times the mixture, to which what else it has only adds."""
    places = _places(mus)[::-1]
    parts = mus * (places - mus / 2) + _logs(weights)
    logs = np.logaddexp.reduce(parts, axis=1)
    shares = np.exp(parts - logs[:, None])
    return _rounded(-logs, up((_gaps(mus * (mus / 2 - places), mus) * shares).sum(axis=1), by=4 * _ACCURATE))


def _places(mus: Floats) -> Floats:
    return np.linspace(-_FARTHEST_LOSS, _FARTHEST_LOSS + float(mus.max()), _RATIO_POINTS)[:, None]


def _logs(weights: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _gaps(levels: Floats, mus: Floats) -> Floats:
    """Return θ at levels of either sign, rounded up: θ_{−e} = 1 − e^{−e} + e^{−e}·θ_e."""
    size = np.abs(levels)
    with np.errstate(under="ignore"):
        found = np.where(mus > 0, np.exp(log_gap_above(size, np.maximum(mus, 1e-300))), 0.0)
        return np.where(levels >= 0, found, np.minimum(up(found - np.expm1(-size) * (1 - found)), 1.0))


def _rounded(logs: Floats, deltas: Floats) -> Points:
    epsilons = logs + 4 * _ACCURATE + 1e-12 * np.abs(logs)
    return np.maximum.accumulate(epsilons), np.minimum(deltas, 1.0)


def _along(points: Points, epsilons: Floats) -> Floats:
    """Return δ by chords in e^ε, in which it is convex: 1 before the first point, and no less after the last."""
    known, deltas = points
    kept = known <= LARGEST_TABLED
    inside = up(np.interp(np.exp(epsilons), np.exp(known[kept]), deltas[kept]), operations=50)
    return np.where(epsilons < known[0], 1.0, inside)
