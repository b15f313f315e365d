"""Random non-linear chains in one dimension whose record pushes in a direction that turns, with their laws on a grid.

A step is x ← (1 − decay)·x − d(x) + noise·N(0, 1): d climbs on stretches of random length, or everywhere, as steeply as
`depth`, and falls in between, as steeply as `fall` (0 if the loss is convex), within ±drift, around 0 or, so that iterates
stream along, far from it. At a turn record and neighbour differ by push·U(x), half of it each; U stays within ±1 and turns
by no more than `turning` over a unit of length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.tightness.prepaid_by_hand import Certificate, Facts
from lastiterate.auditing.chain import Map, cyclic_hazard, shuffled_hazard
from lastiterate.numerics.arrays import Floats

CELL = 0.25  # of a cell, in units of the least noise
FEWEST, MOST = 200, 700  # cells
REACH = 8.5  # standard deviations
_FARTHEST = 40.0
_MOST_ORDERS = 40


@dataclass(frozen=True, eq=False)
class Turning:
    """`phases`: without the record, with it, with its neighbour, for each kind of step; `phase`: of which kind a step is."""

    name: str
    facts: Facts
    phases: tuple[tuple[Map, Map, Map], ...]
    phase: tuple[int, ...]
    hazard: Floats
    per_epoch: int
    half: float
    cells: int

    @property
    def orders(self) -> list[tuple[float, Floats]]:
        """At which steps the record may be met, and how likely it is met at just these."""
        found: list[tuple[float, Floats]] = [(1.0, np.zeros(0))]
        for first in range(0, len(self.hazard), self.per_epoch):
            hazard = self.hazard[first : first + self.per_epoch]
            places = hazard * np.append(1.0, np.cumprod(1 - hazard)[:-1])
            found = [
                (chance * float(places[at]), np.append(turns, np.eye(len(hazard))[at]))
                for chance, turns in found
                for at in np.flatnonzero(places)
            ]
        return found

    def bound(self, prove: Callable[[Facts], Certificate]) -> Callable[[Floats], Floats]:
        """δ of ε given the order, on average over orders."""
        proved = [(chance, prove(self.facts.at(turns))) for chance, turns in self.orders]
        return lambda epsilons: np.sum([chance * one.delta(epsilons) for chance, one in proved], axis=0)

    def exact(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """δ of ε in either order, one row each, and how far halving the cells moved it."""
        coarse, fine = (_apart(*laws, epsilons) for laws in (self._laws(self.cells), self._laws(2 * self.cells)))
        return fine, np.abs(fine - coarse)

    def _laws(self, cells: int) -> Floats:
        kernels = _Kernels(self, cells)
        unseen, seen = kernels.first
        for step in range(1, len(self.hazard)):
            if step % self.per_epoch == 0:
                unseen, seen = unseen + seen, np.zeros_like(seen)
            hazard = self.hazard[step]
            without, *within = kernels.at(step)
            met = np.stack([hazard * one @ matrix for one, matrix in zip(unseen, within, strict=True)])
            unseen, seen = ((1 - hazard) * unseen) @ without, seen @ without + met
        return unseen + seen


@dataclass(frozen=True, eq=False)
class _Kernels:
    chain: Turning
    cells: int

    @cached_property
    def edges(self) -> Floats:
        return np.linspace(-self.chain.half, self.chain.half, self.cells + 1)

    @cached_property
    def _known(self) -> dict[tuple[int, float], tuple[Floats, ...]]:
        return {}

    def at(self, step: int) -> tuple[Floats, ...]:
        phase, noise = self.chain.phase[step], float(self.chain.facts.noise[step])
        if (phase, noise) not in self._known:
            middles = (self.edges[1:] + self.edges[:-1]) / 2
            self._known[phase, noise] = tuple(self._rows(one(middles), noise) for one in self.chain.phases[phase])
        return self._known[phase, noise]

    @property
    def first(self) -> tuple[Floats, Floats]:
        """After the first step, from 0 exactly."""
        hazard, noise = self.chain.hazard[0], float(self.chain.facts.noise[0])
        without, *within = (self._rows(one(np.zeros(1)), noise)[0] for one in self.chain.phases[self.chain.phase[0]])
        return (1 - hazard) * np.stack([without, without]), hazard * np.stack(within)

    def _rows(self, means: Floats, noise: float) -> Floats:
        away = (self.edges[1:-1] - means[:, None]) / noise
        return np.diff(ndtr(away), axis=1, prepend=0.0, append=1.0)


def _apart(one: Floats, two: Floats, epsilons: Floats) -> Floats:
    factors = np.exp(epsilons)[:, None]
    return np.stack([np.maximum(a - factors * b, 0.0).sum(axis=1) for a, b in ((one, two), (two, one))])


def random_chain(source: np.random.Generator) -> Turning:
    """Cyclic or reshuffled, with or without decay, steps alike or shrinking."""
    per_epoch, shuffled = int(source.integers(1, 9)), bool(source.random() < 0.35)
    epochs = int(source.choice([1, 1, 2, 3, 4, 5]))
    while shuffled and per_epoch**epochs > _MOST_ORDERS:
        epochs, per_epoch = (epochs - 1, per_epoch) if epochs > 1 else (1, per_epoch)
    count = per_epoch * epochs
    place = per_epoch - 1 if source.random() < 0.7 else int(source.integers(per_epoch))
    hazard = shuffled_hazard(per_epoch, count) if shuffled else cyclic_hazard(per_epoch, place, count)
    smaller = float(source.choice([1.0, 1.0, 0.5, 0.2]))
    scale = np.where(np.arange(count) < count - int(source.integers(count + 1)), 1.0, smaller)
    return _with_maps(source, hazard, per_epoch, scale, "reshuffled" if shuffled else "cyclic")


@dataclass(frozen=True)
class Sizes:
    """Of a step of size 1."""

    push: float
    drift: float
    depth: float
    fall: float
    decay: float
    turning: float
    half: float

    @property
    def share(self) -> float:
        """Of the range of slopes, what the push takes by turning."""
        return self.push * self.turning / (self.depth + self.fall)

    @property
    def tilt(self) -> float:
        """So that what is left of the range, and the turning push, fill it again."""
        return self.share * (self.depth - self.fall) / 2


def _with_maps(source: np.random.Generator, hazard: Floats, per_epoch: int, scale: Floats, name: str) -> Turning:
    """All of a step but its noise is as large as its size, `scale`; the noise is, or stays 1."""
    count, noise = len(hazard), scale if source.random() < 0.5 else np.ones(len(hazard))
    failure = float(source.choice([1e-3, 1e-6, 1e-9]))
    size = _sizes(source, hazard, noise, -float(ndtri(failure / count / 2)))
    stairs, direction = staircase(source, size), turning_direction(source, size)
    scales = sorted(set(scale.tolist()))
    facts = Facts(
        pushes=size.push * scale,
        noise=noise,
        centre=1 - scale * (size.decay + (size.depth - size.fall) / 2),
        spread=scale * (size.depth + size.fall) / 2,
        highest=1 - scale * (size.decay - size.fall),
        drift=scale * (size.drift + size.push / 2 + abs(size.tilt) * size.half),
        decay=scale * size.decay,
        turning=size.turning,
        failure=failure,
    )
    phase = tuple(scales.index(one) for one in scale.tolist())
    phases = tuple(_maps(one, size, stairs, direction) for one in scales)
    cells = int(np.clip(2 * size.half / (CELL * noise.min()), FEWEST, MOST))
    return Turning(name, facts, phases, phase, hazard, per_epoch, size.half, cells)


def _sizes(source: np.random.Generator, hazard: Floats, noise: Floats, beyond: float) -> Sizes:
    """Pushes do not turn, turn slowly, or as fast as the range of slopes lets them."""
    push, depth = float(10 ** source.uniform(-2.0, 0.7)), float(10 ** source.uniform(-2.0, -0.2))
    drift = min(float(10 ** source.uniform(-2.0, 0.7)), _FARTHEST / len(noise))
    decay, fall = float(source.choice([0.0, 0.0, 0.01, 0.1])), float(source.choice([0.0, 0.0, 0.02, 0.1]))
    slowly, fast = 10 ** source.uniform(-2.5, -0.3) / (drift + push + beyond), (depth + fall) / push
    turning = float(source.choice([0.0, slowly, slowly, 0.5 * fast, fast]))
    half = REACH * math.sqrt(float(np.sum(noise**2))) + push * ((hazard > 0).sum() / 2 + 2) + drift * len(noise)
    return Sizes(push, drift, depth, fall, decay, min(turning, fast), half)


def staircase(source: np.random.Generator, size: Sizes) -> Map:
    lengths = 10 ** source.uniform(-0.5, 1.2, 400)
    ends = np.cumsum(lengths)
    ends = ends - ends[np.searchsorted(ends, ends[-1] / 2)]
    climbs = np.arange(399) % 2 > source.choice([-1, 0])
    heights = np.append(0.0, np.cumsum(np.where(climbs, size.depth, -size.fall) * lengths[1:]))
    lift = float(np.interp(source.normal(), ends, heights))
    stream = float(source.choice([-0.7, 0.0, 0.7])) * size.drift
    room = size.drift - abs(stream)
    return lambda x: np.clip(np.interp(x, ends, heights) - lift, -room, room) + stream


def turning_direction(source: np.random.Generator, size: Sizes) -> Map:
    turning, kind = size.turning, int(source.integers(3))
    at_zero = float(source.choice([math.pi, source.uniform(0, 2 * math.pi)]))
    if turning == 0:
        return np.ones_like
    if kind == 0:
        return lambda x: np.sin(turning * x + at_zero)
    if kind == 1:
        return lambda x: np.clip(turning * x + at_zero / 2 - math.pi / 2, -1.0, 1.0)
    return lambda x: 1 - 2 * np.abs((turning * x + at_zero) / 2 % 2 - 1)


def _maps(scale: float, size: Sizes, stairs: Map, direction: Map) -> tuple[Map, Map, Map]:
    def without(x: Floats) -> Floats:
        return x - scale * (size.decay * x + stairs(x))

    def pushed(sign: float) -> Map:
        def step(x: Floats) -> Floats:
            given = (1 - size.share) * stairs(x) + size.tilt * x - sign * size.push / 2 * direction(x)
            return x - scale * (size.decay * x + given)

        return step

    return without, pushed(1.0), pushed(-1.0)
