"""A record takes part in some steps by chance, and in which is hidden: more than the average over the sets of its steps.

P = Σ p_V·P_V and Q = Σ p_V·Q_V are mixtures over the sets V of the steps that use the record; P_V and Q_{V'} are μ(V)-GDP
apart for every V' ⊂ V. A set where the record is easy to see may be compared with its subsets, too. Proof: docs/proofs.md.
"""

from __future__ import annotations

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.present_or_absent import MOST_LEVELS, absent_against_present, present_against_absent, worse_of
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_weighted
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up

_POINTS = 120  # of the profile: chords lie above it, with fewer by more
_FARTHEST = 9.0  # deviations: δ is 1e-18 there, below what is followed in compositions


def hidden_participation(mus: Floats, weights: Floats, lost: float, adjacency: Adjacency = REPLACE_ONE) -> Profile:
    """δ(ε) = Σ p_V·θ_{ε(V)}(μ(V)) for a good choice of ε(V) = f(μ(V)), f not decreasing, with Σ p_V·e^{ε(V)} ≤ e^ε.

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
    """Where nothing takes its place, and the neighbour's law does not depend on V: Σ p_V·N(μ(V), 1) against N(0, 1).

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
