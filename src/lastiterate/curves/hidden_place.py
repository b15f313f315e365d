"""A record takes its turn at a place that was drawn at random, and the place is hidden: more than the average over places.

P = Σ w_k·P_k and Q = Σ w_k·Q_k are mixtures over the places k, P_k and Q_j are μ_kj-GDP apart. A place where the record is
easy to see may be compared with other places of the neighbour, whose law it then takes a part of. Proof: docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.errors import NON_NEGATIVE, UNIT, checked_array, checked_choice, checked_lists, must_be
from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.roots import decreasing_root
from lastiterate.numerics.rounding import up

Counts = NDArray[np.intp]
Chosen = NDArray[np.bool_]

_MOST_NUMBERS = 12  # of hard places that are tried: more find little, and each takes its time
_MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)  # where between its own μ and those of its pairs a hard place is taken to be
_FEW_MIXES = (0.25, 0.75)  # where there are many places
_MOST_COLUMNS = 48  # other places, or groups of them, that a place is compared with
_STEPS = 6  # of Newton's method, for a root that only has to be near: what is found is made valid afterwards
_HARDEST = 30.0  # of log y_k − ε: far beyond what others have to give
_KEPT = 1 - 1e-12  # of what is given away, so that no rounding takes more than there is
_TABLED = 65  # points of a table for trade-offs
_NEAR = 1e-12  # of ε: closer, the choice itself would have to be known better


@dataclass(frozen=True, init=False, eq=False, repr=False)
class HiddenPlaceDP(Notion):
    """δ(ε) ≤ Σ_k w_k·Σ_j (W_kj/y_k)·θ_{log y_k}(μ_kj), for W ≥ 0 with Σ_k w_k·W_kj ≤ e^ε·w_j, and y_k = Σ_j W_kj.

    `mus`: of a place with itself. `pair_mus[k][j]`: of place k with another, j, in both orders; its diagonal is not used.
    """

    mus: Floats
    pair_mus: Floats = field(repr=False)
    weights: Floats
    adjacency: Adjacency

    def __init__(
        self, *, mus: ArrayLike, pair_mus: ArrayLike, weights: ArrayLike, adjacency: Adjacency = REPLACE_ONE
    ) -> None:
        adjacency = checked_choice("adjacency", adjacency, Adjacency)
        own, chances = checked_lists(("mus", mus, NON_NEGATIVE), ("weights", weights, UNIT))
        pairs = checked_array("pair_mus", pair_mus, NON_NEGATIVE)
        if abs(float(chances.sum()) - 1) > 1e-9:
            raise must_be("weights", "of sum 1", f"{float(chances.sum()):.6g}")
        if pairs.shape != (len(own), len(own)):
            raise must_be("pair_mus", f"of shape {(len(own), len(own))}", f"{pairs.shape}")
        object.__setattr__(self, "mus", own)
        object.__setattr__(self, "pair_mus", np.maximum(pairs, pairs.T))
        object.__setattr__(self, "weights", chances)
        object.__setattr__(self, "adjacency", adjacency)

    def _said(self) -> str:
        return f"{len(self.mus)} places, mu up to {float(self.mus.max()):.4g}"

    @cached_property
    def _sorted(self) -> HardestFirst:
        order = self._order
        return HardestFirst(self.mus[order], self.pair_mus[np.ix_(order, order)], self.weights[order])

    @cached_property
    def _order(self) -> Counts:
        order = np.argsort(-self.mus, kind="stable")
        return np.asarray(order[self.weights[order] > 0])

    @cached_property
    def average(self) -> AveragedGaussianDP:
        """The guarantee where every place is compared with itself alone."""
        return AveragedGaussianDP(mus=self.mus, weights=self.weights, adjacency=self.adjacency)

    def _after(self, mu: float) -> HiddenPlaceDP:
        """Compose each two places by themselves, because places do not depend on the data."""
        own, pairs = (up(np.hypot(values, mu), operations=2) for values in (self.mus, self.pair_mus))
        return HiddenPlaceDP(mus=own, pair_mus=pairs, weights=self.weights, adjacency=self.adjacency)

    def _rdp(self, orders: Floats) -> Floats:
        return self.average._rdp(orders)

    def log_delta(self, epsilons: Floats) -> Floats:
        return np.minimum(self.average.log_delta(epsilons), [self._hidden(epsilon) for epsilon in epsilons.tolist()])

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        return np.maximum(super()._tradeoff(type_i_errors), self.average._tradeoff(type_i_errors))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """A table for trade-offs of fewer ε than usual, because each takes its time."""
        largest = min(float(self.average.epsilon_at_log(np.array([np.log(1e-14)]))[0]), 700.0)
        epsilons = largest * np.linspace(0.0, 1.0, _TABLED) ** 1.5
        return epsilons, up(np.exp(self.log_delta(epsilons)), operations=50)

    def _hidden(self, epsilon: float) -> float:
        return self._sorted.log_delta(epsilon, self._sorted.shares(epsilon))

    def shares(self, epsilon: float) -> Floats:
        """Return y_k/e^ε for each place, with which the bound at this ε is attained; all 1: each place beside itself."""
        found, shares = np.ones_like(self.mus), self._sorted.shares(epsilon)
        if self._sorted.log_delta(epsilon, shares) < self.average.log_delta(np.array([epsilon]))[0]:
            found[self._order] = shares
        return found

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Search below the ε of the average, which suffices."""
        enough = self.average.epsilon_at_log(log_deltas)
        low, high = np.zeros_like(enough), np.where(np.isfinite(enough), enough, 0.0)
        root = decreasing_root(lambda x: self.log_delta(x) - log_deltas, low, high, relative_tolerance=_NEAR)
        return np.where(np.isfinite(enough), root, np.inf)


