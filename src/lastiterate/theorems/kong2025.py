"""Kong and Ribero 2025: composite, clipped, weakly convex losses and cyclic batches, in Rényi DP, corrected.

In the paper: λ is the step size, 2λC/b the sensitivity, σ the noise, L_λ the Lipschitz constant, for which the exact one of
the clipped step stands here (errata E2.1, E2.2).
"""

from __future__ import annotations

import math

from lastiterate.algorithms.process import Process
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.renyi import RenyiDP
from lastiterate.theorems.assumptions import ALIKE, BOUNDED, FINITE_LIPSCHITZ, FIXED_ORDER, ONLY_THE_LAST
from lastiterate.theorems.theorem import Assumption, Theorem

_UP = 1 + 1e-12


def _bounded(process: Process) -> Notion:
    """ρ = min(L·D + s, D + drift)²/(2ν²), by the last step alone. (2.2)"""
    last = -1
    grown = float(process.lipschitz[last]) * process.diameter + float(process.sensitivity[last])
    reach = min(grown, process.diameter + float(process.drift[last]))
    return RenyiDP(rho=(reach / float(process.noise[last])) ** 2 / 2 * _UP)


def _unbounded(process: Process) -> Notion:
    """ρ = (s/ν)²/2·(1 + (E − 1)·θ_L(l)), E the turns of the record that the last step sees. (2.3)"""
    every = process.batches.per_epoch
    turns = -(-len(process) // every)
    return RenyiDP(rho=process.step_mu**2 / 2 * (1 + (turns - 1) * amplification(process.contraction, every)) * _UP)


def amplification(lipschitz: float, steps: int) -> float:
    """θ_L(r) = L^{2(r−1)}/Σ_{j<r} L^{2j} = 1/Σ_{j<r} L^{−2j}: what is left of a squared shift after r noisy steps."""
    if lipschitz == 1 or steps == 1:
        return 1 / steps
    if lipschitz == 0:
        return 0.0
    log_square = 2 * math.log1p(lipschitz - 1)  # the difference is exact near 1
    if log_square > 0:
        return math.expm1(-log_square) / math.expm1(-log_square * steps)
    # L < 1: Σ_{j<r} e^{−j·log L²} grows; multiplied by e^{(r−1)·log L²} it does not.
    return math.exp((steps - 1) * log_square) * math.expm1(log_square) / math.expm1(steps * log_square)


def _some_bound(process: Process) -> str | None:
    if math.isfinite(float(process.lipschitz[-1])) or math.isfinite(float(process.drift[-1])):
        return None
    return "it needs a known smoothness or a clip, but both lipschitz and drift are inf"


BOUNDED_DOMAIN = Theorem(
    "kong2025/bounded-domain",
    "Kong and Ribero 2025, Theorem 2.2, corrected",
    "any clipped or smooth loss, bounded domain",
    (BOUNDED, Assumption("smoothness or a clip is known", _some_bound), ONLY_THE_LAST),
    _bounded,
    "E2.1: printed with a Lipschitz constant that is not proved when gradients are clipped",
)
UNBOUNDED_DOMAIN = Theorem(
    "kong2025/cyclic",
    "Kong and Ribero 2025, Theorem 2.3, corrected",
    "any smooth loss, cyclic batches, worst record",
    (FIXED_ORDER, ALIKE, FINITE_LIPSCHITZ, ONLY_THE_LAST),
    _unbounded,
    "E2.5: printed with 4 for 2, and with one epoch too many",
)
