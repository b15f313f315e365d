"""Chains that a search may change at will, within what the steps of a setting allow: maps, pushes, and their last steps.

Four shapes. *One loss*: the same piecewise linear map at every step, on an interval. *Changing maps*: the last steps have
offsets of their own, which no loss of a full or a random batch does, but which no theorem that knows the steps only by their
Lipschitz constants, pushes and noise can tell apart from it. *In the plane*: one loss of two coordinates, on a rectangle.
*In time*: no domain, and linear steps whose slopes change, which a loss with a clock comes close to (docs/proofs.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

import lastiterate as li
from lastiterate.auditing.chain import Chain, iid_hazard, shuffled_hazard
from lastiterate.auditing.grid_steps import largest_epsilon, worse_order
from lastiterate.auditing.linear_instances import orders
from lastiterate.auditing.quadratic import weights_of
from lastiterate.auditing.sums import Pushed, RandomSum
from lastiterate.numerics.arrays import Floats

DELTA = 1e-6
RECORDS = 1000
PARTS = 4  # of an interval, each with a slope of its own
LAST = 4  # steps that may have offsets of their own
RIDGES = 3
GROUPS = 15  # of steps with one slope
_SIDE = 18  # cells of a rectangle, in either direction
BATCHES = {
    "full": li.FullBatch(RECORDS),
    "reshuffled": li.Shuffled(RECORDS, 100),
    "shuffled once": li.Shuffled(RECORDS, 100, each_epoch=False),
    "fixed size": li.FixedSize(RECORDS, 100),
}


@dataclass(frozen=True)
class Setting:
    """Convex losses on a domain of this diameter, noise 1 on the iterate; `push`, how far a record moves an iterate."""

    batches: str
    push: float
    diameter: float
    steps: int

    @property
    def name(self) -> str:
        return f"{self.batches}, s = {self.push:g}, D = {self.diameter:g}, {self.steps} steps"

    @property
    def run(self) -> li.Run:
        batches = BATCHES[self.batches]
        loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=self.push * batches.divisor)
        return li.Run(loss, batches, 1.0, li.OnIterate(1.0), self.steps, li.parts.ConvexSet(self.diameter))


SETTINGS = (
    Setting("full", 0.1, 10.0, 400),
    Setting("full", 0.1, 3.0, 100),
    Setting("full", 0.1, 1.0, 60),
    Setting("reshuffled", 0.5, 0.6, 60),
    Setting("reshuffled", 0.5, 1.0, 60),
    Setting("reshuffled", 0.5, 3.0, 60),
    Setting("shuffled once", 0.5, 0.6, 60),
    Setting("shuffled once", 0.5, 1.0, 60),
    Setting("shuffled once", 0.5, 3.0, 60),
    Setting("fixed size", 0.5, 1.0, 60),
    Setting("fixed size", 0.5, 3.0, 60),
)


@dataclass(frozen=True)
class OnInterval:
    """φ(0) = offset; slopes in [0, 1] on equal parts. The record adds split·push, its neighbour (split − 1)·push."""

    slopes: tuple[float, ...] = (1.0,) * PARTS
    offset: float = 0.0
    last: tuple[float, ...] = ()  # offsets of the last steps
    split: float = 1.0

    def within(self) -> OnInterval:
        slopes = tuple(float(one) for one in np.clip(self.slopes, 0.0, 1.0))
        return replace(self, slopes=slopes, split=float(np.clip(self.split, 0.0, 1.0)))

    def chain(self, setting: Setting, cells: int) -> Chain:
        batches, steps, half = BATCHES[setting.batches], setting.steps, setting.diameter / 2
        every = batches.per_epoch if batches.shuffled else 1
        hazard = shuffled_hazard(every, steps) if batches.shuffled else iid_hazard(_rate(batches), steps)
        first, *changes = (self._maps(setting, offset) for offset in (self.offset, *self.last))
        which = (0,) * (steps - len(changes)) + tuple(range(1, len(changes) + 1))
        once = isinstance(batches, li.Shuffled) and not batches.each_epoch
        return Chain(
            *first, np.ones(steps), hazard, -half, half, per_epoch=every, cells=cells,
            one_order=once, changes=tuple(changes), which=which if changes else None,
        )  # fmt: skip

    def _maps(self, setting: Setting, offset: float) -> Any:
        half, push = setting.diameter / 2, setting.push
        knots = np.linspace(-half, half, len(self.slopes) + 1)
        values = np.concatenate([[0.0], np.cumsum(np.array(self.slopes) * np.diff(knots))])
        values = values - np.interp(0.0, knots, values) + offset

        def moved(by: float) -> Any:
            return lambda x: np.interp(x, knots, values) + by

        return moved(0.0), moved(self.split * push), moved((self.split - 1) * push)

    def epsilon(self, setting: Setting) -> float:
        """Roughly, for a search."""
        return self.chain(setting, 60).epsilon(DELTA)

    def least_epsilon(self, setting: Setting) -> float:
        """Less what the grid may be wrong by."""
        return self.chain(setting, max(100, round(20 * setting.diameter))).least_epsilon(DELTA)


def _rate(batches: Any) -> float:
    return float(batches.inclusion(1)[0])


@dataclass(frozen=True)
class InPlane:
    """One loss of two coordinates, full batches: ridges at angles, each a strip in which the step contracts across it.

    Ridge j takes a ramp of slope `slopes[j]` and width `widths[j]` from the coordinate along its angle: the loss is convex,
    and its Hessian at most 1, because the slopes add up to at most 1. The rectangle has the setting's diameter.
    """

    angles: tuple[float, ...]
    places: tuple[float, ...]
    slopes: tuple[float, ...]
    widths: tuple[float, ...]
    offset: tuple[float, float]
    shape: float  # angle of the rectangle's diagonal
    direction: float  # of the push

    def within(self) -> InPlane:
        slopes = np.maximum(self.slopes, 0.0)
        slopes = slopes / max(float(slopes.sum()), 1.0)
        widths = np.maximum(self.widths, 1e-3)
        shape = float(np.clip(self.shape, 0.02, math.pi / 2 - 0.02))
        return replace(self, slopes=tuple(slopes.tolist()), widths=tuple(widths.tolist()), shape=shape)

    def epsilon(self, setting: Setting, side: int = _SIDE) -> float:
        laws = [self._law(setting, sign * setting.push / 2, side) for sign in (1, -1)]
        return largest_epsilon(lambda e: float(worse_order(*laws, np.array([e]))[0]), DELTA)

    def least_epsilon(self, setting: Setting) -> float:
        """The lower of two grids, less what they differ by: not certified, and so never kept as a bound."""
        fine, coarse = self.epsilon(setting, 2 * _SIDE), self.epsilon(setting)
        return min(fine, coarse) - abs(fine - coarse)

    def _law(self, setting: Setting, push: float, side: int) -> Floats:
        halves = setting.diameter / 2 * np.array([math.cos(self.shape), math.sin(self.shape)])
        axes = [_points(half, side) for half in halves]
        x, y = (one.ravel() for one in np.meshgrid(*axes, indexing="ij"))
        to_x = x + self.offset[0] + push * math.cos(self.direction)
        to_y = y + self.offset[1] + push * math.sin(self.direction)
        for angle, place, slope, width in zip(self.angles, self.places, self.slopes, self.widths, strict=True):
            ramp = slope * np.clip(math.cos(angle) * x + math.sin(angle) * y - place, 0.0, width)
            to_x, to_y = to_x - ramp * math.cos(angle), to_y - ramp * math.sin(angle)
        parts = [_spread(to, half, side) for to, half in zip((to_x, to_y), halves, strict=True)]
        step = (parts[0][:, :, None] * parts[1][:, None, :]).reshape(len(x), -1)
        law = np.full(len(x), 1 / len(x))
        for _ in range(setting.steps):
            law = law @ step
        return law


@dataclass(frozen=True)
class Linear:
    """Convex losses without a domain, noise 1 on the iterate."""

    name: str
    batches: Any
    push: float
    steps: int

    @property
    def run(self) -> li.Run:
        change = self.push * self.batches.divisor
        loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=change)
        return li.Run(loss, self.batches, 1.0, li.OnIterate(1.0), self.steps)


LINEAR = (
    Linear("shuffled once, s = 0.5, 30 steps", BATCHES["shuffled once"], 0.5, 30),
    Linear("reshuffled, s = 0.5, 30 steps", BATCHES["reshuffled"], 0.5, 30),
    Linear("fixed size of 50, s = 0.5, 60 steps", li.FixedSize(RECORDS, 50), 0.5, 60),
    Linear("fixed size of 50, s = 0.5, 2000 steps", li.FixedSize(RECORDS, 50), 0.5, 2000),
)


@dataclass(frozen=True)
class InTime:
    """x ← slope·x, with slopes that change `GROUPS` times; the record pushes by split, its neighbour by split − 1."""

    slopes: tuple[float, ...] = (1.0,) * GROUPS
    split: float = 1.0

    def within(self) -> InTime:
        slopes = tuple(float(one) for one in np.clip(self.slopes, 0.0, 1.0))
        return replace(self, slopes=slopes, split=float(np.clip(self.split, 0.0, 1.0)))

    def epsilon(self, setting: Linear) -> float:
        weights = weights_of(np.repeat(self.slopes, -(-setting.steps // GROUPS))[: setting.steps])
        deviation, values = math.sqrt(float(np.sum(np.square(weights)))), setting.push * weights
        if setting.batches.shuffled:
            pushes = orders(values, setting.batches, deviation)
        else:
            rates = np.full((setting.steps, 1), _rate(setting.batches))
            pushes = RandomSum(values[:, None], rates, deviation)
        return Pushed(pushes, self.split, self.split - 1).epsilon(DELTA)


def _points(half: float, side: int) -> Floats:
    inner = -half + (np.arange(side) + 0.5) / side * 2 * half
    return np.concatenate([[-half], inner, [half]])


def _spread(places: Floats, half: float, side: int) -> Floats:
    """Of each place, the mass in each cell and beyond both ends, as precise above as below."""
    away = np.linspace(-half, half, side + 1) - places[:, None]
    below = np.diff(ndtr(away), axis=1, prepend=0.0, append=1.0)
    above = -np.diff(ndtr(-away), axis=1, prepend=1.0, append=0.0)
    return np.where(np.concatenate([away[:, :1] > 0, away > 0], axis=1), above, below)
