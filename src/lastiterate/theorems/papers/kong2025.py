"""Kong and Ribero 2025: composite, clipped, weakly convex losses and cyclic batches, corrected, and in f-DP.

In the paper: λ is the step size, 2λC/b the sensitivity, σ the noise, L_λ the Lipschitz constant, for which the exact one of
the clipped step stands here (errata E2.1, E2.2).
"""

from __future__ import annotations

import math

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.facts import Fact, fact
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.shift.distance_bounds import amplification
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import (
    ANY_BATCHES,
    ANY_MAP,
    ANY_NEIGHBOURS,
    BOUNDED,
    CHANGING_STEPS,
    FINITE_LIPSCHITZ,
    FIXED_ORDER,
    IN_ORDER,
    RANDOM_SIZES,
    Assumption,
)
from lastiterate.theorems.theorem import Theorem


def _bounded(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), any batches.
    Bound: μ = min(L·D + s, D + drift)/ν, by the last step alone.
    Assumes: a bounded domain, and a clip or a known smoothness; only the last iterate is released.
    Attained by: runs at opposite ends of an interval, to 3 %.
    Reference: Kong and Ribero 2025, Theorem 2.2, corrected.
    """
    last = -1
    grown = float(process.lipschitz[last]) * process.diameter + float(process.sensitivity[last])
    reach = min(grown, float(process.retain[last]) * process.diameter + float(process.drift[last]))
    return Evidence(GaussianDP(up(reach / float(process.noise[last]))))


def _unbounded(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), passes in a fixed order.
    Bound: μ² = (s/ν)²·(1 + (E − 1)·θ_L(l)), E the number of uses of the record in the last step.
    Assumes: a known Lipschitz constant, identical steps; only the last iterate is released.
    Attained by: one step that sees the record, to 1 %.
    Reference: Kong and Ribero 2025, Theorem 2.3, corrected.
    """
    per_epoch = process.batches.per_epoch
    turns = -(-len(process) // per_epoch)
    left = amplification(process.contraction, per_epoch)
    return Evidence(GaussianDP(up(process.step_mu * math.sqrt(1 + (turns - 1) * left))))


def _some_bound(process: Process) -> Fact | None:
    if math.isfinite(float(process.lipschitz[-1])) or math.isfinite(float(process.drift[-1])):
        return None
    return fact("neither_clipped_nor_smooth")


BOUNDED_DOMAIN = Theorem(
    "kong2025/bounded-domain",
    "Kong and Ribero 2025, Theorem 2.2, corrected",
    "any clipped or smooth loss, bounded domain",
    {RANDOM_SIZES, CHANGING_STEPS} | ANY_BATCHES | IN_ORDER | ANY_MAP | ANY_NEIGHBOURS,
    (BOUNDED, Assumption("smooth_or_clipped", _some_bound)),
    _bounded,
    "E2.1: printed with a Lipschitz constant that is not proved when gradients are clipped",
)
UNBOUNDED_DOMAIN = Theorem(
    "kong2025/cyclic",
    "Kong and Ribero 2025, Theorem 2.3, corrected",
    "any smooth loss, cyclic batches, worst record",
    {FIXED_ORDER} | IN_ORDER | ANY_MAP | ANY_NEIGHBOURS,
    (FINITE_LIPSCHITZ,),
    _unbounded,
    "E2.5: printed with 4 for 2, and with one epoch too many",
)
