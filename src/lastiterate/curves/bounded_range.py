"""A privacy loss that is bounded on both sides, by an interval whose place is not known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.conversions import log_expm1
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import LARGEST_TABLED
from lastiterate.errors import POSITIVE, check_fields, checked_choice
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

_LEAST = 1e-300  # so that no logarithm of 0 is taken where the answer is not used


@dataclass(frozen=True)
class BoundedRange(Notion):
    """log dP/dQ lies in some interval of length R = `width`: δ(ε) = (e^{R/2} − e^{ε/2})²/(e^R − 1) up to ε = R, then 0.

    The interval contains 0, so that this is (R, 0)-DP and more: at ε = 0 it is tanh(R/4), where pure DP alone is tanh(R/2).
    Attained by two outcomes with losses at both ends (docs/proofs.md).
    """

    width: float
    adjacency: Adjacency = REPLACE_ONE

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "width")
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))

    @cached_property
    def _raised(self) -> float:
        """By far more than what a difference to an ε is rounded by; δ grows with the width."""
        return up(self.width)

    def _log_delta(self, epsilons: Floats) -> Floats:
        left = self._raised - epsilons
        logs = epsilons + 2 * log_expm1(np.maximum(left, _LEAST) / 2) - log_expm1(np.array(self._raised))
        return np.where(left > 0, np.minimum(logs + 1e-14 * (1 + np.abs(logs) + epsilons), 0.0), -np.inf)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        """e^{ε/2} = e^{width/2} − √(δ(e^width − 1))."""
        lost = np.exp(log_deltas / 2) * math.sqrt(-math.expm1(-self._raised)) * (1 - 1e-12)
        return np.maximum(up(self._raised + 2 * np.log1p(-lost)), 0.0)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """With the ε beyond which δ is 0, if that is within the range of a table."""
        epsilons, deltas = super()._table
        if self._raised > LARGEST_TABLED:
            return epsilons, deltas
        return np.append(epsilons, self._raised), np.append(deltas, 0.0)
