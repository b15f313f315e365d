"""The runs of Bok et al. 2024, §D.3, from their symbols: c, L/(nσ) or L/n, η, σ, D."""

from __future__ import annotations

from lastiterate.runs.batches import Batches, Cyclic, FixedSize, FullBatch
from lastiterate.runs.domains import ConvexSet
from lastiterate.runs.losses import general
from lastiterate.runs.noise import OnIterate, OnMeanGradient
from lastiterate.runs.run import Run

_MEMBERS = 10  # of a batch; nothing depends on it


def contracting(batches: Batches, factor: float, effective: float, steps: int) -> Run:
    """Strongly convex with contraction c = `factor`; `effective` is L/(nσ) or L/(bσ)."""
    loss = general(smoothness=1.0, strong_convexity=1 - factor, gradient_sensitivity=effective * batches.divisor)
    return Run(loss, batches, 1.0, OnIterate(1.0), steps)


def constrained(batches: Batches, push: float, step_size: float, noise: float, steps: int) -> Run:
    """Convex on a set of diameter 1; `push` is L/n or L/b, `noise` is σ."""
    loss = general(smoothness=1 / step_size, strong_convexity=0.0, gradient_sensitivity=push * batches.divisor)
    return Run(loss, batches, step_size, OnMeanGradient(noise), steps, ConvexSet(1.0))


def full() -> FullBatch:
    return FullBatch(_MEMBERS)


def cyclic(batches: int) -> Cyclic:
    return Cyclic(records=batches * _MEMBERS, batch_size=_MEMBERS)


def sampled(rate: float) -> FixedSize:
    return FixedSize(records=round(_MEMBERS / rate), batch_size=_MEMBERS)
