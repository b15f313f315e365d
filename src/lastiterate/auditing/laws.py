"""Two laws on the same cells, and how far apart they are: never more than they truly are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lastiterate.numerics.arrays import Floats

_LARGEST = 700.0
_ENOUGH = 60


def worse_order(one: Floats, two: Floats, epsilons: Floats, rounding: float = 0.0) -> Floats:
    """δ(ε) between two laws, in the worse order; every cell may be wrong by `rounding`, and counts for that much less."""
    factors = np.exp(epsilons)[:, None]
    doubt = (1 + factors) * rounding
    forwards = np.maximum(one - factors * two - doubt, 0.0).sum(axis=1)
    return np.maximum(forwards, np.maximum(two - factors * one - doubt, 0.0).sum(axis=1))


def largest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """An ε with δ(ε) above `delta`, nearly the largest one; 0 if there is none."""
    if not delta_at(0.0) > delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        if high > _LARGEST:
            return high
        low, high = high, 2 * high
    for _ in range(_ENOUGH):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
        if high - low < 1e-12 * high:
            break
    return low
