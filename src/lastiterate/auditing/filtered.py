"""Runs with momentum, and averages of iterates, on quadratic losses: Gaussians, whose distance is known exactly.

What is left at the end of a push at each step is found by taking the optimiser's own steps with a single push, and by the
weights of what is released. Nothing here uses the numbers that theorems see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np

from lastiterate.auditing.allowed import allowed_hessians, allowed_splits, empty_is_as_others, losses_with
from lastiterate.auditing.counts import counts_of
from lastiterate.auditing.linear_instances import as_known, epsilon_of, pushing, sum_of_pushes
from lastiterate.auditing.quadratic import steps_of
from lastiterate.auditing.search import greatest
from lastiterate.auditing.sums import Pushed
from lastiterate.auditing.worst import WorstCase
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Turns
from lastiterate.runs.optimizers import At, Optimizer
from lastiterate.runs.per_step import is_constant
from lastiterate.runs.released import Released
from lastiterate.runs.run import Run

_MOST_STEPS = 20_000  # each a few operations in Python, and averages take the square of them
_GRID = 5
_ROUNDED = 1 - 1e-9  # recursions of some thousand steps, which may oscillate


def filtered_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """For linear optimisers with steps and batches alike, nothing projected, nothing else released."""
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
    """How far the pushes of a record may move what is released that has a turn every so many steps."""
    places = np.append(values, np.zeros(-len(values) % every)).reshape(-1, every)
    return float(np.abs(places.sum(axis=0)).max())


def _left(run: Run, hessian: float) -> tuple[Floats, float]:
    """What a push at each step leaves at the end, and the deviation of all noise there."""
    steps = steps_of(run, hessian)
    if not is_constant(steps.factor):
        raise ValueError("steps must be alike")
    left = left_of_steps(run.optimizer, run.released, 1 - float(steps.factor[0]), run.steps)
    return left * float(steps.push[0]), float(steps.noise[0]) * math.sqrt(float(np.square(left).sum()))


def left_of_steps(optimizer: Optimizer, released: Released, curvature: float, steps: int) -> Floats:
    """What is left in the released of one unit that was added at each step; `curvature`: step size times Hessian."""
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
    """Of each iterate in what is released."""
    each = np.array([released.weight(step, steps) for step in range(steps)])
    kept = np.append(np.cumprod((1 - each)[:0:-1])[::-1], 1.0)
    return np.asarray(each * kept)
