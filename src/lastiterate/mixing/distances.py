"""What steps on a bounded set leave of a distance and of a loss: tables for all distances at once. Trusted.

F_k(r, e) bounds the hockey-stick divergence at level e after k steps from any two states at distance at most r, in units of
the noise. A step moves them to at most r'; then either a part a of the distance is paid for (`shift`),

    F_k(r, e) ≤ E F_{k−1}(min(D, r' − a), e + a·u − a²/2),  u normal,

or the noise is reflected (`mixing/contraction.py`), (1 − x)·F_{k−1}(0, e − c) + x·E F_{k−1}(min(D, distance), e + lift).
Each r and e has the better of the two. Proof: docs/proofs.md.

Distances are rounded up to rows. Between levels a table is a chord in e^e, in which the divergence is convex; with
F(r, −e) = 1 − e^{−e} + e^{−e}·F(r, e) it is a sum of hinges (t_i − t)₊, whose mean over u is again a normal gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.mixing.contraction import reflected, tail_difference
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up

FLOOR = 1e-30  # of a table: far below every δ that is followed, and nothing is rounded to 0, which would be a claim
_ROUNDED = 1e-11  # of a step: sums of a few hundred products, each rounded
_PAYMENTS = (0, 1, 2, 3, 5, 8, 12, 18, 27)  # beyond the push, in rows: finer ones gain little
_PARTS = (0.25, 0.5, 0.75)  # of the push
_LARGEST_PAYMENT = 4.0
_VANISHED = 40.0  # from here on φ is no float but 0
_NEXT_TO_NOTHING = 1e-6  # of a row: paid so that a distance which rounding put just above a row is counted as that row


@dataclass(frozen=True, eq=False)
class Scale:
    """`rows`: distances from 0 to the diameter, even. `levels`: of loss, from 0 on. `cuts`: where noise is reflected."""

    rows: Floats
    levels: Floats
    cuts: Floats

    @cached_property
    def powers(self) -> Floats:
        """e^level, from −last to last."""
        return np.exp(self._both_sides)

    @cached_property
    def _both_sides(self) -> Floats:
        return np.concatenate([-self.levels[:0:-1], self.levels])

    def hinges(self, table: Floats) -> tuple[Floats, Floats]:
        """Weights w_i ≥ 0 and a rest with table ≤ rest + Σ w_i·(t_i − t)₊, between its points as well."""
        away = np.exp(-self.levels[:0:-1])
        values = np.concatenate([1 - away + away * table[..., :0:-1], table], axis=-1)
        first = (values[..., :1] - 1) / self.powers[0]
        slopes = np.concatenate([first, np.diff(values, axis=-1) / np.diff(self.powers), np.zeros_like(first)], axis=-1)
        return np.maximum(np.diff(slopes, axis=-1), 0.0), table[..., -1]

    def paid(self, payment: float) -> Floats:
        """E(t_i − t·e^{a·u − a²/2})₊ for each hinge (rows) and each level (columns), rounded up."""
        inside, smaller, apart, which = self._hinges_and_levels
        near = apart * (1 - 1e-15) / payment - payment / 2
        felt = int(np.searchsorted(near, _VANISHED))
        gaps = np.zeros_like(near)
        gaps[:felt] = up(tail_difference(near[:felt], payment, 0.0))
        return inside + smaller * gaps[which]

    @cached_property
    def _hinges_and_levels(self) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
        """(t_i − t)₊; the smaller of t_i and t; all that levels can be apart, increasing, and where these are it."""
        apart = self._both_sides[:, None] - self.levels
        hinges, here = self.powers[:, None], np.exp(self.levels)
        distinct, which = np.unique(np.abs(apart), return_inverse=True)
        smaller = np.where(apart > 0, here, hinges)
        return np.maximum(hinges - here, 0.0), smaller, distinct, which.reshape(apart.shape)

    def between(self, wanted: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Where each level lies, and the share of the upper end in the chord, rounded down; beyond the last, the last."""
        inside = np.minimum(wanted, self.levels[-1])
        low = np.clip(np.searchsorted(self.levels, inside, side="right") - 1, 0, len(self.levels) - 2)
        ends = np.exp(self.levels)
        share = (np.exp(inside) - ends[low]) / (ends[low + 1] - ends[low])
        return low, np.clip(share - 1e-12, 0.0, 1.0)

    def along(self, table: Floats, wanted: Floats) -> Floats:
        """A row of a table at any levels, also below 0."""
        low, share = self.between(np.abs(wanted))
        found = table[low] * (1 - share) + table[low + 1] * share
        away = np.exp(-np.abs(wanted))
        return up(np.where(wanted < 0, 1 - away + away * found, found))


