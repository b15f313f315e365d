"""Window and tail: everything the last steps reveal, and what they leave of the difference that was there before.

S is the neighbour's state before the window, continued on the first data set. E_{a+b}(P‖Q) ≤ E_a(P‖S) + e^a·E_b(S‖Q):
P and S run on the same data from two states that are close (the tail); S and Q from the same state on neighbouring data (the
window). The evaluator is `joined`; how ε is split is searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.mixing.table import Tabled
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.roots import FARTHEST, decreasing_root
from lastiterate.numerics.rounding import down, up
from lastiterate.privacy.adjacency import REPLACE_ONE, Adjacency
from lastiterate.privacy.notion import Notion

# Of δ for the tail: any share is valid, and ε is flat around the best one, in the logarithm of the share. Each that is
# tried costs a question to the window.
_SHARES = (0.03, 0.2)
_LESS, _MORE = 0.0045, 0.9  # a third is tried, beyond the better of the two
_SPLITS = 24  # ways to split ε, each valid: fewer are looser, more take longer


@dataclass(frozen=True, eq=False)
class Tail:
    """States whose distance is random: μ_1 ≤ μ_2 ≤ … with how likely it is that the one before does not do."""

    mus: Floats
    weights: Floats

    def log_delta(self, epsilons: Floats) -> Floats:
        """log Σ weight·θ_ε(μ), rounded up."""
        if not self.mus.any():
            return np.full_like(epsilons, -np.inf)
        with np.errstate(divide="ignore"):
            logs = log_gap_above(epsilons[:, None], np.maximum(self.mus, 1e-300)) + np.log(self.weights)
        total = np.logaddexp.reduce(logs, axis=1)
        return np.minimum(total + 1e-14 * (1 + np.abs(total)), 0.0)

    def epsilon(self, log_deltas: Floats) -> Floats:
        """The least ε at which `log_delta` is no more than this; ∞ where it is astronomical."""
        if not self.mus.any():
            return np.zeros_like(log_deltas)
        high = np.full_like(log_deltas, 1e-3)
        while (short := (self.log_delta(high) > log_deltas) & (high < FARTHEST)).any():
            high = np.where(short, 2 * high, high)
        root = decreasing_root(lambda x: self.log_delta(x) - log_deltas, np.zeros_like(high), high)
        return np.where(self.log_delta(root) <= log_deltas, root, np.inf)


def joined(log_tail: Floats, splits: Floats, log_window: Floats) -> Floats:
    """log(E_a + e^a·E_b), rounded up: the bound on δ at ε = a + b, for each a of `splits`."""
    together = np.logaddexp(log_tail, splits + log_window)
    return np.minimum(together + 1e-14 * (1 + np.abs(together) + splits), 0.0)


@dataclass(frozen=True, eq=False)
class WindowTail(Notion):
    """The guarantee of one window."""

    tail: Tail
    window: Notion
    adjacency: Adjacency = REPLACE_ONE

    def _log_delta(self, epsilons: Floats) -> Floats:
        if not self.tail.mus.any():
            return self.window._log_delta(epsilons)
        return np.array([self._log_delta_at(epsilon) for epsilon in epsilons.tolist()])

    def _log_delta_at(self, epsilon: float) -> float:
        """Over splits from those that leave all to the window to those that leave nothing."""
        splits = epsilon * np.linspace(0.0, 1.0, _SPLITS) ** 2
        left = down(epsilon - splits, operations=2)
        return float(joined(self.tail.log_delta(splits), splits, self._tabled.log_delta(left)).min())

    @cached_property
    def _tabled(self) -> Tabled:
        return Tabled(self.window)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        if not self.tail.mus.any():
            return self.window._epsilon(log_deltas)
        return np.array([min(pair[0] for pair in self.split_for(x).values()) for x in log_deltas.tolist()])

    def epsilon_estimate(self, log_delta: float) -> float:
        """What the tail alone takes, if it had all of δ: quick, and no more than the whole."""
        return self.tail.epsilon(np.array([log_delta])).item()

    def split_for(self, log_delta: float) -> dict[float, tuple[float, float]]:
        """For each share of δ that was tried: ε, and the part of it that the tail takes."""
        found: dict[float, tuple[float, float]] = {}
        for share in _SHARES:
            found[share] = self._with_share(log_delta, share)
        low, high = (found[share][0] for share in _SHARES)
        share = _MORE if high < low else _LESS
        found[share] = self._with_share(log_delta, share)
        return found

    def _with_share(self, log_delta: float, share: float) -> tuple[float, float]:
        split = self.tail.epsilon(np.array([log_delta + np.log(share) - 1e-12])).item()
        if np.isinf(split):
            return split, split
        left = log_delta + float(np.log1p(-share)) - split - 1e-12 * (1 + split)
        return up(split + self._tabled.epsilon(left)), split
