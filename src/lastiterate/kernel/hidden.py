"""δ(ε) where the place of a record is hidden: a place where it is easy to see is compared with other places, too.

P = Σ w_k·P_k, Q = Σ w_k·Q_k over the places k. If Σ_k w_k·W_kj ≤ e^ε·w_j, W ≥ 0, and y_k = Σ_j W_kj, then P − e^ε·Q is at
most Σ_k w_k·Σ_j (W_kj/y_k)·(P_k − y_k·Q_j), and θ_{log y_k}(μ_kj) bounds what is in the last brackets on any event. Here
y_k = share_k·e^ε. A place with a share above 1 keeps its own Q_k whole and takes the rest from those with less, from each in
proportion to what it does not use itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .gaussian import log_delta
from .places import Places
from .steps import Counts, Floats

_ULP = 2.0**-52
_LEFT = 1 - 5e-13  # of what is given away, may be taken: sums and weights are off by less, for a thousand places


@dataclass(frozen=True, eq=False)
class HiddenPlaces:
    """For each place its share; for two places the μ of a record at one of them against its neighbour at the other."""

    shares: Floats
    pair_mus: Floats

    def log_delta(self, epsilon: float, mus: Floats, weights: Floats) -> float:
        """log δ at this ε, rounded up; δ = 1 where more is taken than given."""
        hard = self.shares > 1
        given, taken = weights * np.maximum(1 - self.shares, 0.0), weights * np.maximum(self.shares - 1, 0.0)
        if not given.sum() * _LEFT >= taken.sum():
            return 0.0
        levels = _levels(epsilon, self.shares)
        with np.errstate(divide="ignore"):
            logs = [_log_gap(levels, mus) + np.log(weights / np.maximum(self.shares, 1.0))]
            if hard.any():
                easy = given > 0
                parts = np.log(taken[hard] / self.shares[hard])[:, None] + np.log(given[easy] / given.sum())
                logs.append((_log_gap(levels[hard, None], self.pair_mus[np.ix_(hard, easy)]) + parts).ravel())
        terms = np.concatenate(logs)
        top = float(terms.max())
        if top == -math.inf:
            return top
        total = float(np.exp(terms - top).sum())
        return min(top + math.log(total) + _ULP * (len(terms) + 4 * len(mus) + 40 + 8 * abs(top)), 0.0)


def _levels(epsilon: float, shares: Floats) -> Floats:
    """log y, rounded down."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    return np.where(shares > 0, epsilon + logs - 4 * _ULP * (epsilon + np.abs(logs)), -math.inf)


def _log_gap(levels: Floats, mus: Floats) -> Floats:
    """log θ, rounded up, at a level of any sign: θ_{−e}(μ) = 1 − e^{−e} + e^{−e}·θ_e(μ). Without a shift, θ_e is 0."""
    levels, mus = np.broadcast_arrays(levels, mus)
    sizes = np.abs(levels)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(mus > 0, log_delta(sizes, mus), -math.inf)
        logs = np.logaddexp(np.log(-np.expm1(-sizes)), above - sizes)
        below = np.minimum(logs + 8 * _ULP * (1 + np.abs(logs)), 0.0)
    return np.where(levels >= 0, above, np.where(sizes < math.inf, np.where(logs > -math.inf, below, logs), 0.0))


def pair_mus(places: Places, own: dict[int, float], proved: dict[tuple[int, int], float]) -> Floats:
    """μ for each two of the places, from pairs that are no better; infinite where there is none.

    Where a later turn is no better, both places may be moved later, each to one with as many turns. Against a place without
    a turn in the last piece, the record's other place is all there is: an earlier piece has its worst turn anyhow. Where a
    record pushes farther beside others than beside its neighbour, both orders of two places have to be proved, and the
    worse counts; a place without a turn is then not compared with.
    """
    at = np.array(list(own), np.intp)
    found = np.full((len(at), len(at)), math.inf)
    for (first, second), mu in proved.items():
        rows, columns = _no_worse(places, at, first), _no_worse(places, at, second)
        ordered = at[:, None] <= at if first < second else at[:, None] >= at
        in_order = rows[:, None] & columns & ordered  # a place beside itself is never asked for
        found[in_order] = np.minimum(found[in_order], mu)
    if places.exchange != 1:
        return np.maximum(found, found.T)
    found = np.minimum(found, found.T)
    for index in np.flatnonzero(at < 0):
        found[index] = found[:, index] = np.array(list(own.values()))
    return found


def _no_worse(places: Places, at: Counts, place: int) -> NDArray[np.bool_]:
    """Which places may be counted as this one."""
    if not places.later_is_no_better:
        return np.asarray(at == place)
    return np.asarray((at >= 0) & (at <= place) & ((at < places.more_turns) == (place < places.more_turns)))
