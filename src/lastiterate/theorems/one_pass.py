"""Amplification by iteration over one pass: Feldman2018 and Balle2019, per index, in Rényi DP.

Record i of a pass is followed by r steps that do not see it. Feldman et al. 2018, Theorem 23: ρ = (s/ν)²/(2(r + 1)) for
nonexpansive steps. Balle et al. 2019, Theorem 4 (3): ρ = (s/ν)²·L^{r+1}/(2r) for r ≥ 1; Theorem 5 adds the last record.
"""

from __future__ import annotations

import numpy as np

from lastiterate.algorithms.batches import Cyclic
from lastiterate.algorithms.process import Process
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.renyi import RenyiDP
from lastiterate.theorems.assumptions import ALIKE, CONTRACTING, NONEXPANSIVE, ONE_PASS, ONLY_THE_LAST, batches
from lastiterate.theorems.theorem import Theorem

_CYCLIC = batches("batches in a fixed order", Cyclic)
_UP = 1 + 1e-12


def feldman_each(process: Process) -> Floats:
    """ρ of every batch of the pass, in order."""
    return _step_rho(process) / np.arange(len(process), 0, -1.0) * _UP


def balle_each(process: Process) -> Floats:
    """ρ of every batch of the pass, in order."""
    after = np.arange(len(process) - 1, 0, -1.0)
    amplified = process.contraction ** (after + 1) / after
    return _step_rho(process) * np.append(amplified, 1.0) * _UP


def _step_rho(process: Process) -> float:
    return (float(process.sensitivity[0]) / float(process.noise[0])) ** 2 / 2


def _worst_by_feldman(process: Process) -> Notion:
    return RenyiDP(rho=float(feldman_each(process).max()))


def _worst_by_balle(process: Process) -> Notion:
    return RenyiDP(rho=float(balle_each(process).max()))


FELDMAN = Theorem(
    "feldman2018/one-pass",
    "Feldman et al. 2018, Theorem 23",
    "convex, one pass; better for records that come early",
    (_CYCLIC, ONE_PASS, ALIKE, NONEXPANSIVE, ONLY_THE_LAST),
    _worst_by_feldman,
)
BALLE_NONEXPANSIVE = Theorem(
    "balle2019/one-pass/convex",
    "Balle et al. 2019, Theorem 4 (3)",
    "convex, one pass; better for records that come early",
    (_CYCLIC, ONE_PASS, ALIKE, NONEXPANSIVE, ONLY_THE_LAST),
    _worst_by_balle,
    "E3.4: the split of the distance is not the best one; the shift engine has it",
)
BALLE_CONTRACTING = Theorem(
    "balle2019/one-pass/strongly-convex",
    "Balle et al. 2019, Theorem 5",
    "strongly convex, one pass; far better for records that come early",
    (_CYCLIC, ONE_PASS, ALIKE, CONTRACTING, ONLY_THE_LAST),
    _worst_by_balle,
    "E3.1: ε_i has to be multiplied by the order; E3.6: with the exact Lipschitz constant",
)
