"""A hidden place, where what two places reveal is known as tables: as `curves/hidden_place.py`, for any profiles.

For places k with probabilities w_k: δ(ε) ≤ Σ_k w_k·Σ_j (W_kj/y_k)·F_kj(log y_k), for W ≥ 0 with Σ_k w_k·W_kj ≤ e^ε·w_j and
y_k = Σ_j W_kj. Places that are easy to see, the last few, are compared with the others, which give a part of theirs. The
search for a good choice need not be trusted; `_worth` is what it gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.mixing.distances import Scale
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

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
