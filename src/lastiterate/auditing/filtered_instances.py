"""Random runs with a linear optimiser on quadratic losses, each as a process for the theorems and as laws that are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lastiterate.algorithms.batches import Batches, Cyclic, FullBatch, Shuffled
from lastiterate.algorithms.optimizers import PLAIN, SGD, Optimizer
from lastiterate.algorithms.process import Process
from lastiterate.algorithms.released import EMA, LAST, Average, Released
from lastiterate.algorithms.updates import Update
from lastiterate.auditing.filtered import left_of_steps
from lastiterate.auditing.laws import worse_order
from lastiterate.auditing.linear_instances import orders
from lastiterate.auditing.sums import Pushed
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.gaussian import GaussianDP

_ROUNDED = 1 - 1e-9


@dataclass(frozen=True, eq=False)
class FilteredLaws:
    """Two laws of what is released: Gaussians, or mixtures of them over the places of a record."""

    values: Floats
    deviation: float
    batches: Batches
    place: int = 0

    def delta_with_error(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """δ(ε), and nothing: what is computed is a lower bound."""
        if self.batches.shuffled:
            return self._mixed(epsilons), np.zeros_like(epsilons)
        every = self.batches.per_epoch
        gap = abs(float(self.values[self.place % every :: every].sum()))
        mu = gap / self.deviation * _ROUNDED
        found = np.asarray(GaussianDP(mu).delta(epsilons)) if mu > 0 else np.zeros_like(epsilons)
        return found * _ROUNDED, np.zeros_like(epsilons)

    def _mixed(self, epsilons: Floats) -> Floats:
        one, two, rounding = Pushed(orders(self.values, self.batches, self.deviation), 0.5, -0.5).laws
        return worse_order(one, two, epsilons, rounding, 1e-9)


@dataclass(frozen=True)
class FilteredInstance:
    """What theorems see of a run, and its laws."""

    process: Process
    chain: FilteredLaws


def random_update(source: np.random.Generator) -> tuple[Optimizer, Released]:
    """Momentum of some kind, an average of some kind, or both."""
    momentum = float(source.choice([0.3, 0.7, 0.9, 0.97]))
    heavy = SGD(momentum=momentum)
    optimizers = (PLAIN, heavy, replace(heavy, nesterov=True), replace(heavy, dampening=0.5))
    released = (LAST, EMA(float(source.choice([0.5, 0.9, 0.98]))), Average(), Average(last=int(source.integers(2, 20))))
    chosen = int(source.integers(1, 16))
    return optimizers[chosen % 4], released[chosen // 4]


def filtered_process(
    batches: Batches, steps: int, push: float, noise: float, optimizer: Optimizer, released: Released, bend: object
) -> Process:
    """Such a run on losses whose curvature, times the step size, lies in `bend`: its middle, and half its width."""

    def alike(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), steps)

    far = alike(math.inf)
    update = Update(optimizer, released, bend)  # type: ignore[arg-type]
    given = Process(
        batches, alike(push), alike(noise), alike(1.0), far, alike(1.0), alike(push), math.inf, "of its map"
    )
    return replace(given, update=update)


def smooth_steps(steps: int, middle: float, half: float, movement: float, turning: float) -> Smooth:
    """Pushes that turn so fast, gradients that move the iterate so far; one dimension, no decay."""
    center, radius, way, nothing = (
        np.broadcast_to(np.float64(one), steps) for one in (1 - middle, half, movement, 0.0)
    )
    return Smooth(center, radius, way, nothing, nothing, turning, rank=1, start=0.0)


def random_filtered(source: np.random.Generator, most_steps: int = 120) -> FilteredInstance:
    """Full batches and passes of all kinds, any curvature within its range, also weakly convex ones and oscillating ones."""
    steps, push = int(source.integers(1, most_steps)), float(10 ** source.uniform(-1.5, 0.3))
    every = int(source.choice([1, 2, 3, 5, 8]))
    low, wide = float(source.choice([0.0, 0.0, 0.05, -0.01, 0.3])), float(10 ** source.uniform(-3, -0.3))
    kinds = (
        FullBatch(100),
        Cyclic(every * 10, 10),
        Cyclic(every * 10, 10),
        Shuffled(every * 10, 10),
        Shuffled(every * 10, 10, each_epoch=False),
    )
    batches, (optimizer, released) = kinds[int(source.integers(5))], random_update(source)
    process = filtered_process(batches, steps, push, 1.0, optimizer, released, (low + wide / 2, wide / 2))
    process = replace(process, smooth=smooth_steps(steps, low + wide / 2, wide / 2, 0.0, 0.0))
    curvature = float(source.choice([low, low + wide, low + wide * source.random()]))
    left = left_of_steps(optimizer, released, curvature, steps)
    laws = FilteredLaws(left * push, math.sqrt(float(np.square(left).sum())), batches, int(source.integers(every)))
    return FilteredInstance(process, laws)
