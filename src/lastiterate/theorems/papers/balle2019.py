"""Balle, Barthe, Gaboardi and Geumlek 2019: contracting steps after a record's only turn, in Rényi DP.

In the paper: ψ_i are L-Lipschitz maps, Δ the distance before the first of them, r their number.
"""

from __future__ import annotations

import numpy as np

from lastiterate.curves.renyi import RenyiDP
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import (
    ANY_MAP,
    ANY_NEIGHBOURS,
    CONTRACTING,
    FIXED_ORDER,
    IN_ORDER,
    NONEXPANSIVE,
    ONE_PASS,
)
from lastiterate.theorems.theorem import Theorem


def rho_of_each(process: Process) -> Floats:
    """ρ = (s/ν)²·L^{r+1}/(2r) for a record that r ≥ 1 steps follow, (s/ν)²/2 for the last: of every batch, in order."""
    after = np.arange(len(process) - 1, 0, -1.0)
    amplified = process.contraction ** (after + 1) / after
    return up(process.step_mu**2 / 2 * np.append(amplified, 1.0))


def _worst(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), one pass in a fixed order.
    Bound: ρ = (s/ν)²/2: the last record, which nothing follows.
        A record that r ≥ 1 steps follow has (s/ν)²·L^{r+1}/(2r), and L^{r+1}/r is at most 1.
    Assumes: L ≤ 1, or L < 1, identical steps; only the last iterate is released.
    Attained by: the last batch of a pass, to 5 %.
    Reference: Balle et al. 2019, Theorem 4 (3), and Theorem 5, corrected.
    """
    return Evidence(RenyiDP(rho=up(process.step_mu**2 / 2)))


ONE_PASS_CONVEX = Theorem(
    "balle2019/one-pass/convex",
    "Balle et al. 2019, Theorem 4 (3)",
    "convex, one pass; better for records that come early",
    {FIXED_ORDER} | IN_ORDER | ANY_MAP | ANY_NEIGHBOURS,
    (ONE_PASS, NONEXPANSIVE),
    _worst,
    "E3.4: the split of the distance is not the best one; the shift engine has it",
)
ONE_PASS_STRONGLY_CONVEX = Theorem(
    "balle2019/one-pass/strongly-convex",
    "Balle et al. 2019, Theorem 5",
    "strongly convex, one pass; far better for records that come early",
    {FIXED_ORDER} | IN_ORDER | ANY_MAP | ANY_NEIGHBOURS,
    (ONE_PASS, CONTRACTING),
    _worst,
    "E3.1: ε_i has to be multiplied by the order; E3.6: with the exact Lipschitz constant",
)
