"""Runs with momentum, and averages of iterates, on quadratic losses: Gaussians, whose distance is known exactly.

What is left at the end of a push at each step is found by taking the optimiser's own steps with a single push, and by the
weights of what is released. Nothing here uses the numbers that theorems see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lastiterate.auditing.allowed import (
    WorstCase,
    allowed_hessians,
    allowed_splits,
    counts_of,
    empty_is_as_others,
    greatest,
    losses_with,
)
from lastiterate.auditing.grid_steps import worse_order
from lastiterate.auditing.linear_instances import as_known, epsilon_of, pushing, sum_of_pushes
from lastiterate.auditing.quadratic import steps_of, weights_of
from lastiterate.auditing.sums import Pushed
from lastiterate.curves.adjacency import POISSON, REPLACE_ONE, Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.facts import own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import BallsAndBins, Batches, Cyclic, FixedSize, FullBatch, Poisson, Shuffled, Turns
from lastiterate.runs.optimizers import EMA, LAST, PLAIN, SGD, At, Average, Optimizer, Released
from lastiterate.runs.per_step import each, is_constant, once_if_equal
from lastiterate.runs.process import Process, Update
from lastiterate.runs.run import Run

_MOST_STEPS = 20_000  # each a few operations in Python, and averages take the square of them
_GRID = 5
_ROUNDED = 1 - 1e-9  # recursions of some thousand steps, which may oscillate


def filtered_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε for linear optimisers with equal steps and batches, no projection and no checkpoint."""
    hessians = allowed_hessians(run)
    if hessians is None or releases or not _exactly_known(run):
        return
    grid = np.linspace(*hessians, _GRID).tolist() if hessians[1] > hessians[0] else list(hessians[:1])
    if as_known(run.batches):
        mu, where = greatest(lambda hessian: filtered_mu(run, hessian), grid)
        yield epsilon_of(run, mu * _ROUNDED, delta), losses_with(run, where)
        return
    for hessian, (record, neighbour) in product(sorted({grid[0], grid[-1]}), allowed_splits(run)):
        values, deviation = _left(run, hessian)
        counts = counts_of(run.batches)
        if run.batches.own_mean and not empty_is_as_others(run, hessian, record):
            counts = counts.never_empty
        pushes = sum_of_pushes(run.batches, values, deviation, counts)
        if pushes is not None:
            epsilon = Pushed(pushes, record * _ROUNDED, neighbour * _ROUNDED).epsilon(delta)
            yield epsilon, losses_with(run, hessian, pushing=pushing(record, neighbour))


def _exactly_known(run: Run) -> bool:
    alike = (
        isinstance(run.step_size, float) and run.noise.constant and (run.clip is None or isinstance(run.clip, float))
    )
    free = math.isinf(run.domain.diameter) and run.prox is None and run.optimizer.linear is not None
    return alike and free and not run.batches.uneven and run.steps <= _MOST_STEPS


def filtered_mu(run: Run, hessian: float) -> float:
    """μ of what is released, for batches that are not random, and the place of a record where it is greatest."""
    values, deviation = _left(run, hessian)
    every = run.batches.per_epoch if run.batches.turns is Turns.FIXED_ORDER else 1
    return greatest_gap(values, every) / deviation


def greatest_gap(values: Floats, every: int) -> float:
    """Return how far one record, used every `every` steps, moves what is released, at most."""
    places = np.append(values, np.zeros(-len(values) % every)).reshape(-1, every)
    return float(np.abs(places.sum(axis=0)).max())


def _left(run: Run, hessian: float) -> tuple[Floats, float]:
    """Return the effect of each step's push on what is released, and the standard deviation of all noise there."""
    steps = steps_of(run, hessian)
    if not is_constant(steps.factor):
        raise ValueError("steps must be alike")
    left = left_of_steps(run.optimizer, run.released, 1 - float(steps.factor[0]), run.steps)
    return left * float(steps.push[0]), float(steps.noise[0]) * math.sqrt(float(np.square(left).sum()))


def left_of_steps(optimizer: Optimizer, released: Released, curvature: float, steps: int) -> Floats:
    """Effect on what is released of one unit added at each step; `curvature` is step size times Hessian."""
    zero: Floats = np.zeros(())
    x, memory, moved = zero, (zero,) * optimizer.slots, np.empty(steps)
    for step in range(steps):
        taken = np.asarray(-curvature * x + (1.0 if step == 0 else 0.0))
        x, memory = optimizer.moved(x, taken, memory, At(step))
        moved[step] = x
    weights = weights_of_iterates(released, steps)
    if released.plain:
        return moved[::-1]
    return np.convolve(weights[::-1], moved)[:steps][::-1]


