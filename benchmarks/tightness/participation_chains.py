"""Random non-linear chains in one dimension, batches of fixed size: a record, its neighbour, and whoever is in their place.

As in `turning_chains`, losses convex and steps alike. At a step that does not use the record another one pushes instead, in
a direction that turns as well, or as the record's neighbour does.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

import lastiterate as li
from benchmarks.tightness.prepaid_by_hand import Facts
from benchmarks.tightness.turning_chains import (
    CELL,
    FEWEST,
    MOST,
    REACH,
    Sizes,
    Turning,
    staircase,
    turning_direction,
)
from lastiterate.auditing.chain import Map
from lastiterate.facts import own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process

RECORDS = 20
FAILURE = 1e-9


def random_participation(source: np.random.Generator, most_steps: int = 14) -> tuple[Turning, Process]:
    """A chain, and the run that it is an instance of."""
    steps, batch = int(source.integers(2, most_steps + 1)), int(source.choice([1, 2, 4, 6, 10]))
    size = _sizes(source, steps)
    stairs = staircase(source, size)
    one, two, steady = (turning_direction(source, given) for given in (size, size, replace(size, turning=0.0)))
    chosen = [(one, one, one), (one, one, one), (two, one, steady), (steady, one, two)][int(source.integers(4))]
    maps = tuple(_pushed(size, stairs, way, sign) for way, sign in zip(chosen, (-1.0, 1.0, -1.0), strict=True))
    facts = _facts(size, steps)
    cells = int(np.clip(2 * size.half / CELL, FEWEST, MOST))
    hazard = np.full(steps, batch / RECORDS)
    chain = Turning("fixed size", facts, ((maps[0], maps[1], maps[2]),), (0,) * steps, hazard, 1, size.half, cells)
    return chain, _process(facts, batch)


def _sizes(source: np.random.Generator, steps: int) -> Sizes:
    """Small steps; pushes do not turn, turn slowly, or as fast as the range of slopes lets them."""
    push, depth = float(source.choice([0.3, 0.5, 1.0, 2.0, 3.0])), float(10 ** source.uniform(-4.0, -1.0))
    decay, drift = float(source.choice([0.0, 0.0, 0.01])), float(10 ** source.uniform(-2.0, 0.0))
    turning = float(source.choice([0.0, 0.0, 0.3, 1.0])) * depth / push
    half = REACH * math.sqrt(steps) + push * (steps / 2 + 2) + drift * steps
    return Sizes(push, drift, depth, 0.0, decay, turning, half)


def _pushed(size: Sizes, stairs: Map, direction: Map, sign: float) -> Map:
    def step(x: Floats) -> Floats:
        given = (1 - size.share) * stairs(x) + size.tilt * x - sign * size.push / 2 * direction(x)
        return x - size.decay * x - given

    return step


def _facts(size: Sizes, steps: int) -> Facts:
    def each(value: float) -> Floats:
        return np.broadcast_to(value, steps)

    return Facts(
        pushes=each(size.push),
        noise=each(1.0),
        centre=each(1 - size.decay - size.depth / 2),
        spread=each(size.depth / 2),
        highest=each(1 - size.decay),
        drift=each(size.drift + size.push / 2 + size.tilt * size.half),
        decay=each(size.decay),
        turning=size.turning,
        failure=FAILURE,
    )


def _process(facts: Facts, batch: int) -> Process:
    steps = len(facts.noise)
    nothing, unknown = (np.broadcast_to(value, steps) for value in (0.0, math.inf))
    smooth = Smooth(facts.centre, facts.spread, facts.drift, facts.decay, nothing, facts.turning, 1, 0.0)
    batches = li.FixedSize(records=RECORDS, batch_size=batch)
    given = (facts.pushes, facts.noise, facts.highest, unknown, facts.highest, facts.pushes)
    return Process(batches, *given, math.inf, own("the chain"), smooth=smooth)
