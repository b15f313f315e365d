"""Gaussian differential privacy: no easier to break than telling N(0, 1) from N(μ, 1) (Dong2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.errors import INSIDE_UNIT, MU, checked_array, checked_choice, checked_number
from lastiterate.numerics.arrays import Floats, like_input
from lastiterate.numerics.normal_gap import log_gap_above, log_gap_below, threshold_above
from lastiterate.numerics.roots import decreasing_root
from lastiterate.numerics.rounding import down, up

_ROUNDED = 1e-9  # of ε: mostly its lower and upper bound are closer, and between them a root is found at once


@dataclass(frozen=True)
class GaussianDP(Notion):
    """μ-GDP. Exact for one Gaussian mechanism with sensitivity/noise = μ; μ = 0 is perfect privacy."""

    mu: float
    adjacency: Adjacency = REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checked_number("mu", self.mu, MU))
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))

    def log_delta(self, epsilons: Floats) -> Floats:
        if self.mu == 0:
            return np.full_like(epsilons, -np.inf)
        return log_gap_above(epsilons, self.mu)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        if self.mu == 0:
            return np.zeros_like(log_deltas)
        return threshold_above(log_deltas, self.mu)

    def epsilon_estimate(self, log_delta: float) -> float:
        return float(self.epsilon_at_log(np.array([log_delta]))[0])

    def log_delta_estimate(self, epsilon: float) -> float:
        return float(self.log_delta(np.array([epsilon]))[0])

    def bracket(self, delta: ArrayLike) -> tuple[object, object]:
        """Return (lower, upper) bounds on the exact ε; they differ by rounding only."""
        log_deltas = np.log(checked_array("delta", delta, INSIDE_UNIT)).ravel()
        upper = self.epsilon_at_log(log_deltas)
        if self.mu == 0:
            return like_input(upper, delta), like_input(upper, delta)

        def short(x: Floats) -> Floats:
            return log_deltas - log_gap_below(-x, self.mu)

        close = -upper * (1 - _ROUNDED)
        lower = -decreasing_root(short, -upper, np.where(short(close) <= 0, close, 0.0))
        return like_input(np.abs(lower), delta), like_input(upper, delta)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        exact = ndtr(-ndtri(type_i_errors) - self.mu)  # Φ⁻¹(1 − α) itself would round tiny α to 0
        return np.where((type_i_errors > 0) & (type_i_errors < 1), down(exact, by=1e-11), 1.0 - type_i_errors)

    def _after(self, mu: float) -> GaussianDP:
        return GaussianDP(up(math.hypot(self.mu, mu), operations=2), self.adjacency)

    def _rdp(self, orders: Floats) -> Floats:
        return up(orders * self.mu**2 / 2, operations=2)


def composed_mu(mus: list[float], counts: list[int]) -> float:
    """Return √Σ counts·μ², rounded up."""
    return up(math.sqrt(math.fsum(n * mu**2 for mu, n in zip(mus, counts, strict=True))), operations=1)