class Step:
    """One step: `moved` are the distances after it and before its noise, for each row, increasing."""

    def __init__(self, scale: Scale, moved: Floats, push: float) -> None:
        self._scale, self._moved = scale, up(moved)
        rows, last = scale.rows, len(scale.rows) - 1
        self._free = np.minimum(np.searchsorted(rows, self._moved), last)
        self._payments = [self._payment(one) for one in _payments(push, rows) if one <= self._moved[-1]]
        self._reflected = reflected(scale.cuts, self._moved, rows)
        lifted = scale.levels + self._reflected.lift[..., None]
        low, self._share = scale.between(lifted)
        each = np.arange(low[..., 0].size).reshape(low.shape[:-1])
        self._low = low + len(scale.levels) * each[..., None]

    def _payment(self, payment: float) -> tuple[slice, NDArray[np.intp], Floats]:
        """The rows that can pay so much, where each of them gets, and the mean of every hinge."""
        paying = slice(int(np.searchsorted(self._moved * (1 + 1e-9), payment)), None)
        inflated = payment * (1 + 1e-9) + 1e-9 * self._scale.rows[1]
        landed = np.searchsorted(self._scale.rows, self._moved[paying] - inflated)
        return paying, np.minimum(landed, len(self._scale.rows) - 1), self._scale.paid(inflated)

    @property
    def last(self) -> Floats:
        """F_1: this step, and nothing after it."""
        gaps = np.exp(log_gap_above(self._scale.levels, np.maximum(self._moved, 1e-300)[:, None]))
        return np.maximum(np.minimum(up(gaps), 1.0), FLOOR)

    def before(self, table: Floats) -> Floats:
        """F_k from F_{k−1}: this step first, then what the table is about."""
        found = np.minimum(table[self._free], self._by_reflection(table))
        hinges, rest = self._scale.hinges(table)
        for paying, landed, mean in self._payments:
            paid = hinges.take(landed, axis=0) @ mean
            paid += rest.take(landed)[:, None]
            np.minimum(found[paying], paid, out=found[paying])
        found = np.clip(up(found, by=_ROUNDED), FLOOR, 1.0)
        # What holds at a level holds above it, and what holds at a distance holds below it.
        found = np.minimum.accumulate(found, axis=1)
        return np.asarray(np.minimum.accumulate(found[::-1], axis=0)[::-1])

    def _by_reflection(self, table: Floats) -> Floats:
        """The best cut for each row and level."""
        scale, mirrored = self._scale, self._reflected
        together = scale.along(table[0], scale.levels - scale.cuts[:, None])
        apart = (mirrored.landing @ table).ravel()
        low, high = apart.take(self._low), apart[1:].take(self._low)
        high -= low
        high *= self._share
        low += high
        low *= mirrored.apart[..., None]
        low += (1 - mirrored.apart_below)[..., None] * together[:, None, :]
        return np.asarray(low.min(axis=0))


def _payments(push: float, rows: Floats) -> list[float]:
    width = float(rows[1])
    wanted = (
        {push + steps * width for steps in _PAYMENTS} | {push * part for part in _PARTS} | {_NEXT_TO_NOTHING * width}
    )
    return sorted(one for one in wanted if _NEXT_TO_NOTHING * width <= one <= max(_LARGEST_PAYMENT, push))


# A hidden place, where what two places reveal is known as tables: as `curves/hidden_place.py`, for any profiles.
#
# For places k with probabilities w_k: δ(ε) ≤ Σ_k w_k·Σ_j (W_kj/y_k)·F_kj(log y_k), for W ≥ 0 with Σ_k w_k·W_kj ≤ e^ε·w_j
# and
# y_k = Σ_j W_kj. Places that are easy to see, the last few, are compared with the others, which give a part of theirs.
# The
# search for a good choice need not be trusted; `_worth` is what it gives.


Chosen = NDArray[np.intp]

_POINTS = 96  # levels that are tried for each place
_HIGHEST = 9.0  # above ε: levels of the places that are easy to see
_HALVINGS, _ROUNDS = 18, 2  # for the price of a level; and until what others give has settled
_PRICES = (-45.0, 5.0)  # of e^level, as logarithms: δ is not followed farther down than e^−45
_SAFE = 1e-11  # of a level: by which it is lowered, so that no rounding takes more than there is


