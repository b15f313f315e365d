"""The divisors of a whole number."""

from __future__ import annotations

import math

import numpy as np


def divisors(number: int) -> tuple[int, ...]:
    """All of them, in order."""
    small = np.arange(1, math.isqrt(number) + 1)
    found = small[number % small == 0]
    return tuple(int(one) for one in np.union1d(found, number // found))
