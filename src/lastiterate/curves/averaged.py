"""A mechanism that is μ-GDP with a μ that was drawn at random, and not from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.errors import NON_NEGATIVE, UNIT, checked_choice, checked_lists, must_be
from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up

_SMALLEST_LOG = -1e300  # stands for −∞, which minus itself would be NaN; below every log δ that is computed


@dataclass(frozen=True, init=False, repr=False)
class AveragedGaussianDP(Notion):
    """δ(ε) = Σ weight·θ_ε(μ): with this probability the mechanism is one that is μ-GDP (joint convexity).

    The last iterate after a random order of the data is an example: a record's μ depends on when it was used.
    """

    mus: tuple[float, ...]
    weights: tuple[float, ...]
    adjacency: Adjacency

    def __init__(self, *, mus: ArrayLike, weights: ArrayLike, adjacency: Adjacency = REPLACE_ONE) -> None:
        adjacency = checked_choice("adjacency", adjacency, Adjacency)
        mu_array, weight_array = checked_lists(("mus", mus, NON_NEGATIVE), ("weights", weights, UNIT))
        if abs(float(weight_array.sum()) - 1) > 1e-9:
            raise must_be("weights", "of sum 1", f"{float(weight_array.sum()):.6g}")
        kept = (weight_array > 0) & (mu_array > 0)
        object.__setattr__(self, "mus", tuple(mu_array[kept].tolist()))
        object.__setattr__(self, "weights", tuple(weight_array[kept].tolist()))
        object.__setattr__(self, "adjacency", adjacency)

    def _said(self) -> str:
        return f"{len(self.mus)} mus up to {max(self.mus, default=0.0):.4g}"

    def _log_delta(self, epsilons: Floats) -> Floats:
        if not self.mus:
            return np.full_like(epsilons, -np.inf)
        logs = log_gap_above(epsilons[:, None], np.array(self.mus)) + np.log(self.weights)
        top = np.maximum(logs.max(axis=1), _SMALLEST_LOG)
        with np.errstate(under="ignore"):
            total = np.exp(logs - top[:, None]).sum(axis=1)
        slack = ROUNDOFF * (len(self.mus) + 8 + 2 * np.abs(top))
        return np.minimum(top + np.log(total) + slack, 0.0)

    def _after(self, mu: float) -> AveragedGaussianDP:
        """What was drawn does not depend on the data, so that each composes by itself; what cost nothing costs mu."""
        free = max(0.0, 1.0 - math.fsum(self.weights))
        mus = up(np.hypot((*self.mus, 0.0), mu), operations=2)
        return AveragedGaussianDP(mus=mus, weights=(*self.weights, free), adjacency=self.adjacency)

    def _rdp(self, orders: Floats) -> Floats:
        """log E e^{(α−1)R} / (α−1) is jointly convex enough: log of the average of e^{(α−1)αμ²/2}, over α − 1."""
        if not self.mus:
            return np.zeros_like(orders)
        exponents = (orders * (orders - 1))[:, None] * np.square(self.mus) / 2
        rest = max(1.0 - sum(self.weights), 0.0)  # perfect privacy with this probability
        logs = np.concatenate(
            [exponents + np.log(self.weights), np.log(np.full((len(orders), 1), rest + 1e-300))], axis=1
        )
        top = logs.max(axis=1)
        total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        return up(np.maximum(total / (orders - 1), 0.0), operations=500) + 1e-15
