"""A record is at one of several places by chance, and without it there is one law: less than the average over places.

P = Σ w_k·P_k, and P_k is μ_k-GDP from one Q, in both orders. Then Σ w_k·N(μ_k, 1) against N(0, 1) dominates, in both orders
(docs/proofs.md). Nothing of this holds where a neighbour's record is there as well: then there are several Q_k.
"""

from __future__ import annotations

import numpy as np

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up
from lastiterate.privacy.adjacency import Adjacency
from lastiterate.privacy.profile import LARGEST_TABLED, Profile

_POINTS = 160  # of the profile: chords lie above it, with fewer by more
_FARTHEST = 9.0  # deviations: δ is 1e-18 there, below what is followed in compositions
_MOST_LEVELS = 300  # of μ: each is rounded up to the next
_SMALLEST_LEVEL = 1e-6  # of the largest μ: smaller ones count as that
_HALVINGS = 60
_SLACK = 1e-12  # of a level, against rounding


def hidden_allocation(mus: Floats, weights: Floats, adjacency: Adjacency) -> Profile:
    """The profile of Σ w_k·N(μ_k, 1) against N(0, 1), the larger of both orders, rounded up; weights add up to 1."""
    if adjacency.replaces:
        raise InvalidInput(f"hidden_allocation is about a record that is there or not. Got {adjacency!r}.")
    mus, weights = _few(mus, weights)
    if not float(mus[-1]) > 0:
        return Profile(epsilons=[0.0], deltas=[0.0], adjacency=adjacency)
    thresholds = float(mus[0]) / 2 + np.linspace(0.0, 1.0, _POINTS) ** 1.5 * (_FARTHEST + 1.5 * float(mus[-1]))
    epsilons, present = _with_the_record(mus, weights, thresholds)
    known = (epsilons >= 0) & (epsilons <= LARGEST_TABLED)
    epsilons, present = np.append(0.0, epsilons[known]), np.append(_start(mus, weights), present[known])
    return Profile(
        epsilons=epsilons,
        deltas=np.minimum(np.maximum(present, _without_it(mus, weights, epsilons)), 1.0),
        adjacency=adjacency,
    )


def _few(mus: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Increasing, at most so many; each rounded up to the next."""
    levels, _ = few_levels(up(mus), _MOST_LEVELS, _SMALLEST_LEVEL)
    at = np.searchsorted(levels, mus * (1 - _SLACK))
    return levels, up(np.asarray(np.bincount(np.minimum(at, levels.size - 1), weights, levels.size), float))


def _with_the_record(mus: Floats, weights: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
    """Points of the profile: δ(ε) ≤ Σ w_k·θ(ε_k, μ_k) where Σ w_k·e^{ε_k} ≤ e^ε, with ε_k = μ_k·(q − μ_k/2)."""
    levels = mus * (thresholds[:, None] - mus / 2)
    return _log_mean(levels, weights), _mean_gap(levels, mus, weights)


def _start(mus: Floats, weights: Floats) -> float:
    """δ(0), the distance in total variation: at most that of the worst place, and on average."""
    return float(_mean_gap(np.zeros((1, mus.size)), mus, weights)[0])


def _without_it(mus: Floats, weights: Floats, epsilons: Floats) -> Floats:
    """δ(ε) ≤ Σ u_k·θ(ε + log(w_k/u_k), μ_k) for any probabilities u; the best are w_k·e^{−ε_k}, ε_k = −μ_k·(q − μ_k/2).

    For them log(w_k/u_k) + ε = ε_k if e^{−ε} is the sum: q is sought for that, and a larger sum is a smaller ε.
    """
    low = np.full(epsilons.size, float(mus[0]) / 2 - 40.0 - epsilons / float(mus[-1]) - float(mus[-1]))
    high = np.full(epsilons.size, float(mus[-1]) / 2 + 1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _log_mean(mus * (middle[:, None] - mus / 2), weights) >= -epsilons + _SLACK * (1 + epsilons)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    exponents = mus * (high[:, None] - mus / 2)
    total = _log_mean(exponents, weights)
    shares = up(weights * np.exp(exponents - total[:, None]))
    return np.where(total >= -epsilons, _weighted_gap(-exponents, mus, shares), 1.0)


def _log_mean(levels: Floats, weights: Floats) -> Floats:
    """log Σ w·e^level, rounded up."""
    largest = levels.max(axis=1)
    total = largest + np.log(np.exp(levels - largest[:, None]) @ weights)
    return np.asarray(total + _SLACK * (1 + np.abs(total)))


def _mean_gap(levels: Floats, mus: Floats, weights: Floats) -> Floats:
    return _weighted_gap(levels, mus, np.broadcast_to(weights, levels.shape))


def _weighted_gap(levels: Floats, mus: Floats, shares: Floats) -> Floats:
    """Σ share·θ(level, μ), rounded up, at levels of either sign: θ(−e) = 1 − e^{−e} + e^{−e}·θ(e)."""
    lower = levels - _SLACK * (1 + np.abs(levels))
    sizes = np.abs(lower)
    with np.errstate(under="ignore"):
        above = np.exp(log_gap_above(sizes, np.broadcast_to(np.maximum(mus, 1e-300), sizes.shape)))
        gaps = np.where(lower < 0, -np.expm1(-sizes) + np.exp(-sizes) * above, above)
    return np.asarray(up((shares * gaps).sum(axis=1)))
