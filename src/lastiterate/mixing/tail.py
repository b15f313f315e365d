"""What is left of a distance that is random."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import gap_estimate, log_gap_above
from lastiterate.numerics.roots import FARTHEST, decreasing_root, newton_root

_TOLERANCE = 1e-12  # of ε, in a search: the rest is told what was taken
_ABOVE = 1e-9  # of an estimate: so much beyond it the bound is seen to hold, mostly
_CLOSE = 1e-11  # of an estimate


@dataclass(frozen=True, eq=False)
class Tail:
    """States whose distance is random: μ_1 ≤ μ_2 ≤ … with how likely it is that the one before does not do."""

    mus: Floats
    weights: Floats

    def log_delta(self, epsilons: Floats) -> Floats:
        """log Σ weight·θ_ε(μ), rounded up."""
        if not self.mus.any():
            return np.full_like(epsilons, -np.inf)
        logs = log_gap_above(epsilons[:, None], np.maximum(self.mus, 1e-300)) + self._log_weights
        total = np.logaddexp.reduce(logs, axis=1)
        return np.minimum(total + 1e-14 * (1 + np.abs(total)), 0.0)

    def epsilon(self, log_deltas: Floats) -> Floats:
        """About the least ε at which `log_delta` is no more than this, seen to hold there; ∞ where it is astronomical."""
        if not self.mus.any():
            return np.zeros_like(log_deltas)
        beyond = self.epsilon_estimate(log_deltas) * (1 + _ABOVE)
        return beyond if (self.log_delta(beyond) <= log_deltas).all() else self._searched(log_deltas)

    def _searched(self, log_deltas: Floats) -> Floats:
        high = self._above(log_deltas)
        while (short := (self.log_delta(high) > log_deltas) & (high < FARTHEST)).any():
            high = np.where(short, 2 * high, high)
        root = decreasing_root(lambda x: self.log_delta(x) - log_deltas, np.zeros_like(high), high, _TOLERANCE)
        return np.where(self.log_delta(root) <= log_deltas, root, np.inf)

    def epsilon_estimate(self, log_deltas: Floats) -> Floats:
        """The same, nearly: to steer a search."""
        if not self.mus.any():
            return np.zeros_like(log_deltas)
        return newton_root(self._estimated, log_deltas, 2 * self._above(log_deltas), _CLOSE)

    def _estimated(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """About log Σ weight·θ_ε(μ), and its slope in ε."""
        log_densities, gaps, falls = gap_estimate(epsilons[:, None], np.maximum(self.mus, 1e-300))
        logs = np.maximum(log_densities + self._log_weights, -1e300)
        top = logs.max(axis=1)
        parts = np.exp(logs - top[:, None])
        total = (parts * gaps).sum(axis=1)
        return top + np.log(total), -(parts * falls).sum(axis=1) / total

    @cached_property
    def _log_weights(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def _above(self, log_deltas: Floats) -> Floats:
        """About what the largest μ alone would take: θ_ε(μ) ≤ e^{−a²/2} at ε = μ²/2 + μ·a."""
        largest = min(float(self.mus.max()), FARTHEST**0.5)
        return largest**2 / 2 + largest * np.sqrt(-2.0 * np.minimum(log_deltas, 0.0)) + 1e-300
