"""δ(ε) of N(0, 1) against N(μ, 1), rounded up: Q(a) − e^ε·Q(b), a = ε/μ − μ/2, b = ε/μ + μ/2, Q the normal upper tail.

With Mills' ratio m = Q/φ this is φ(a)·(m(a) − m(b)), because e^ε·φ(b) = φ(a). It is largest at ε = 0: below μ/√(2π).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx

from .steps import Floats

_ULP = 2.0**-52
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_MILLS = 8 * _ULP  # erfcx, its argument, and the product, together; erfcx itself is good to two ulps


def log_delta(epsilon: float | Floats, mus: Floats) -> Floats:
    """log δ(ε) for each μ > 0, rounded up. For tiny μ the difference is known to few digits, and the bound is larger."""
    with np.errstate(all="ignore"):
        middle = epsilon / mus
        near, far = middle - mus / 2, middle + mus / 2
        gap = _mills(near) * (1 + _MILLS) - _mills(far) * (1 - _MILLS)
        # One ulp of ε/μ may move a by b ulps: a²/2 by |a| times as much, and where a is near 0, the tail by as much.
        error = _ULP * (16 + far * (4 + 4 * np.abs(near) + _ULP * far))
        logs = np.log(gap) - np.square(near) / 2 - _LOG_SQRT_2PI + error
        at_most = np.minimum(np.log(mus) - _LOG_SQRT_2PI + _ULP * (4 + 2 * np.abs(np.log(mus))), 0.0)
    return np.fmin(logs, at_most)  # where a² overflows, or an infinity meets another, the simple bound remains


def log_average(epsilon: float, mus: Floats, weights: Floats) -> float:
    """log Σ weight·δ(ε), no weight 0, rounded up: μ is drawn, and not from the data, and so it is for a mixture."""
    logs = log_delta(epsilon, mus) + np.log(weights)
    top = float(logs.max())
    total = float(np.exp(logs - top).sum())
    return min(top + math.log(total) + _ULP * (len(mus) + 8 + 2 * abs(top)), 0.0)


def _mills(t: Floats) -> Floats:
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2.0)))
