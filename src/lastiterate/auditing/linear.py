"""x ← c·x + V·push + noise on the line, V = 1 where the batch has the record: laws by characteristic functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from lastiterate.auditing.chain import worse_order
from lastiterate.numerics.arrays import Floats

_POINTS = 2048
_SPREADS = 14.0
_NEGLIGIBLE = 1e-12
_CHUNK = 2000


@dataclass(frozen=True)
class LinearChain:
    """The record pushes by `record`, its neighbour by `neighbour`; noise of standard deviation 1 at every step, from 0."""

    factor: float
    rate: float
    record: float
    neighbour: float
    steps: int

    def epsilon(self, delta: float) -> float:
        """The ε at which δ(ε) comes down to this."""

        def excess(epsilon: float) -> float:
            return float(worse_order(*self.laws, np.array([epsilon]))[0]) - delta

        return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, 500.0))

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """Both laws on one even grid that is wide enough for either."""
        decay = self.factor ** np.arange(min(self.steps, self._memory))
        variance = float(np.square(self.factor ** np.arange(min(self.steps, 2 * self._memory))).sum())
        pushes = (self.record * decay, self.neighbour * decay)
        means = [self.rate * float(push.sum()) for push in pushes]
        spread = math.sqrt(variance + self.rate * max(float(np.square(push).sum()) for push in pushes))
        width = 2 * _SPREADS * spread + abs(means[0] - means[1]) + 2 * max(abs(self.record), abs(self.neighbour))
        low = sum(means) / 2 - width / 2
        one, two = (self._law(push, variance, low, width) for push in pushes)
        return one, two

    @property
    def _memory(self) -> int:
        """Pushes that are older than this have all but vanished."""
        return self.steps if self.factor == 1 else math.ceil(math.log(_NEGLIGIBLE) / math.log(self.factor))

    def _law(self, pushes: Floats, variance: float, low: float, width: float) -> Floats:
        frequencies = 2 * math.pi * np.arange(_POINTS // 2 + 1) / width
        logs = -0.5 * variance * frequencies**2 - 1j * frequencies * low
        heard = -0.5 * variance * frequencies**2 > -60.0
        for first in range(0, len(pushes), _CHUNK):
            turns = np.exp(1j * np.outer(frequencies[heard], pushes[first : first + _CHUNK]))
            logs[heard] += np.log1p(self.rate * (turns - 1)).sum(axis=1)
        values = np.where(heard, np.exp(np.where(heard, logs, 0.0)), 0.0)
        return np.maximum(np.fft.irfft(values, _POINTS), 0.0)
