"""Two laws on the same cells, and how far apart they are: never more than they truly are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lastiterate.numerics.arrays import Floats

LARGEST = 700.0
_ENOUGH = 60


def worse_order(one: Floats, two: Floats, epsilons: Floats, rounding: float = 0.0, relative: float = 0.0) -> Floats:
    """δ(ε) between two laws, in the worse order.

    Every cell may be off by `rounding`, and by a part of itself, `relative`: it counts for that much less.
    """
    factors = np.exp(np.minimum(epsilons, LARGEST))[:, None]
    doubt = (1 + factors) * rounding
    up, down = 1 + relative, 1 - relative
    forwards = np.maximum(down * one - up * factors * two - doubt, 0.0).sum(axis=1)
    return np.maximum(forwards, np.maximum(down * two - up * factors * one - doubt, 0.0).sum(axis=1))


def largest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """An ε with δ(ε) above `delta`, nearly the largest one; 0 if there is none."""
    if not delta_at(0.0) > delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        if high >= LARGEST:
            return LARGEST
        low, high = high, min(2 * high, LARGEST)
    for _ in range(_ENOUGH):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
        if high - low < 1e-12 * high:
            break
    return low
