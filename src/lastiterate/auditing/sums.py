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

from lastiterate.auditing.laws import largest_epsilon, worse_order
from lastiterate.numerics.arrays import Floats

_PER_DEVIATION = 40  # cells
_MOST_CELLS = 2**18
_UNHEARD = 60.0  # beyond, a frequency is below e^−60
_LEFT_OUT = 45.0  # of the tails, e^−45
_CHUNK = 200_000
_ROUNDING = 2e-16  # of a cell


@dataclass(frozen=True, eq=False)
class RandomSum:
    """`times` copies of Σ_g v_g, and N(0, deviation²): v_g is one of values[g], each with its probability, or else 0."""

    values: Floats
    probabilities: Floats
    deviation: float
    times: int = 1

    def log_moment(self, tilt: float) -> float:
        """log E e^{tilt·sum}."""
        exponents = tilt * self.values
        largest = np.maximum(exponents.max(axis=1), 0.0)
        zero = np.maximum(1 - self.probabilities.sum(axis=1), 0.0) * np.exp(-largest)
        rows = largest + np.log(zero + (np.exp(exponents - largest[:, None]) * self.probabilities).sum(axis=1))
        return self.times * float(np.sum(rows)) + (tilt * self.deviation) ** 2 / 2

    def beyond(self, sign: float) -> float:
        """How far the sum gets in this direction, but for a probability of e^−45: Chernoff's bound."""
        tilts = np.geomspace(0.01, 30.0, 20) / self.deviation
        return min((self.log_moment(sign * tilt) + _LEFT_OUT) / tilt for tilt in tilts.tolist())

    def log_character(self, frequencies: Floats) -> np.ndarray:
        """log E e^{i·frequency·sum}."""
        logs = np.zeros(len(frequencies), complex)
        rows = max(1, _CHUNK // (len(frequencies) * self.values.shape[1]))
        for first in range(0, len(self.values), rows):
            part = slice(first, first + rows)
            turns = np.exp(1j * frequencies[:, None, None] * self.values[part]) - 1
            logs += np.log1p((turns * self.probabilities[part]).sum(axis=2)).sum(axis=1)
        return self.times * logs - (frequencies * self.deviation) ** 2 / 2


@dataclass(frozen=True, eq=False)
class Pushed:
    """One law is that of record·S + noise, the other that of neighbour·S + noise, S the sum."""

    pushes: RandomSum
    record: float
    neighbour: float

    def epsilon(self, delta: float) -> float:
        """An ε with δ(ε) above this."""
        return largest_epsilon(lambda epsilon: float(worse_order(*self.laws, np.array([epsilon]), _ROUNDING)[0]), delta)

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """The probabilities of cells that hold both laws but for e^−44."""
        sums = [self._scaled(self.record), self._scaled(self.neighbour)]
        low, high = -max(one.beyond(-1.0) for one in sums), max(one.beyond(1.0) for one in sums)
        deviation = self.pushes.deviation
        cells = next_fast_len(min(math.ceil((high - low) / deviation * _PER_DEVIATION), _MOST_CELLS), real=True)
        one, two = (_cell_probabilities(one, low, high, cells) for one in sums)
        return one, two

    def _scaled(self, factor: float) -> RandomSum:
        given = self.pushes
        if factor == 0:
            return RandomSum(np.zeros((1, 1)), np.zeros((1, 1)), given.deviation)
        return RandomSum(factor * given.values, given.probabilities, given.deviation, given.times)


def _cell_probabilities(one: RandomSum, low: float, high: float, cells: int) -> Floats:
    width = high - low
    frequencies = 2 * math.pi * np.arange(cells // 2 + 1) / width
    heard = (frequencies * one.deviation) ** 2 / 2 < _UNHEARD
    middle = low + width / cells / 2
    characters = np.exp(one.log_character(frequencies[heard]) - 1j * frequencies[heard] * middle)
    found = np.zeros(len(frequencies), complex)
    found[heard] = characters * np.sinc(frequencies[heard] * width / cells / (2 * math.pi))
    return np.maximum(irfft(np.conj(found), cells), 0.0)
