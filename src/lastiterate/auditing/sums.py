"""Sums of random pushes and Gaussian noise: the law of an iterate whose steps are linear, by characteristic functions.

Laws are probabilities of cells, not densities: to be told only the cell is post-processing, so what is computed from them
is a lower bound whatever the width of the cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len

from lastiterate.auditing.grid_steps import largest_epsilon, worse_order
from lastiterate.numerics.arrays import Floats

_PER_DEVIATION = 40  # cells
_MOST_CELLS = 2**18
_UNHEARD = 60.0  # beyond, a frequency is below e^−60
_LEFT_OUT = 45.0  # of the tails, e^−45
_CHUNK = 200_000
_ULPS = 2e-15


@dataclass(frozen=True, eq=False)
class RandomSum:
    """`times` copies of Σ_g v_g, and N(0, deviation²): v_g is one of values[g], each with its probability, or else 0.

    `left_out`: how likely it is that the sum is another one.
    """

    values: Floats
    probabilities: Floats
    deviation: float
    times: int = 1
    left_out: float = 0.0

    def log_moment(self, tilt: float) -> float:
        """Logarithm of E e^{tilt·sum}."""
        exponents = tilt * self.values
        at_zero = np.maximum(1 - self.probabilities.sum(axis=1), 0.0)
        largest = exponents.max(axis=1)
        largest = np.where(at_zero > 0, np.maximum(largest, 0.0), largest)
        zero = at_zero * np.exp(np.minimum(-largest, 0.0))
        rows = largest + np.log(zero + (np.exp(exponents - largest[:, None]) * self.probabilities).sum(axis=1))
        return self.times * float(np.sum(rows)) + (tilt * self.deviation) ** 2 / 2

    def beyond(self, sign: float) -> float:
        """Chernoff bound on the sum in this direction, exceeded with probability at most e^−45."""
        tilts = np.geomspace(0.01, 30.0, 20) / self.deviation
        return min((self.log_moment(sign * tilt) + _LEFT_OUT) / tilt for tilt in tilts.tolist())

    def log_character(self, frequencies: Floats) -> tuple[Floats, Floats]:
        """log E e^{i·frequency·sum}: its real and its imaginary part, each term to a few ulps of itself."""
        real, imaginary = np.zeros(len(frequencies)), np.zeros(len(frequencies))
        rows = max(1, _CHUNK // (len(frequencies) * self.values.shape[1]))
        for first in range(0, len(self.values), rows):
            part = slice(first, first + rows)
            turns = frequencies[:, None, None] * self.values[part]
            aside = (np.sin(turns) * self.probabilities[part]).sum(axis=2)
            back = (-2 * np.square(np.sin(turns / 2)) * self.probabilities[part]).sum(axis=2)
            real += 0.5 * np.log1p(2 * back + back**2 + aside**2).sum(axis=1)
            imaginary += np.arctan2(aside, 1 + back).sum(axis=1)
        return self.times * real - (frequencies * self.deviation) ** 2 / 2, self.times * imaginary


@dataclass(frozen=True, eq=False)
class Pushed:
    """Two laws to compare: record·S + noise and neighbour·S + noise, where S is the random sum."""

    pushes: RandomSum
    record: float
    neighbour: float

    def epsilon(self, delta: float) -> float:
        """An ε with δ(ε) above this; 0 if the sums spread too far to be put into cells."""
        if self._cells > _MOST_CELLS:
            return 0.0
        one, two, rounding = self.laws

        def least(epsilon: float) -> float:
            lost = (1 + math.exp(epsilon)) * self.pushes.left_out
            return float(worse_order(one, two, np.array([epsilon]), rounding)[0]) - lost

        return largest_epsilon(least, delta)

    @cached_property
    def laws(self) -> tuple[Floats, Floats, float]:
        """The probabilities of cells that hold both laws but for e^−44, and how far one of them may be off."""
        low, high = self._ends
        cells = next_fast_len(self._cells, real=True)
        found = [_cell_probabilities(one, low, high, cells) for one in self._sums]
        return found[0][0], found[1][0], max(found[0][1], found[1][1])

    @cached_property
    def _sums(self) -> list[RandomSum]:
        return [self._scaled(self.record), self._scaled(self.neighbour)]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return -max(one.beyond(-1.0) for one in self._sums), max(one.beyond(1.0) for one in self._sums)

    @property
    def _cells(self) -> int:
        """Number of cells, narrow beside the deviation so that no relevant frequency is left out."""
        low, high = self._ends
        return math.ceil((high - low) / self.pushes.deviation * _PER_DEVIATION)

    def _scaled(self, factor: float) -> RandomSum:
        given = self.pushes
        if factor == 0:
            return RandomSum(np.zeros((1, 1)), np.zeros((1, 1)), given.deviation)
        return RandomSum(factor * given.values, given.probabilities, given.deviation, given.times)


def _cell_probabilities(one: RandomSum, low: float, high: float, cells: int) -> tuple[Floats, float]:
    """Probability of each cell, and a bound on its error from the logarithms and the transform."""
    width = high - low
    frequencies = 2 * math.pi * np.arange(cells // 2 + 1) / width
    heard = (frequencies * one.deviation) ** 2 / 2 < _UNHEARD
    middle = low + width / cells / 2
    real, imaginary = one.log_character(frequencies[heard])
    sizes = np.exp(real) * np.sinc(frequencies[heard] * width / cells / (2 * math.pi))
    phases = imaginary - frequencies[heard] * middle
    found = np.zeros(len(frequencies), complex)
    found[heard] = sizes * np.exp(-1j * phases)
    off = _ULPS * (1 + np.abs(real) + np.abs(imaginary) + np.abs(frequencies[heard] * middle) + math.log2(cells))
    return np.maximum(irfft(found, cells), 0.0), 2 * float(sizes @ off) / cells