@dataclass(frozen=True, eq=False)
class HardestFirst:
    """The places, the largest μ first: the search for a good choice, and what it is worth."""

    mus: Floats
    pair_mus: Floats
    weights: Floats

    def log_delta(self, epsilon: float, shares: Floats) -> float:
        """Return log δ(ε), rounded up, with y_k = shares_k·e^ε; places with shares above 1 take what the others give."""
        hard = shares > 1
        given = np.where(hard, 0.0, self.weights * (1 - np.minimum(shares, 1.0)))
        if not given.sum() * _KEPT >= (self.weights * (shares - 1))[hard].sum():
            return 0.0
        levels = _log_below(epsilon, shares)
        own = log_gap_anywhere(levels, self.mus) + np.log(self.weights) - np.log(np.maximum(shares, 1.0))
        terms = [own]
        if hard.any():
            parts = np.add.reduceat(given, self._starts)
            kept = parts > 0
            taken = np.log(self.weights[hard] * (shares[hard] - 1) / shares[hard])
            split = np.log(parts[kept] / given.sum())
            gaps = log_gap_anywhere(levels[hard, None], self._columns[np.ix_(hard, kept)])
            terms.append((gaps + taken[:, None] + split).ravel())
        logs = np.concatenate(terms)
        top = max(float(logs.max()), -1e300)
        with np.errstate(under="ignore", divide="ignore"):
            total = float(np.log(np.exp(logs - top).sum()))
        return min(top + total + ROUNDOFF * (len(logs) + 40 + 8 * abs(top)), 0.0)

    @cached_property
    def _starts(self) -> Counts:
        """First places of the groups that are counted together as the other place of a pair; each alone, if they are few."""
        count = len(self.mus)
        edges = np.arange(count) if count <= _MOST_COLUMNS else np.geomspace(1, count, _MOST_COLUMNS) - 1
        return np.unique(np.minimum(edges.astype(np.intp), count - 1))

    @cached_property
    def _columns(self) -> Floats:
        """The worst μ of each place with each of these groups of others."""
        others = self.pair_mus.copy()
        np.fill_diagonal(others, 0.0)  # no place is its own other place
        return np.asarray(np.maximum.reduceat(others, self._starts, axis=1))

    def shares(self, epsilon: float) -> Floats:
        """Return y_k/e^ε of a choice that is good at this ε. Nothing here has to be trusted: any choice is valid."""
        if len(self.mus) < 2 or not self.mus[0]:
            return np.ones_like(self.mus)
        found = self._candidates(epsilon)
        return np.asarray(found[self._best(epsilon, found)])

    @cached_property
    def _numbers(self) -> Counts:
        """Numbers of hard places to try; these are the first places."""
        most = len(self.mus) - 1
        few = np.geomspace(1, most, _MOST_NUMBERS) if most > _MOST_NUMBERS else np.arange(1, most + 1)
        return np.unique(np.round(few).astype(np.intp))

    @cached_property
    def _typical(self) -> tuple[Chosen, Floats]:
        """For each candidate (rows) which places are hard, and the μ that each place is taken to have."""
        mixes = _MIXES if len(self.mus) <= _MOST_COLUMNS else _FEW_MIXES
        hard = np.arange(len(self.mus)) < np.repeat(self._numbers, len(mixes))[:, None]
        mix = np.tile(mixes, len(self._numbers))[:, None]
        easy = np.where(hard, 0.0, self.weights)
        pairs = (easy @ self.pair_mus) / easy.sum(axis=1, keepdims=True)
        return hard, np.maximum(np.where(hard, (1 - mix) * self.mus + mix * pairs, self.mus), 1e-12)

    def _candidates(self, epsilon: float) -> Floats:
        """Return y_k/e^ε for each candidate, with q such that nothing is left.

        log y_k = m_k·(q − m_k/2), but ε at least for hard places and at most for others.
        """
        hard, mus = self._typical
        shares = self._at(epsilon, mus, self._point(epsilon, mus))
        given, taken = np.where(hard, 0.0, 1 - shares) @ self.weights, np.where(hard, shares - 1, 0.0) @ self.weights
        scale = np.minimum(given / np.maximum(taken, 1e-300) * _KEPT**2, 1.0)
        return np.where(hard, 1 + (shares - 1) * scale[:, None], shares)

    def _point(self, epsilon: float, mus: Floats) -> Floats:
        """Return q for each candidate: first between which kinks it lies, then by Newton's method.

        There Σ w_k·y_k over the places that q moves has a convex logarithm. Where a place costs next to nothing the last
        kink is near infinity: the search begins where a hard place is as hard as it may be.
        """
        hard, ends = self._typical[0], epsilon / mus + mus / 2
        kinks, rows = np.sort(ends, axis=1), np.arange(len(mus))
        low, high = np.zeros(len(mus), np.intp), np.full(len(mus), mus.shape[1] - 1)
        for _ in range(mus.shape[1].bit_length()):
            middle = (low + high) // 2
            enough = (self._at(epsilon, mus, kinks[rows, middle]) - 1) @ self.weights >= 0
            low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
        hardest = np.where(hard, (epsilon + _HARDEST) / mus + mus / 2, np.inf).min(axis=1)
        least, next_kink = kinks[rows, np.maximum(high - 1, 0)], kinks[rows, high]
        point = most = np.maximum(np.minimum(next_kink, hardest), least)
        moved = np.where(
            hard, ends <= least[:, None], ends >= next_kink[:, None]
        )  # at a kink, rounding does not decide
        needed = np.maximum(moved @ self.weights, 1e-300)
        for _ in range(_STEPS):
            shares = np.where(moved, self._at(epsilon, mus, point), 0.0)
            total = np.maximum(shares @ self.weights, 1e-300)
            step = np.log(total / needed) * total / np.maximum((shares * mus) @ self.weights, 1e-300)
            point = np.minimum(np.maximum(point - step, least), most)
        return np.asarray(point)

    def _at(self, epsilon: float, mus: Floats, point: Floats) -> Floats:
        half, low, high = self._limits
        logs = point[:, None] - half
        logs *= mus
        logs -= epsilon
        return np.asarray(np.exp(np.minimum(np.maximum(logs, low, out=logs), high, out=logs), out=logs))

    @cached_property
    def _limits(self) -> tuple[Floats, Floats, Floats]:
        """m_k/2, and what log y_k/e^ε is cut to, for each candidate."""
        hard, mus = self._typical
        return mus / 2, np.where(hard, 0.0, -700.0), np.where(hard, _HARDEST, 0.0)

    def _best(self, epsilon: float, shares: Floats) -> int:
        """Return the candidate with about the least δ. Pairs only add to it: most candidates are left out without them."""
        levels = np.minimum(epsilon + np.log(shares), 700.0)
        own = (_about_gap(levels, self.mus) / np.maximum(shares, 1.0)) @ self.weights
        first = int(np.argmin(own))
        total = np.full_like(own, np.inf)
        total[first] = own[first] + self._in_pairs(levels, shares, np.array([first]))[0]
        others = np.flatnonzero(own < total[first])
        total[others] = own[others] + self._in_pairs(levels, shares, others)
        return int(np.argmin(total))

    def _in_pairs(self, levels: Floats, shares: Floats, which: Counts) -> Floats:
        """Estimate what pairs of places add to δ, for these candidates."""
        hard, shares = self._typical[0][which], shares[which]
        given = np.where(hard, 0.0, self.weights * (1 - shares))
        parts = np.add.reduceat(given, self._starts, axis=1)
        parts = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
        row, place = np.nonzero(hard & (shares > 1))
        taken = _about_gap(levels[which[row], place][:, None], self._columns[place]) * parts[row]
        found = np.zeros_like(shares)
        found[row, place] = taken.sum(axis=1) * (shares[row, place] - 1) / shares[row, place]
        return np.asarray(found @ self.weights)


