"""Instances in one dimension that are carried along on a grid: bounded domains, and losses that are not convex."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np

from lastiterate.algorithms.batches import Turns
from lastiterate.algorithms.run import Run
from lastiterate.auditing.allowed import allowed_hessians, allowed_splits, half_gradient
from lastiterate.auditing.chain import Chain, Map, shuffled_hazard
from lastiterate.auditing.linear_instances import pushing
from lastiterate.auditing.quadratic import QuadraticSteps, steps_of
from lastiterate.auditing.search import greatest
from lastiterate.numerics.arrays import Floats

_MOST_STEPS = 20_000  # where they are not powers of one matrix
_PULLS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the others against the record, in units of the noise
_COARSE = 200
_SEARCH = 8
_CELLS_PER_NOISE = 4
_MOST_CELLS = 400
_REACH = 10.0  # standard deviations


def on_an_interval(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, str]]:
    """The others pull against the record, and projection holds; without a pull, Bok et al. 2024, Theorem C.16."""
    hessians, width = allowed_hessians(run), _width(run)
    if hessians is None or width is None or not _fits_a_grid(run):
        return
    splits = allowed_splits(run)[:1] if math.isfinite(half_gradient(run)) else allowed_splits(run)
    for hessian, split in product(sorted(set(hessians)), splits):
        steps = steps_of(run, hessian)

        def epsilon(pull: float, steps: QuadraticSteps = steps, split: tuple[float, float] = split) -> float:
            return _pulled(run, steps, width, pull, split).epsilon(delta)

        _, pull = greatest(epsilon, _pulls(run, steps), _SEARCH)
        pulled = f", the others pull it back by {pull:.3g} of the noise" if pull else ""
        chain = _refined(_pulled(run, steps, width, pull, split))
        yield chain.least_epsilon(delta), f"{pushing(split[0])} on an interval{pulled}"


def two_wells(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, str]]:
    """The others push away from the middle, as hard as they may; the record decides to which side."""
    loss, clip = run.loss, half_gradient(run)
    if run.clip is None or loss.keeps_convexity or loss.curvature >= 0 or run.prox is not None:
        return
    if not _fits_a_grid(run) or not run.batches.constant_size or loss.gradient_sensitivity < 2 * clip:
        return
    steps = steps_of(run, 0.0)
    kept, share, noise = float(steps.factor[0]), 1 / run.batches.divisor, float(steps.noise[0])
    move = float(steps.push[0]) / (2 * share)
    half = _half_width(run, kept, move, noise)
    if half is None:
        return

    def away(x: Floats) -> Floats:
        if math.isinf(loss.curvature):
            return np.where(x >= 0, move, -move)
        return np.clip(-loss.curvature * x * move / clip, -move, move)

    def towards(side: float) -> Map:
        return lambda x: kept * x + (1 - share) * away(x) + share * side * move

    chain = _chain(run, (lambda x: kept * x + away(x), towards(1.0), towards(-1.0)), half, noise)
    yield (
        _refined(chain).least_epsilon(delta),
        "two wells: the others push away from the middle, the record to one side",
    )


def _fits_a_grid(run: Run) -> bool:
    once = run.batches.turns is Turns.ONE_ORDER
    independent = not run.batches.passes
    few = run.steps <= (10**9 if independent else _MOST_STEPS)
    return steps_of(run, 0.0).alike and few and not once and not run.batches.own_mean


def _width(run: Run) -> float | None:
    """Of an interval in the domain, on which projection acts alone."""
    width = run.domain.widest_interval
    return width if math.isfinite(width) and run.prox is None else None


def _half_width(run: Run, kept: float, move: float, noise: float) -> float | None:
    """Half of the domain, or how far iterates get without one."""
    if (width := _width(run)) is not None:
        return width / 2
    if abs(kept) < 1:
        return move / (1 - abs(kept)) + _REACH * noise / math.sqrt(1 - kept**2)
    far = run.steps * move + _REACH * noise * math.sqrt(run.steps)
    return far if kept == 1 and far < _MOST_CELLS * noise else None


def _pulls(run: Run, steps: QuadraticSteps) -> tuple[float, ...]:
    """Poisson batches leave the others at 0; a bounded gradient pulls so far and no farther."""
    if not run.batches.constant_size:
        return (0.0,)
    if math.isinf(half_gradient(run)):
        return _PULLS
    most = float(steps.push[0]) / 2 * run.batches.divisor / float(steps.noise[0])
    return (*(one for one in _PULLS if one < most), most)


def _pulled(run: Run, steps: QuadraticSteps, width: float, pull: float, split: tuple[float, float]) -> Chain:
    """In a batch with the record, one of those that pull is missing."""
    factor, push, noise = float(steps.factor[0]), float(steps.push[0]), float(steps.noise[0])
    move = -pull * noise
    missing = 0.0 if math.isinf(half_gradient(run)) else move / run.batches.divisor
    moves = (move, move - missing + split[0] * push, move - missing + split[1] * push)
    without, record, neighbour = (_moved(factor, one) for one in moves)
    return _chain(run, (without, record, neighbour), width / 2, noise)


def _moved(factor: float, move: float) -> Map:
    return lambda x: factor * x + move


def _chain(run: Run, maps: tuple[Map, Map, Map], half: float, noise: float) -> Chain:
    batches, count = run.batches, run.steps
    every = batches.per_epoch if batches.shuffled else 1
    hazard = shuffled_hazard(every, count) if batches.shuffled else batches.inclusion(count)
    noises = np.broadcast_to(noise, count)
    return Chain(*maps, noises, hazard, -half, half, per_epoch=every, cells=_COARSE)


def _refined(chain: Chain) -> Chain:
    """Cells that are narrow beside the noise."""
    wanted = round(_CELLS_PER_NOISE * (chain.high - chain.low) / float(chain.noise[0]))
    return chain.on(max(_COARSE, min(_MOST_CELLS, wanted)))
