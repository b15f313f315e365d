"""Random runs in one dimension, each as a process for the theorems and as a chain that is computed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lastiterate.auditing.allowed import WorstCase, half_gradient
from lastiterate.auditing.chain import (
    Chain,
    chain_of,
    cyclic_hazard,
    iid_hazard,
    interval_width,
    refined,
    short_enough,
    shuffled_hazard,
)
from lastiterate.auditing.grid_steps import Map
from lastiterate.auditing.quadratic import steps_of
from lastiterate.curves.adjacency import POISSON, REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.facts import Fact, own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import (
    BallsAndBins,
    Batches,
    Cyclic,
    FixedSize,
    FullBatch,
    Poisson,
    Shuffled,
    Turns,
)
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run

_WIDE = 60.0  # in units of the noise, for runs without a domain
_DEVIATIONS = 5.0
_RECORDS = 100
_ROUNDED = 1e-12


@dataclass(frozen=True)
class Instance:
    """A random run as theorems see it, and as a chain that is computed exactly."""

    process: Process
    chain: Chain


@dataclass(frozen=True)
class _MapShape:
    """Map without the record, and its facts: a Lipschitz constant, or retain and drift."""

    middle: Map
    lipschitz: float
    drift: float
    retain: float
    bounded: bool
    linear: bool = False


def random_instance(source: np.random.Generator, most_steps: int = 120, adjacency: Adjacency = REPLACE_ONE) -> Instance:
    """Draw a run in one dimension with any batches and maps, in which the record pushes as hard as it may."""
    steps = int(source.integers(1, most_steps))
    push = float(10 ** source.uniform(-1.5, 0.3))
    shape = _SHAPES[int(source.integers(len(_SHAPES)))](source, push if adjacency.replaces else 2 * push)
    bounded = shape.bounded or source.random() < 0.7
    diameter = float(10 ** source.uniform(-0.5, 1.2)) if bounded else math.inf
    batches, hazard, both_ways = _batches(source, steps)
    if adjacency not in batches.adjacencies:
        batches, hazard = Poisson(records=_RECORDS, rate=0.2), iid_hazard(0.2, steps)
    pushes = _Pushes(0.0, push / 2, -push / 2) if both_ways else _Pushes(0.0, push, 0.0)
    width = diameter if bounded else _WIDE
    turn = -1.0 if source.random() < 0.5 else 1.0
    if not adjacency.replaces:
        batches, pushes = _with_one_order(source, batches), _without_the_neighbour(source, batches, push)
    without, record, neighbour = (_moved(shape.middle, turn * one) for one in pushes)
    chain = Chain(
        without,
        record,
        neighbour,
        np.ones(steps),
        hazard,
        -width / 2,
        width / 2,
        per_epoch=batches.per_epoch if batches.shuffled else 1,
        one_order=batches.turns is Turns.ONE_ORDER,
    )
    process = _process(batches, steps, push, shape, diameter, adjacency)
    if not adjacency.replaces and _reach(process, max(map(abs, pushes))) > _WIDE / 2:
        process = replace(process, smooth=own("iterates may leave the grid"))
    return Instance(process, chain)


def own_place_instance(source: np.random.Generator, most_steps: int = 24, replaced: bool = False) -> Instance:
    """Draw a run with balls and bins: the record pushes, and its neighbour does nothing or pushes back."""
    every = int(source.integers(1, 6))
    steps = min(int(source.integers(1, most_steps)), every * 6)
    steps = steps if source.random() < 0.3 else -(-steps // every) * every
    push = float(10 ** source.uniform(-1.0, 0.4))
    shape = (_linear, _linear, _slowly_growing, _drifting)[int(source.integers(4))](source, push)
    diameter = float(10 ** source.uniform(-0.5, 1.0)) if shape.bounded or source.random() < 0.5 else math.inf
    width = diameter if math.isfinite(diameter) else _WIDE
    up, down = (push / 2, -push / 2) if replaced else (push, 0.0)
    chain = Chain(
        shape.middle,
        lambda x: shape.middle(x) + up,
        lambda x: shape.middle(x) + down,
        np.ones(steps),
        shuffled_hazard(every, steps),
        -width / 2,
        width / 2,
        per_epoch=every,
    )
    bins = BallsAndBins(records=every * 10, batches=every)
    return Instance(_process(bins, steps, push, shape, diameter, REPLACE_ONE if replaced else ZERO_OUT), chain)


def _reach(process: Process, push: float) -> float:
    """Rough distance that iterates reach without a domain."""
    turns = -(-len(process) // (process.batches.per_epoch if process.batches.passes else 1))
    return max(1.0, process.contraction) ** len(process) * (turns * push + _DEVIATIONS * math.sqrt(len(process)))


class _Pushes(NamedTuple):
    """Pushes of a batch without the record, with it, and with its neighbour."""

    others: float
    record: float
    neighbour: float


def _moved(middle: Map, push: float) -> Map:
    return (lambda x: middle(x) + push) if push else middle


def _with_one_order(source: np.random.Generator, batches: Batches) -> Batches:
    return replace(batches, each_epoch=bool(source.random() < 0.5)) if isinstance(batches, Shuffled) else batches


def _without_the_neighbour(source: np.random.Generator, batches: Batches, push: float) -> _Pushes:
    """Draw pushes for a neighbour that contributes nothing; whoever has its place pushes either way, or not.

    All beyond what others do, so that iterates stay in the middle.
    """
    replaced = batches.shuffled or (batches.random and batches.sampling is not POISSON)
    others = float(source.choice([-push, -push, 0.0, push])) if replaced else 0.0
    return _Pushes(0.0, push - others, -others)


def _process(
    batches: Batches, steps: int, push: float, shape: _MapShape, diameter: float, adjacency: Adjacency
) -> Process:
    beside_others = 1.0 if adjacency.replaces or batches.sampling is POISSON else 2.0

    def alike(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), steps)

    # The record may push both ways, so the two maps are one push apart on top of what the middle does.
    return Process(
        batches,
        sensitivity=alike(push),
        noise=alike(1.0),
        lipschitz=alike(shape.lipschitz),
        drift=alike(shape.drift),
        retain=alike(shape.retain),
        sampled=alike(beside_others * push),
        adjacency=adjacency,
        diameter=diameter,
        reason=own("of its map"),
        dimension=1,
        smooth=_smooth(shape, alike) if math.isinf(diameter) else own("iterates are projected"),
    )


def _smooth(shape: _MapShape, alike: Callable[[float], Floats]) -> Smooth | Fact:
    """Facts on smoothness of a linear map, whose pushes do not turn."""
    if not shape.linear:
        return own("the map is not smooth")
    center, nothing = min(shape.lipschitz, 1.0), alike(0.0)
    radius = alike(shape.lipschitz - center + _ROUNDED)
    return Smooth(alike(center), radius, nothing, nothing, nothing, turning=0.0, rank=1, start=0.0)


def _linear(source: np.random.Generator, push: float) -> _MapShape:
    factor = float(source.choice([1.0, 1 - 10 ** source.uniform(-3, -0.3)]))
    return _MapShape(lambda x: factor * x, factor, math.inf, 1.0, False, linear=True)


def _slowly_growing(source: np.random.Generator, push: float) -> _MapShape:
    factor = float(1 + 10 ** source.uniform(-4, -2))
    return _MapShape(lambda x: factor * x, factor, math.inf, 1.0, False, linear=True)


def _drifting(source: np.random.Generator, push: float) -> _MapShape:
    pull = float(source.uniform(0, 1))
    return _MapShape(lambda x: x + pull, 1.0, math.inf, 1.0, True)


def _two_wells(source: np.random.Generator, push: float) -> _MapShape:
    retain, room = float(source.choice([1.0, 0.9, 0.5, 0.1])), float(10 ** source.uniform(-1.5, 0.5))
    return _MapShape(
        lambda x: retain * x + room * np.where(x >= 0, 1.0, -1.0), math.inf, 2 * room + push, retain, retain == 1
    )


def _steep(source: np.random.Generator, push: float) -> _MapShape:
    factor, room = float(source.uniform(1.01, 1.5)), float(10 ** source.uniform(-1.5, 0.5))
    return _MapShape(lambda x: np.clip(factor * x, x - room, x + room), factor, 2 * room + push, 1.0, True)


_SHAPES = (_linear, _linear, _slowly_growing, _drifting, _two_wells, _steep)


def _batches(source: np.random.Generator, steps: int) -> tuple[Batches, Floats, bool]:
    """Draw batches, the probability of the record at each step, and whether it pushes both ways alike."""
    kind, every = int(source.integers(6)), int(source.integers(1, 8))
    rate = float(source.choice([0.01, 0.1, 0.3, 0.7]))
    either = bool(source.random() < 0.5)
    match kind:
        case 0:
            return FullBatch(records=_RECORDS), iid_hazard(1.0, steps), either
        case 1:
            place = int(source.integers(every))
            return Cyclic(records=every * 10, batch_size=10), cyclic_hazard(every, place, steps), either
        case 2:
            last = round(10 * rate) if every > 1 and rate >= 0.3 else 10
            batches = Shuffled(records=(every - 1) * 10 + last, batch_size=10, last="smaller")
            return batches, shuffled_hazard(every, steps, last / 10), either
        case 3:
            return Poisson(records=_RECORDS, rate=rate), iid_hazard(rate, steps), True
    return FixedSize(records=_RECORDS, batch_size=round(_RECORDS * rate)), iid_hazard(rate, steps), either


# Two wells: a loss that is not convex, and a record that decides between them.


_REACH = 10.0  # standard deviations
_MOST_NOISES = 400  # that iterates may get apart


def two_wells(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε where the others push away from the middle and the record decides to which side."""
    loss, clip = run.loss, half_gradient(run)
    if run.clip is None or loss.keeps_convexity or loss.curvature >= 0 or run.prox is not None:
        return
    if not short_enough(run) or not run.batches.constant_size or loss.gradient_sensitivity < 2 * clip:
        return
    steps = steps_of(run, 0.0)
    if not steps.alike:
        return
    kept, share, noise = float(steps.factor[0]), 1 / run.batches.divisor, float(steps.noise[0])
    opposite = 2 if run.adjacency.replaces else 1  # times a record's own push: or from nothing
    move = float(steps.push[0]) / (opposite * share)
    half = _half_width(run, kept, move, noise)
    if half is None:
        return

    def away(x: Floats) -> Floats:
        if math.isinf(loss.curvature):
            return np.where(x >= 0, move, -move)
        return np.clip(-loss.curvature * x * move / clip, -move, move)

    def towards(side: float) -> Map:
        return lambda x: kept * x + (1 - share) * away(x) + share * side * move

    other = -1.0 if run.adjacency.replaces else 0.0
    chain = chain_of(run, (lambda x: kept * x + away(x), towards(1.0), towards(other)), half, steps.noise)
    yield refined(chain).least_epsilon(delta), WorstCase("two_wells")


def _half_width(run: Run, kept: float, move: float, noise: float) -> float | None:
    """Half of the domain's width, or the distance that iterates reach without a domain."""
    if (width := interval_width(run)) is not None:
        return width / 2
    if abs(kept) < 1:
        return move / (1 - abs(kept)) + _REACH * noise / math.sqrt(1 - kept**2)
    far = run.steps * move + _REACH * noise * math.sqrt(run.steps)
    return far if kept == 1 and far < _MOST_NOISES * noise else None