def _log_below(epsilon: float, shares: Floats) -> Floats:
    """Return log y, rounded down."""
    with np.errstate(divide="ignore"):
        levels = epsilon + np.log(shares)
    return np.asarray(levels - 4 * ROUNDOFF * (epsilon + np.abs(np.log(np.maximum(shares, 1e-300))) + 1e-300))


def log_gap_anywhere(levels: Floats, mus: Floats) -> Floats:
    """Return log θ at any level, rounded up: θ_{−e} = 1 − e^{−e} + e^{−e}·θ_e; with μ = 0 only what is missing."""
    levels, mus = np.broadcast_arrays(levels, mus)
    sizes = np.abs(levels)
    with np.errstate(divide="ignore", under="ignore"):
        above = np.where(mus > 0, log_gap_above(sizes, np.maximum(mus, 1e-300)), -np.inf)
        missing = np.logaddexp(np.log(-np.expm1(-sizes)), above - sizes)
        missing = np.minimum(missing + 8 * ROUNDOFF * (1 + np.abs(np.maximum(missing, -1e300))), 0.0)
    return np.where(levels < 0, missing, above)


def _about_gap(levels: Floats, mus: Floats) -> Floats:
    mus = np.maximum(mus, 1e-12)
    middle = levels / mus
    return np.maximum(ndtr(mus / 2 - middle) - np.exp(levels) * ndtr(-middle - mus / 2), 0.0)
