"""Boninsegna 2023, a survey: fixed batches, in Rényi DP, corrected."""

from __future__ import annotations

from lastiterate.curves.renyi import RenyiDP
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import ANY_MAP, ANY_NEIGHBOURS, FIXED_ORDER, NONEXPANSIVE, UNEVEN_BATCHES
from lastiterate.theorems.theorem import Theorem

_LEAST_SQUARE = 1e-300  # of a mu: smaller ones lose their digits, and at last they would be 0


def _fixed_batches(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), whole epochs in a fixed order.
    Bound: ρ = (s/ν)²/2·(1 + (E − 1)/l), for the last batch of an epoch, which is the worst.
        In the paper: Q batches, T epochs, and α·K/(2σ²Q²) for all, which leaves out that nothing follows the last batch.
    Assumes: L ≤ 1, identical steps; only the last iterate is released.
    Attained by: linear losses in one batch, to 5 %.
    Reference: Boninsegna 2023, section VI-A, corrected.
    """
    per_epoch = process.batches.per_epoch
    square = max(process.step_mu**2, _LEAST_SQUARE)
    return Evidence(RenyiDP(rho=up(square / 2 * (1 + (len(process) // per_epoch - 1) / per_epoch))))


FIXED_BATCHES = Theorem(
    "boninsegna2023/fixed-batches",
    "Boninsegna 2023, section VI-A, corrected",
    "convex, cyclic batches, worst record",
    {FIXED_ORDER, UNEVEN_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (NONEXPANSIVE,),
    _fixed_batches,
    "E1.1: as printed it is too small by up to the number of batches; E1.2",
)
