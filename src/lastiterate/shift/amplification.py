"""What is left of one shift after some steps that are all alike."""

from __future__ import annotations

import math


def amplification(lipschitz: float, steps: int) -> float:
    """θ_L(r) = L^{2(r−1)}/Σ_{j<r} L^{2j} = 1/Σ_{j<r} L^{−2j}: what is left of a squared shift after r noisy steps."""
    if lipschitz == 1 or steps == 1:
        return 1 / steps
    if lipschitz == 0:
        return 0.0
    log_square = 2 * math.log(lipschitz)
    if log_square > 0:
        return math.expm1(-log_square) / math.expm1(-log_square * steps)
    # L < 1: Σ_{j<r} e^{−j·log L²} grows; multiplied by e^{(r−1)·log L²} it does not.
    return math.exp((steps - 1) * log_square) * math.expm1(log_square) / math.expm1(steps * log_square)
