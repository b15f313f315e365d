"""A record is in the data or not, and where it takes part is hidden: Σ w_k·N(μ_k, 1) against N(0, 1), in both orders.

Given k, whatever was drawn, the runs with and without the record are μ_k-GDP apart, and without it nothing depends on k.
Then this pair dominates in both orders, whatever the order of the μ_k: δ(ε) ≤ Σ w_k·θ_{ε_k}(μ_k) where Σ w_k·e^{ε_k} = e^ε,
and δ(ε) ≤ Σ u_k·θ_{ε + log(w_k/u_k)}(μ_k) for any probabilities u. Where its likelihood ratio at t is e^ε, ε_k is
μ_k·(t − μ_k/2); where it is e^{−ε}, u_k is what x = t says of k. Each t gives a point of a profile. Proof: docs/proofs.md.
"""

from __future__ import annotations

import numpy as np

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, Adjacency
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_weighted
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up

_POINTS = 400  # of a profile: chords lie above it, with fewer by more
_FARTHEST = 9.0  # deviations: δ is 1e-18 there
MOST_LEVELS = 600  # of μ: each is rounded up to the next, which costs a thousandth of ε on average
_ACCURATE = 1e-9  # part of a probability that it may be off by
Points = tuple[Floats, Floats]  # ε, which increase and may be negative, and upper bounds on δ there


def present_or_absent(
    mus: Floats, weights: Floats, lost: float = 0.0, adjacency: Adjacency = ADD_OR_REMOVE_ONE
) -> Profile:
    """The worse of both orders. Weights are probabilities to a part of 1e-9, and `lost` bounds that of all other k."""
    if adjacency.replaces:
        raise InvalidInput("present_or_absent_adjacency", field="adjacency", adjacency=adjacency)
    mus, weights = few_weighted(mus, weights, MOST_LEVELS)
    return worse_of(present_against_absent(mus, weights, lost), absent_against_present(mus, weights), adjacency)


def worse_of(present: Points, absent: Points, adjacency: Adjacency) -> Profile:
    """Of both orders, at every ε."""
    orders = present, absent
    epsilons = np.unique(np.clip(np.concatenate([order[0] for order in orders]), 0.0, LARGEST_TABLED))
    deltas = np.max([_along(order, epsilons) for order in orders], axis=0)
    return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0), adjacency=adjacency)


def present_against_absent(mus: Floats, weights: Floats, lost: float = 0.0) -> Points:
    """The mixture sticks out of e^ε·N(0, 1)."""
    levels = mus * (_places(mus) - mus / 2)
    logs = np.logaddexp.reduce(levels + _logs(weights), axis=1)
    return _rounded(logs, up(_gaps(levels, mus) @ weights, by=4 * _ACCURATE) + lost)


def absent_against_present(mus: Floats, weights: Floats) -> Points:
    """N(0, 1) sticks out of e^ε times the mixture; what else the mixture has only adds to it."""
    places = _places(mus)[::-1]
    parts = mus * (places - mus / 2) + _logs(weights)
    logs = np.logaddexp.reduce(parts, axis=1)
    shares = np.exp(parts - logs[:, None])
    return _rounded(-logs, up((_gaps(mus * (mus / 2 - places), mus) * shares).sum(axis=1), by=4 * _ACCURATE))


def _places(mus: Floats) -> Floats:
    return np.linspace(-_FARTHEST, _FARTHEST + float(mus.max()), _POINTS)[:, None]


def _logs(weights: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _gaps(levels: Floats, mus: Floats) -> Floats:
    """θ at levels of either sign, rounded up: θ_{−e} = 1 − e^{−e} + e^{−e}·θ_e."""
    size = np.abs(levels)
    with np.errstate(under="ignore"):
        found = np.where(mus > 0, np.exp(log_gap_above(size, np.maximum(mus, 1e-300))), 0.0)
        return np.where(levels >= 0, found, np.minimum(up(found - np.expm1(-size) * (1 - found)), 1.0))


def _rounded(logs: Floats, deltas: Floats) -> Points:
    epsilons = logs + 4 * _ACCURATE + 1e-12 * np.abs(logs)
    return np.maximum.accumulate(epsilons), np.minimum(deltas, 1.0)


def _along(points: Points, epsilons: Floats) -> Floats:
    """Chords in e^ε, in which a profile is convex; before the first point nothing is known, after the last no more."""
    known, deltas = points
    kept = known <= LARGEST_TABLED
    inside = up(np.interp(np.exp(epsilons), np.exp(known[kept]), deltas[kept]), operations=50)
    return np.where(epsilons < known[0], 1.0, inside)