def weights_of_iterates(released: Released, steps: int) -> Floats:
    """Weight of each iterate in what is released."""
    each = np.array([released.weight(step, steps) for step in range(steps)])
    kept = np.append(np.cumprod((1 - each)[:0:-1])[::-1], 1.0)
    return np.asarray(each * kept)


# Random runs on quadratic losses, each as a process and with its exact laws.
#
# With a linear optimiser, or with plain steps that differ, on batches of every kind.


@dataclass(frozen=True, eq=False)
class FilteredLaws:
    """Two laws of what is released: Gaussians, or mixtures of them over the batches that a record is in.

    In a fixed order they are about the record whose place is the worst.
    `split`: by how many times its push beyond others the record moves what is released, and its neighbour.
    """

    values: Floats
    deviation: float
    batches: Batches
    split: tuple[float, float] = (0.5, -0.5)

    def delta_with_error(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return a lower bound on δ(ε), and 0 as its error."""
        if not as_known(self.batches):
            return self._mixed(epsilons), np.zeros_like(epsilons)
        every = self.batches.per_epoch if self.batches.passes else 1
        mu = greatest_gap(self.values, every) / self.deviation * _ROUNDED
        found = np.asarray(GaussianDP(mu).delta(epsilons)) if mu > 0 else np.zeros_like(epsilons)
        return found * _ROUNDED, np.zeros_like(epsilons)

    def _mixed(self, epsilons: Floats) -> Floats:
        pushes = sum_of_pushes(self.batches, self.values, self.deviation, counts_of(self.batches))
        if pushes is None:
            return np.zeros_like(epsilons)
        one, two, rounding = Pushed(pushes, *self.split).laws
        return worse_order(one, two, epsilons, rounding, 1e-9)


@dataclass(frozen=True)
class FilteredInstance:
    """A run as theorems see it, and its exact laws."""

    process: Process
    chain: FilteredLaws


def random_update(source: np.random.Generator) -> tuple[Optimizer, Released]:
    """Draw an optimiser and a release: momentum, an average, or both."""
    momentum = float(source.choice([0.3, 0.7, 0.9, 0.97]))
    heavy = SGD(momentum=momentum)
    optimizers = (PLAIN, heavy, replace(heavy, nesterov=True), replace(heavy, dampening=0.5))
    released = (LAST, EMA(float(source.choice([0.5, 0.9, 0.98]))), Average(), Average(last=int(source.integers(2, 20))))
    chosen = int(source.integers(1, 16))
    return optimizers[chosen % 4], released[chosen // 4]


def filtered_process(
    batches: Batches, steps: int, push: float, noise: float, optimizer: Optimizer, released: Released, bend: object
) -> Process:
    """Process of a filtered run whose curvature times step size lies in `bend`: its middle, and half its width."""

    def alike(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), steps)

    far = alike(math.inf)
    update = Update(optimizer, released, bend)  # type: ignore[arg-type]
    given = Process(
        batches, alike(push), alike(noise), alike(1.0), far, alike(1.0), alike(push), math.inf, own("of its map")
    )
    return replace(given, update=update)


def smooth_steps(steps: int, middle: float, half: float, movement: float, turning: float) -> Smooth:
    """Facts on smooth steps in one dimension without decay, with this turning of pushes and movement by gradients."""
    center, radius, way, nothing = (
        np.broadcast_to(np.float64(one), steps) for one in (1 - middle, half, movement, 0.0)
    )
    return Smooth(center, radius, way, nothing, nothing, turning, rank=1, start=0.0)


def random_filtered(source: np.random.Generator, most_steps: int = 120) -> FilteredInstance:
    """Draw a filtered run: full batches or passes of any kind, curvature that may be negative or large."""
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
    laws = FilteredLaws(left * push, math.sqrt(float(np.square(left).sum())), batches)
    return FilteredInstance(process, laws)


def scheduled_instance(
    source: np.random.Generator, most_steps: int = 120, adjacency: Adjacency = REPLACE_ONE, bins: bool = False
) -> FilteredInstance:
    """Draw a run of plain steps with changing size, noise and clip, on any batches, or on balls and bins alone."""
    batches = _bins(source) if bins else _any_batches(source, adjacency)
    every, steps = batches.per_epoch, int(source.integers(1, min(most_steps, _MORE)))
    if batches.random:
        steps = min(steps, _FEW)
    elif source.random() < 0.5:
        steps = -(-steps // every) * every
    steps = min(steps, 2 * every) if bins else steps
    alike = source.random() < _ALIKE
    factor, noise, push = (_schedule(source, steps, every, alike, *ends) for ends in _RANGES)
    if not alike:
        factor = np.where(source.random(steps) < 0.2, 1.0, factor)
    factor, beside_others = factor * (1.04 if source.random() < 0.2 else 1.0), 1.0
    push = push * _OF_NOISE * noise.max()
    if batches.uneven and source.random() < 0.5:  # its sum is divided by its own size
        push = push * batches.pattern(1.0, batches.largest / batches.last_size, steps)
    splits = [(0.5, -0.5), (1.0, 0.0)] if batches.constant_size else [(0.5, -0.5)]
    if not adjacency.replaces:
        splits = [(1.0, 0.0)]
        if batches.sampling is not POISSON and batches.constant_size:
            splits, beside_others = [(1.0, 0.0), (2.0, 1.0), (0.0, -1.0)], 2.0
    factor, noise, push = (once_if_equal(one) for one in (factor, noise, push))
    center, nothing = each(np.minimum, factor, 1.0), np.broadcast_to(0.0, steps)
    radius = each(lambda one, middle: one - middle + _BESIDE, factor, center)
    process = Process(
        batches,
        sensitivity=push,
        noise=noise,
        lipschitz=factor,
        drift=np.broadcast_to(np.inf, steps),
        retain=np.broadcast_to(1.0, steps),
        sampled=each(np.multiply, beside_others, push),
        diameter=math.inf,
        reason=own("of its steps"),
        dimension=1,
        adjacency=adjacency,
        smooth=Smooth(center, radius, nothing, nothing, nothing, turning=0.0, rank=1, start=0.0),
    )
    weights = weights_of(factor)
    deviation = math.sqrt(float(np.square(weights * noise).sum()))
    chosen = splits[int(source.integers(len(splits)))]
    return FilteredInstance(process, FilteredLaws(weights * push, deviation, batches, chosen))


_RANGES = ((0.5, 1.0), (0.3, 3.0), (0.05, 1.0))  # of what a step keeps, of its noise, and of a push
_OF_NOISE, _ALIKE = 0.5, 0.15  # the largest push, about; how many runs have equal steps
_BESIDE = 1e-12  # of a factor: more than it is rounded by
_FEW, _MORE = 5, 40  # steps: on random batches each that differs is a law of its own, with bins each epoch


def _schedule(source: np.random.Generator, steps: int, every: int, alike: bool, least: float, most: float) -> Floats:
    """Draw one value for all steps, per place of an epoch, per epoch, per step, or a geometric decay."""
    match 0 if alike else int(source.integers(5)):
        case 0:
            return np.full(steps, source.uniform(least, most))
        case 1:
            return np.resize(source.uniform(least, most, every), steps)
        case 2:
            return np.repeat(source.uniform(least, most, -(-steps // every)), every)[:steps]
        case 3:
            return np.geomspace(most, least, steps)[:: int(source.choice([-1, 1]))]
    return source.uniform(least, most, steps)


def _bins(source: np.random.Generator) -> Batches:
    count = int(source.integers(1, 7))
    return BallsAndBins(records=10 * count, batches=count)


def _any_batches(source: np.random.Generator, adjacency: Adjacency) -> Batches:
    count, missing = int(source.integers(1, 7)), int(source.choice([0, 3, 7]))
    records, last = 10 * count - (missing if count > 1 else 0), "smaller"
    kinds: tuple[Batches, ...] = (
        FullBatch(100),
        Cyclic(records, 10, last),
        Shuffled(records, 10, True, last),
        Shuffled(records, 10, False, last),
        FixedSize(100, int(source.integers(5, 80))),
        Poisson(100, float(source.choice([0.02, 0.1, 0.3, 0.7]))),
    )
    found = kinds[int(source.integers(len(kinds)))]
    return found if adjacency in found.adjacencies else kinds[-1]
