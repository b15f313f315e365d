"""One Gaussian mechanism on a random batch, with a sensitivity that is drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lastiterate.curves.adjacency import FIXED_SIZE, REPLACE_ONE, Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.sampled_steps import LARGEST_MU, SampledStep
from lastiterate.curves.subsampled import SubsampledGaussians, subsampled_gaussian
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.discretise import MixedRatio
from lastiterate.numerics.mixture_ratio import Shape
from lastiterate.numerics.rounding import up

_SMALLEST_LOG = -1e300  # stands for −∞, which minus itself would be NaN


@dataclass(frozen=True)
class MixedStep(SampledStep):
    """The sensitivity is drawn, and not from the data: (share of mu, probability), decreasing.

    The first share is 1. It may be known which was drawn (docs/proofs.md, "Means over the actual size").
    """

    levels: tuple[tuple[float, float], ...]
    mixed: ClassVar[bool] = True

    @property
    def drawn(self) -> list[tuple[SampledStep, float]]:
        """Each step that may be drawn, with its probability."""
        steps = ((SampledStep(up(share * self.mu), self.inclusion, self.sampling), one) for share, one in self.levels)
        return [(step.clamped(), one) for step, one in steps]

    def ratio(self, shape: Shape) -> MixedRatio:
        """That of each, and it is known which."""
        steps, shares = zip(*self.drawn, strict=True)
        return MixedRatio(tuple(one.plain_ratio(shape) for one in steps), shares)

    def log_delta_above(self, epsilons: Floats) -> Floats:
        """The mean over what is drawn, rounded up."""
        total, doubt = self._mean(lambda one: one.log_delta_above(epsilons))
        return np.minimum(total + doubt, 0.0)

    def log_delta_below(self, epsilons: Floats) -> Floats:
        """The same, rounded down."""
        total, doubt = self._mean(lambda one: one.log_delta_below(epsilons))
        return total - doubt

    def _mean(self, log_delta: Callable[[SampledStep], Floats]) -> tuple[Floats, Floats]:
        """log Σ probability·δ, and what rounding may have moved it by."""
        logs = [log_delta(one) + math.log(share) for one, share in self.drawn]
        total = np.maximum(np.logaddexp.reduce(logs, axis=0), _SMALLEST_LOG)
        return total, 1e-14 * (1 + np.abs(total))


def mixed_subsampled_gaussian(
    *, mu: float, inclusion: float, levels: tuple[tuple[float, float], ...], adjacency: Adjacency = REPLACE_ONE
) -> SubsampledGaussians | GaussianDP:
    """One Gaussian mechanism on a random batch whose sensitivity is share·mu with this probability, for each of `levels`."""
    if len(levels) == 1 or inclusion == 1 or mu > LARGEST_MU:
        return subsampled_gaussian(mu=mu, inclusion=inclusion, sampling=FIXED_SIZE, adjacency=adjacency)
    return SubsampledGaussians(((MixedStep(mu, inclusion, FIXED_SIZE, levels), 1),), adjacency)
