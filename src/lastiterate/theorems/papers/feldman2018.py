"""Feldman, Mironov, Talwar and Thakurta 2018: amplification by iteration, over one pass, in Rényi DP."""

from __future__ import annotations

import numpy as np

from lastiterate.curves.renyi import RenyiDP
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import ANY_MAP, ANY_NEIGHBOURS, FIXED_ORDER, IN_ORDER, NONEXPANSIVE, ONE_PASS
from lastiterate.theorems.theorem import Theorem


def rho_of_each(process: Process) -> Floats:
    """ρ = (s/ν)²/(2(r + 1)) for a record that r steps follow: those of every batch of the pass, in order."""
    return up(process.step_mu**2 / 2 / np.arange(len(process), 0, -1.0))


def _worst(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), one pass in a fixed order.
    Bound: ρ = (s/ν)²/2: the last record, which nothing follows.
        A record that r steps follow has (s/ν)²/(2(r + 1)).
    Assumes: L ≤ 1, identical steps; only the last iterate is released.
    Attained by: the last batch of a pass, to 5 %.
    Reference: Feldman et al. 2018, Theorem 23.
    """
    return Evidence(RenyiDP(rho=up(process.step_mu**2 / 2)))


ONE_PASS_CONVEX = Theorem(
    "feldman2018/one-pass",
    "Feldman et al. 2018, Theorem 23",
    "convex, one pass; better for records that come early",
    {FIXED_ORDER} | IN_ORDER | ANY_MAP | ANY_NEIGHBOURS,
    (ONE_PASS, NONEXPANSIVE),
    _worst,
)
