"""One of several states, with exactly the probabilities that are given: as many random bits as it takes to know which."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source

# Sums of n shares are off by n·2⁻⁵², so that this is enough up to 4096 states; more only costs exact draws.
_DOUBT = 2.0**-40
_CHUNK = 1 << 20  # numbers that are looked at together: some 8 MB; fewer are a slower loop, more are memory


def states_drawn(matrix: Floats, given: NDArray[np.intp], source: Source) -> NDArray[np.intp]:
    """For each given state, the next one, by the row of the matrix that belongs to it; rows are divided by their sums."""
    totals = np.cumsum(matrix, axis=1)
    shares, flat = totals / totals[:, -1:], given.ravel()
    many = max(1, _CHUNK // matrix.shape[1])
    parts = [_part(matrix, shares, flat[first : first + many], source) for first in range(0, len(flat), many)]
    return np.concatenate([np.zeros(0, np.intp), *parts]).reshape(given.shape)


def _part(matrix: Floats, shares: Floats, given: NDArray[np.intp], source: Source) -> NDArray[np.intp]:
    bits = source.bits(len(given))
    points = (bits * 2.0**-64)[:, None]
    reached = (shares[given] <= points).sum(axis=1)
    for place in np.flatnonzero((np.abs(shares[given] - points) <= _DOUBT).any(axis=1)):
        reached[place] = _exactly(matrix[given[place]], int(bits[place]), source)
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
