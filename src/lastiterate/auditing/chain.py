"""One coordinate, exactly: both laws of a noisy chain on an interval, carried along on a grid.

Maps are evaluated at the middle of a cell, the noise moves mass by differences of the normal distribution, and projection
gathers what leaves the interval at its ends. So the laws are those of a chain whose maps are constant on cells: exact for
that chain, and a cell's width away from the chain that was meant. `delta_with_error` measures what that is worth, by
halving the cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from lastiterate.numerics.arrays import Floats

Map = Callable[[Floats], Floats]

_LARGEST = 500.0


@dataclass(frozen=True)
class Chain:
    """x ← Π(φ(x) + N(0, noise²)) on [−width/2, width/2], from 0.

    φ is `without` in a batch that has not the record, `record` or `neighbour` in one that has. `hazard[t]`: how likely the
    record is in batch t, if it was in none of its epoch; an epoch has `per_epoch` steps, 1 where batches are independent.
    """

    without: Map
    record: Map
    neighbour: Map
    noise: Floats
    hazard: Floats
    width: float
    per_epoch: int = 1
    cells: int = 200

    def delta(self, epsilons: Floats) -> Floats:
        """δ(ε) of the last iterate, in the worse of both orders."""
        return worse_order(*self.laws, epsilons)

    def epsilon(self, delta: float) -> float:
        """The ε at which δ(ε) comes down to this."""
        one, two = self.laws
        if float(worse_order(one, two, np.zeros(1))[0]) <= delta:
            return 0.0
        return float(brentq(lambda e: float(worse_order(one, two, np.array([e]))[0]) - delta, 0.0, _LARGEST))

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """Of the last iterate, on the grid, for the record and for its neighbour."""
        return self._law(self.record), self._law(self.neighbour)

    def delta_with_error(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """δ(ε) on cells half as wide, and how far that moved it."""
        finer = replace(self, cells=2 * self.cells).delta(epsilons)
        return finer, np.abs(finer - self.delta(epsilons))

    def _law(self, record: Map) -> Floats:
        middles = self._middles
        if self.per_epoch == 1 and np.ptp(self.noise) == 0 == np.ptp(self.hazard) and len(self.noise) > len(middles):
            return self._after_many(record)
        unseen, seen = np.zeros(len(middles)), np.zeros(len(middles))
        unseen[len(middles) // 2] = 1.0
        kernels: dict[float, tuple[Floats, Floats]] = {}
        for step, (noise, hazard) in enumerate(zip(self.noise.tolist(), self.hazard.tolist(), strict=True)):
            if step % self.per_epoch == 0:
                unseen, seen = unseen + seen, np.zeros_like(seen)
            if noise not in kernels:
                kernels[noise] = self._kernel(self.without, noise), self._kernel(record, noise)
            without, within = kernels[noise]
            unseen, seen = (1 - hazard) * unseen @ without, seen @ without + hazard * unseen @ within
        return unseen + seen

    def _after_many(self, record: Map) -> Floats:
        """All steps alike: a power of one kernel."""
        noise, hazard = float(self.noise[0]), float(self.hazard[0])
        kernel = (1 - hazard) * self._kernel(self.without, noise) + hazard * self._kernel(record, noise)
        return np.linalg.matrix_power(kernel, len(self.noise))[len(kernel) // 2]

    @property
    def _middles(self) -> Floats:
        """The ends of the interval, where projection puts mass, and the middles of the cells between them."""
        half = self.width / 2
        inner = (np.arange(self.cells) + 0.5) / self.cells * self.width - half
        return np.concatenate([[-half], inner, [half]])

    def _kernel(self, step: Map, noise: float) -> Floats:
        edges = np.linspace(-self.width / 2, self.width / 2, self.cells + 1)
        at = ndtr((edges - step(self._middles)[:, None]) / noise)
        return np.diff(at, axis=1, prepend=0.0, append=1.0)


def worse_order(one: Floats, two: Floats, epsilons: Floats) -> Floats:
    """δ(ε) between two laws on one grid, in the worse order."""
    factors = np.exp(epsilons)[:, None]
    forwards = np.maximum(one - factors * two, 0.0).sum(axis=1)
    return np.maximum(forwards, np.maximum(two - factors * one, 0.0).sum(axis=1))


def iid_hazard(rate: float, steps: int) -> Floats:
    """Batches that are drawn afresh at each step."""
    return np.full(steps, rate)


def shuffled_hazard(per_epoch: int, steps: int) -> Floats:
    """A new order each epoch: the record's place is uniform among those left."""
    return 1.0 / (per_epoch - np.arange(steps) % per_epoch)


def cyclic_hazard(per_epoch: int, place: int, steps: int) -> Floats:
    """The same place in every epoch."""
    return (np.arange(steps) % per_epoch == place).astype(float)
