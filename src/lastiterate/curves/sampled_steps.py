"""One Gaussian mechanism on a random batch: its ratio and its own profile."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lastiterate.curves.adjacency import Sampling
from lastiterate.errors import POSITIVE_MU, RATE, check_fields, checked_choice
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.discretise import MixedRatio, Ratio
from lastiterate.numerics.mixture_ratio import MIXTURE_OVER_MIRROR, Shape
from lastiterate.numerics.normal_gap import log_gap_above, log_gap_below
from lastiterate.numerics.rounding import down, up

# The range in which integrals are certified and tested. Above μ = 50 a record in the batch makes ε about μ²/2 > 1000;
# with smaller mu, raised to 1e-6, even the most steps come to μ = 0.1 without sampling.
_SMALLEST_MU, LARGEST_MU, _SMALLEST_INCLUSION = 1e-6, 50.0, 1e-9


@dataclass(frozen=True)
class SampledStep:
    """One Gaussian mechanism: the sum over the batch has sensitivity mu times its noise."""

    mu: float
    inclusion: float
    sampling: Sampling
    mixed: ClassVar[bool] = False  # whether the sensitivity is drawn at random

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE_MU, "mu")
        check_fields(self, RATE, "inclusion")
        object.__setattr__(self, "sampling", checked_choice("sampling", self.sampling, Sampling))

    def clamped(self) -> SampledStep:
        """A step that is no more private, within the range in which integrals are certified.

        Sampling is not credited above mu = 50; smaller mu and inclusion than certified are raised.
        """
        if self.mu > LARGEST_MU:
            return replace(self, inclusion=1.0)
        return replace(self, mu=max(self.mu, _SMALLEST_MU), inclusion=max(self.inclusion, _SMALLEST_INCLUSION))

    def ratio(self, shape: Shape) -> Ratio | MixedRatio:
        """Return log dP/dQ of the pair that dominates it."""
        return self.plain_ratio(shape)

    def plain_ratio(self, shape: Shape) -> Ratio:
        """Return log dP/dQ of a step whose sensitivity is mu."""
        return Ratio(shape, self.mu / 2 if shape is MIXTURE_OVER_MIRROR else self.mu, self.inclusion)

    def log_delta_above(self, epsilons: Floats) -> Floats:
        """Return log q·θ_{ε'}(μ) with e^{ε'} = 1 + (e^ε − 1)/q, rounded up: for ε ≥ 0 the worse order of the pair."""
        # A threshold that is rounded down gives a gap that is rounded up.
        inner = down(self._inner_epsilon(epsilons), operations=5)
        return math.log(self.inclusion) + log_gap_above(inner, self.mu) + 1e-15

    def log_delta_below(self, epsilons: Floats) -> Floats:
        """Return log δ(ε) of the worse order, rounded down."""
        inner = up(self._inner_epsilon(epsilons), operations=5)
        return math.log(self.inclusion) + log_gap_below(inner, self.mu) - 1e-15

    def _inner_epsilon(self, epsilons: Floats) -> Floats:
        moderate = np.log1p(np.expm1(np.minimum(epsilons, 300.0)) / self.inclusion)
        return np.where(epsilons < 300, moderate, epsilons - math.log(self.inclusion))
