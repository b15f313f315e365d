"""Laws on a grid, and what one step does to both of them at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse import bmat, csr_array
from scipy.special import ndtr

from lastiterate.errors import Unavailable
from lastiterate.numerics.arrays import Floats

# The distance of two laws on the same cells, never more than it truly is.


LARGEST = 700.0
_ENOUGH = 60


def worse_order(one: Floats, two: Floats, epsilons: Floats, rounding: float = 0.0, relative: float = 0.0) -> Floats:
    """δ(ε) between two laws, in the worse order.

    Every cell may be off by `rounding`, and by a part of itself, `relative`: it counts for that much less.
    """
    factors = np.exp(np.minimum(epsilons, LARGEST))[:, None]
    doubt = (1 + factors) * rounding
    up, down = 1 + relative, 1 - relative
    forwards = np.maximum(down * one - up * factors * two - doubt, 0.0).sum(axis=1)
    return np.maximum(forwards, np.maximum(down * two - up * factors * one - doubt, 0.0).sum(axis=1))


def largest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """An ε with δ(ε) above `delta`, nearly the largest one; 0 if there is none."""
    if not delta_at(0.0) > delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        if high >= LARGEST:
            return LARGEST
        low, high = high, min(2 * high, LARGEST)
    for _ in range(_ENOUGH):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
        if high - low < 1e-12 * high:
            break
    return low


# Maps: a step before its noise, a function or one of several by chance.


Map = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Shifted:
    """base(x) + one of `shifts`, each with its probability, drawn anew at each step: a batch of random size."""

    base: Map
    shifts: Floats
    probabilities: Floats

    @property
    def count(self) -> int:
        return len(self.shifts)

    def __call__(self, x: Floats) -> Floats:
        """Return the expected place after the step."""
        return self.base(x) + float(self.shifts @ self.probabilities)


def branches(step: Map, points: Floats) -> list[tuple[float, Floats]]:
    """Return the places that the points may move to, each with its probability."""
    if not isinstance(step, Shifted):
        return [(1.0, step(points))]
    places = step.base(points)
    chances = zip(step.probabilities.tolist(), step.shifts.tolist(), strict=True)
    return [(chance, places + shift) for chance, shift in chances]


# Kernels: one step of a chain on a grid, for both laws at once.


_LONGEST = 2**22


class GridKernel(Protocol):
    def __call__(self, without: Floats, within: Floats) -> Floats:
        """Return the masses of both laws after a batch without the record and after one with it."""

    def idle(self, mass: Floats, count: int) -> Floats:
        """Return the mass after `count` batches without the record."""


@dataclass(frozen=True, eq=False)
class Matrices:
    """Kernel by full transition matrices, as precise in the tails as elsewhere."""

    without: Floats
    record: Floats
    neighbour: Floats
    _powers: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, without: Floats, within: Floats) -> Floats:
        moved = without @ self.without if without.any() else np.zeros_like(without)
        if within.any():
            moved[0] += within[0] @ self.record
            moved[1] += within[1] @ self.neighbour
        return np.asarray(moved)

    def idle(self, mass: Floats, count: int) -> Floats:
        if count not in self._powers:
            self._powers[count] = np.linalg.matrix_power(self.without, count)
        return np.asarray(mass @ self._powers[count])


class Convolution:
    """Kernel by convolution: mass is split between the two cells around each place and spread by the noise.

    `moves`: for each of the three maps the places it may lead to, with their probabilities.
    """

    def __init__(self, moves: list[list[tuple[float, Floats]]], noise: float, cells: int) -> None:
        every = [places for move in moves for _, places in move]
        first = math.floor(min(float(one.min()) for one in every))
        last = math.floor(max(float(one.max()) for one in every)) + 1
        self.count = last - first + 1
        self.size = next_fast_len(cells + self.count - 1, real=True)
        if self.size > _LONGEST:
            raise Unavailable("maps_leave_interval")
        without, record, neighbour = (_split(move, first, self.count) for move in moves)
        # Both laws in a batch without the record, then both in one with it.
        self.split = csr_array(bmat([[without, None, record, None], [None, without, None, neighbour]]))
        offsets = np.arange(-last, cells - first)
        self.spread = rfft(ndtr((offsets + 1) / noise) - ndtr(offsets / noise), self.size)
        sources = np.arange(first, last + 1)
        self.ends = np.stack([ndtr(-sources / noise), ndtr((sources - cells) / noise)], axis=1)
        self.cells = cells

    def __call__(self, without: Floats, within: Floats) -> Floats:
        moved = (self.split @ np.concatenate([without, within], axis=None)).reshape(2, self.count)
        full = irfft(rfft(moved, self.size) * self.spread, self.size)
        found = np.empty((2, self.cells + 2))
        found[:, :: self.cells + 1] = moved @ self.ends
        np.maximum(full[:, self.count - 1 : self.count - 1 + self.cells], 0.0, out=found[:, 1:-1])
        return found

    def idle(self, mass: Floats, count: int) -> Floats:
        none = np.zeros_like(mass)
        for _ in range(count):
            mass = self(mass, none)
        return mass


def _split(move: list[tuple[float, Floats]], first: int, count: int) -> csr_array:
    places = np.concatenate([one - first for _, one in move])
    chances = np.repeat([chance for chance, _ in move], len(move[0][1]))
    below = np.minimum(np.floor(places), count - 2)  # subtraction may have rounded up to the last
    rows = np.concatenate([below, below + 1]).astype(np.intp)
    weights = np.concatenate([chances * (below + 1 - places), chances * (places - below)])
    columns = np.tile(np.arange(len(move[0][1])), 2 * len(move))
    return csr_array((weights, (rows, columns)), shape=(count, len(move[0][1])))
