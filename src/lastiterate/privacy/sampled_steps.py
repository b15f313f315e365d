"""One Gaussian mechanism on a random batch: its sensitivity fixed, or drawn at random; its ratio and its own profile."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lastiterate.errors import POSITIVE_MU, RATE, check_fields, checked_choice
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.discretise import MixedRatio, Ratio
from lastiterate.numerics.mixture_ratio import MIXTURE_OVER_MIRROR, Shape
from lastiterate.numerics.normal_gap import log_gap_above, log_gap_below
from lastiterate.numerics.rounding import down, up
from lastiterate.privacy.adjacency import Sampling

# The range in which integrals are certified and tested. Above μ = 50 a record in the batch makes ε about μ²/2 > 1000;
# with smaller mu, raised to 1e-6, even the most steps come to μ = 0.1 without sampling.
_SMALLEST_MU, LARGEST_MU, _SMALLEST_INCLUSION = 1e-6, 50.0, 1e-9
_SMALLEST_LOG = -1e300  # stands for −∞, which minus itself would be NaN


@dataclass(frozen=True)
class SampledStep:
    """One Gaussian mechanism: the sum over the batch has sensitivity mu times its noise."""

    mu: float
    inclusion: float
    sampling: Sampling

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE_MU, "mu")
        check_fields(self, RATE, "inclusion")
        checked_choice("sampling", self.sampling, Sampling)

    def clamped(self) -> SampledStep:
        """A step that is no more private, within the range in which integrals are certified.

        Sampling is not credited above mu = 50; smaller mu and inclusion than certified are raised.
        """
        if self.mu > LARGEST_MU:
            return replace(self, inclusion=1.0)
        return replace(self, mu=max(self.mu, _SMALLEST_MU), inclusion=max(self.inclusion, _SMALLEST_INCLUSION))


@dataclass(frozen=True)
class MixedStep(SampledStep):
    """The same with a sensitivity that is drawn at random, and not from the data: (share of mu, probability), decreasing.

    The first share is 1. It may be known which was drawn (docs/proofs.md, "Means over the actual size").
    """

    levels: tuple[tuple[float, float], ...]

    @property
    def drawn(self) -> list[tuple[SampledStep, float]]:
        """Each step that may be drawn, with its probability."""
        steps = ((SampledStep(up(share * self.mu), self.inclusion, self.sampling), one) for share, one in self.levels)
        return [(step.clamped(), one) for step, one in steps]


def ratio_of(step: SampledStep, shape: Shape) -> Ratio | MixedRatio:
    if isinstance(step, MixedStep):
        steps, shares = zip(*step.drawn, strict=True)
        return MixedRatio(tuple(_plain_ratio(one, shape) for one in steps), shares)
    return _plain_ratio(step, shape)


def _plain_ratio(step: SampledStep, shape: Shape) -> Ratio:
    return Ratio(shape, step.mu / 2 if shape is MIXTURE_OVER_MIRROR else step.mu, step.inclusion)


def log_delta_above(step: SampledStep, epsilons: Floats) -> Floats:
    """δ(ε) = q·θ_{ε'}(μ) with e^{ε'} = 1 + (e^ε − 1)/q, rounded up: for ε ≥ 0 this order of the pair is the worse one."""
    if isinstance(step, MixedStep):
        logs = [log_delta_above(one, epsilons) + math.log(share) for one, share in step.drawn]
        total = np.maximum(np.logaddexp.reduce(logs, axis=0), _SMALLEST_LOG)
        return np.minimum(total + 1e-14 * (1 + np.abs(total)), 0.0)
    # A threshold that is rounded down gives a gap that is rounded up.
    return math.log(step.inclusion) + log_gap_above(down(_inner_epsilon(step, epsilons), operations=5), step.mu) + 1e-15


def log_delta_below(step: SampledStep, epsilons: Floats) -> Floats:
    """The same, rounded down."""
    if isinstance(step, MixedStep):
        logs = [log_delta_below(one, epsilons) + math.log(share) for one, share in step.drawn]
        total = np.maximum(np.logaddexp.reduce(logs, axis=0), _SMALLEST_LOG)
        return total - 1e-14 * (1 + np.abs(total))
    return math.log(step.inclusion) + log_gap_below(up(_inner_epsilon(step, epsilons), operations=5), step.mu) - 1e-15


def _inner_epsilon(step: SampledStep, epsilons: Floats) -> Floats:
    moderate = np.log1p(np.expm1(np.minimum(epsilons, 300.0)) / step.inclusion)
    return np.where(epsilons < 300, moderate, epsilons - math.log(step.inclusion))