@dataclass(frozen=True, eq=False)
class HiddenTables:
    """`own`: of each place with itself (rows), the places that are easy to see last. `pairs[h, k]`: of these with others."""

    scale: Scale
    weights: Floats
    own: Floats
    pairs: Floats

    def delta(self, epsilons: Floats) -> Floats:
        """Upper bounds on δ; the average over places is one."""
        return np.array([self._delta(epsilon) for epsilon in epsilons.tolist()])

    def _delta(self, epsilon: float) -> float:
        best = float(up(self.weights @ self._at(self.own, np.array([epsilon]))[:, 0]))
        for hard in range(1, len(self.pairs) + 1):
            best = min(best, self._hidden(epsilon, hard))
        return min(best, 1.0)

    def _hidden(self, epsilon: float, hard: int) -> float:
        """The last `hard` places take, the others give."""
        easy = len(self.own) - hard
        low = epsilon * np.linspace(0.0, 1.0, _POINTS) ** 0.5
        high = epsilon + _HIGHEST * np.linspace(0.0, 1.0, _POINTS) ** 2
        others = self.pairs[-hard:, :easy].reshape(hard * easy, -1)
        return _Tried(
            epsilon,
            self.weights,
            low,
            high,
            self._at(self.own[:easy], low),
            self._at(self.own[easy:], high),
            self._at(others, high).reshape(hard, easy, _POINTS),
        ).best

    def _at(self, tables: Floats, levels: Floats) -> Floats:
        """Each table (rows) at these levels, lowered a little."""
        low, share = self.scale.between(np.maximum(levels - _SAFE, 0.0))
        found = tables[:, low]
        return up(found + (tables[:, low + 1] - found) * share)


@dataclass(frozen=True, eq=False)
class _Tried:
    """At one ε: what each place costs at levels from 0 to ε if it gives, from ε on if it takes, and beside the others."""

    epsilon: float
    weights: Floats
    low: Floats
    high: Floats
    giving: Floats
    own: Floats
    others: Floats

    @property
    def best(self) -> float:
        """The least δ found; 1 where nothing is worth taking."""
        easy, whole, best = len(self.giving), np.exp(self.epsilon), 1.0
        given = self.weights[:easy] / self.weights[:easy].sum()
        for _ in range(_ROUNDS):
            levels, tops = self._chosen(given)
            spare = self.weights[:easy] * (whole - np.exp(self.low[levels]))
            wanted = self.weights[easy:] @ (np.exp(self.high[tops]) - whole)
            if not 0 < wanted <= spare.sum():
                break
            given = spare / spare.sum()
            best = min(best, self._worth(given, levels, tops))
        return best

    @cached_property
    def _kept(self) -> Floats:
        """e^ε/y of a place that takes: its own part of y."""
        return np.exp(self.epsilon - self.high)

    def _chosen(self, given: Floats) -> tuple[Chosen, Chosen]:
        """Levels that are best at a price for e^level, the least price at which no more is taken than given."""
        easy = len(self.giving)
        taking = self._kept * self.own + (1 - self._kept) * np.einsum("k,hkp->hp", given, self.others)
        given_up, taken, whole = np.exp(self.low), np.exp(self.high), np.exp(self.epsilon)
        least, most = _PRICES
        found = np.zeros(easy, np.intp), np.zeros(len(taking), np.intp)
        for _ in range(_HALVINGS):
            price = (least + most) / 2
            levels = (self.giving + np.exp(price + self.low)).argmin(axis=1)
            tops = (taking + np.exp(price + self.high)).argmin(axis=1)
            if self.weights[:easy] @ given_up[levels] + self.weights[easy:] @ taken[tops] > whole:
                least = price
            else:
                most, found = price, (levels, tops)
        return found

    def _worth(self, given: Floats, levels: Chosen, tops: Chosen) -> float:
        """Σ_k w_k·Σ_j (W_kj/y_k)·F_kj(log y_k): what is taken from each other place is its share of all that is given."""
        easy = np.arange(len(self.giving))
        total = float(self.weights[easy] @ self.giving[easy, levels])
        for row, top in enumerate(tops.tolist()):
            from_others = (given @ self.others[row, :, top]) * (1 - self._kept[top])
            total += self.weights[len(easy) + row] * (self._kept[top] * self.own[row, top] + from_others)
        return up(float(total))
