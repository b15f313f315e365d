"""One of several states, with exactly the probabilities that are given: as many random bits as it takes to know which."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source

_DOUBT = 2.0**-40


def states_drawn(matrix: Floats, given: NDArray[np.int_], source: Source) -> NDArray[np.int_]:
    """For each given state, the next one, by the row of the matrix that belongs to it; rows are divided by their sums."""
    totals = np.cumsum(matrix, axis=1)
    shares = totals / totals[:, -1:]
    bits = source.bits(given.shape)
    points = bits * 2.0**-64
    reached = (shares[given] <= points[..., None]).sum(axis=-1)
    unsure = (np.abs(shares[given] - points[..., None]) <= _DOUBT).any(axis=-1)
    for place in np.argwhere(unsure):
        one = tuple(place)
        reached[one] = _exactly(matrix[given[one]], int(bits[one]), source)
    return np.asarray(reached)


def _exactly(row: Floats, bits: int, source: Source) -> int:
    """More bits until the interval that they leave lies within one state."""
    totals = list(accumulate(Fraction(float(entry)) for entry in row))
    drawn, width = Fraction(bits, 1 << 64), Fraction(1, 1 << 64)
    while True:
        reached = sum(total <= drawn * totals[-1] for total in totals)
        if (drawn + width) * totals[-1] <= totals[reached]:
            return reached
        width /= 1 << 64
        drawn += int(source.bits(1)[0]) * width
