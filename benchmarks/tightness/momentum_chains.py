"""Momentum and averages on losses that are not quadratic, in one dimension: two numbers of state, their law on a grid.

A linear optimiser with one number of memory is p ← now·p + before·(p before) + force(point) + noise, written out by hand
for each. Densities of (p before, p) are summed on points half the noise apart, which is exact but for e^−70, and what is
released is told by cells, which is no more than itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

import lastiterate as li
from lastiterate.auditing.filtered import filtered_process, smooth_steps
from lastiterate.auditing.grid_steps import worse_order
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.optimizers import Released
from lastiterate.runs.process import Process

Force = Callable[[Floats], Floats]
_APART, _CELL = 0.5, 0.1  # points of the state, and cells of what is released, in units of their noise
_FAR = 7.5  # standard deviations, beyond which is 1e-13


@dataclass(frozen=True)
class Motion:
    """point = look[0]·p + look[1]·(p before), and what is released is that by `shown`, but for a factor."""

    optimizer: li.SGD
    released: Released
    now: float
    before: float
    look: tuple[float, float]
    shown: tuple[float, float]


def motion(source: np.random.Generator) -> Motion:
    """Heavy ball, Nesterov, a moving average or the mean of all iterates of plain steps."""
    rate = float(source.choice([0.3, 0.6, 0.9]))
    ahead = (1 + rate, -rate)
    match int(source.integers(4)):
        case 0:
            return Motion(li.SGD(momentum=rate), li.LAST, *ahead, (1.0, 0.0), (1.0, 0.0))
        case 1:
            return Motion(li.SGD(momentum=rate, nesterov=True), li.LAST, *ahead, ahead, ahead)
        case 2:  # p = average/(1 − rate)
            return Motion(li.SGD(), li.EMA(rate), *ahead, (1.0, -rate), (1.0, 0.0))
    return Motion(li.SGD(), li.AVERAGE(), 2.0, -1.0, (1.0, -1.0), (1.0, 0.0))  # p = the sum of all iterates


@dataclass(frozen=True)
class MomentumLaws:
    """Both laws of what is released: at its turns the record adds half a push to the force, the neighbour takes it away."""

    given: Motion
    force: Force
    push: Force
    turns: tuple[tuple[bool, ...], ...]  # for each place that is equally likely

    def delta_with_error(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """δ(ε), told by cells, in the worse order; and what sums may have left out."""
        edges = self._edges
        one, two = (np.mean([self._law(sign, each, edges) for each in self.turns], axis=0) for sign in (0.5, -0.5))
        found = worse_order(one, two, epsilons, 1e-16)
        return found, np.full_like(found, 1e-11) * (1 + np.exp(epsilons))

    @property
    def _spread(self) -> float:
        """The deviation of p without any force, at the end."""
        state, square = (0.0, 1.0), 0.0
        for _ in self.turns[0]:
            square += state[1] ** 2
            state = (state[1], self.given.now * state[1] + self.given.before * state[0])
        return math.sqrt(square)

    @property
    def _points(self) -> Floats:
        """Forces pull back, or push a little."""
        reach = _FAR * self._spread + 2.0 * len(self.turns[0])
        return np.arange(-reach, reach, _APART)

    @property
    def _edges(self) -> Floats:
        reach = 1.2 * (_FAR * self._spread + 4.0 * len(self.turns[0]))
        return np.concatenate([[-np.inf], np.arange(-reach, reach, _CELL * self.given.shown[0]), [np.inf]])

    def _law(self, sign: float, turns: tuple[bool, ...], edges: Floats) -> Floats:
        """Of the cells. The first step starts from 0, the last leads to what is released."""
        points, nothing = self._points, np.zeros(1)
        before, now, weights = nothing[:, None], nothing[None], np.ones((1, 1))
        for step, turn in enumerate(turns):
            mean = self._mean(before, now, sign if turn else 0.0)
            if step + 1 == len(turns):
                return self._cells(mean, now, weights, edges)
            columns = [weights[:, place] @ _normal(points - mean[:, place, None]) for place in range(weights.shape[1])]
            weights = np.stack(columns) * _APART
            before, now = (nothing[:, None] if step == 0 else points[:, None]), points[None]
        raise ValueError("there must be a step")

    def _mean(self, before: Floats, now: Floats, sign: float) -> Floats:
        at = self.given.look[0] * now + self.given.look[1] * before
        return np.asarray(self.given.now * now + self.given.before * before + self.force(at) + sign * self.push(at))

    def _cells(self, mean: Floats, now: Floats, weights: Floats, edges: Floats) -> Floats:
        factor, known = self.given.shown
        middle, heavy = factor * mean + known * (now + 0 * mean), weights > 1e-17
        below = ndtr((edges[:, None] - middle[heavy]) / factor) @ weights[heavy]
        return np.asarray(np.diff(below))


def _normal(away: Floats) -> Floats:
    return np.asarray(np.exp(-np.square(away) / 2) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class MomentumInstance:
    """What theorems see of a run, and its laws."""

    process: Process
    chain: MomentumLaws


def momentum_instance(source: np.random.Generator) -> MomentumInstance:
    """A force that bends, a push that turns; how far both bend is what the theorems are told."""
    given, steps, every = motion(source), int(source.integers(2, 6)), int(source.integers(1, 4))
    size, pull = float(10 ** source.uniform(-1, 0.3)), float(source.choice([0.0, 0.1, 0.4]))
    bend, pace = float(10 ** source.uniform(-3, -0.5)), float(source.uniform(0.3, 2))
    turning, phase = float(source.choice([0.01, 0.1, 1.5]) * source.random()), float(source.uniform(0, 7))

    def force(x: Floats) -> Floats:
        return np.asarray(-pull * x - bend / pace * np.sin(pace * x + phase))

    def push(x: Floats) -> Floats:
        return np.asarray(size * np.cos(turning * x + phase))

    half = bend + size / 2 * turning
    kinds = (li.FullBatch(10), li.Cyclic(10 * every, 10), li.Shuffled(10 * every, 10, each_epoch=False))
    batches = kinds[int(source.integers(3))]
    places = range(every) if batches.shuffled else [int(source.integers(every))]
    regular = [tuple(step % every == place for step in range(steps)) for place in places]
    turns = [(True,) * steps] if batches.per_epoch == 1 else regular
    process = filtered_process(batches, steps, size, 1.0, given.optimizer, given.released, (pull, half))
    if pull == 0:
        process = replace(process, smooth=smooth_steps(steps, pull, half, bend / pace + size / 2, turning))
    return MomentumInstance(process, MomentumLaws(given, force, push, tuple(turns)))
