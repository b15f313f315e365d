"""One step of a chain on a grid, for both laws at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse import csr_array
from scipy.special import ndtr

from lastiterate.errors import Unavailable
from lastiterate.numerics.arrays import Floats

_LONGEST = 2**22


class Kernel(Protocol):
    def __call__(self, without: Floats, within: Floats | None) -> Floats:
        """What becomes of the masses of both laws in a batch that has not the record, and in one that has."""


@dataclass(frozen=True)
class Matrices:
    without: Floats
    record: Floats
    neighbour: Floats

    def __call__(self, without: Floats, within: Floats | None) -> Floats:
        moved = without @ self.without
        if within is not None:
            moved[0] += within[0] @ self.record
            moved[1] += within[1] @ self.neighbour
        return np.asarray(moved)


class Convolution:
    """Mass goes to `places` in units of a cell, split between the two whole numbers around, and is spread by the noise."""

    def __init__(self, places: list[Floats], noise: float, cells: int) -> None:
        first = math.floor(min(float(one.min()) for one in places))
        last = math.floor(max(float(one.max()) for one in places)) + 1
        count = last - first + 1
        self.size = next_fast_len(cells + count - 1, real=True)
        if self.size > _LONGEST:
            raise Unavailable("the maps leave the interval too far for this grid: take fewer cells.")
        self.without, self.record, self.neighbour = (_split(one - first, count) for one in places)
        offsets = np.arange(-last, cells - first)
        self.spread = rfft(ndtr((offsets + 1) / noise) - ndtr(offsets / noise), self.size)
        sources = np.arange(first, last + 1)
        self.ends = np.stack([ndtr(-sources / noise), ndtr((sources - cells) / noise)], axis=1)
        self.cells, self.skipped = cells, count - 1

    def __call__(self, without: Floats, within: Floats | None) -> Floats:
        moved = (self.without @ without.T).T
        if within is not None:
            moved[0] += self.record @ within[0]
            moved[1] += self.neighbour @ within[1]
        inner = irfft(rfft(moved, self.size) * self.spread, self.size)[:, self.skipped : self.skipped + self.cells]
        found = np.empty((2, self.cells + 2))
        found[:, [0, -1]] = moved @ self.ends
        np.maximum(inner, 0.0, out=found[:, 1:-1])
        return found


def _split(places: Floats, count: int) -> csr_array:
    below = np.floor(places)
    rows = np.concatenate([below, below + 1]).astype(np.intp)
    weights = np.concatenate([below + 1 - places, places - below])
    return csr_array((weights, (rows, np.tile(np.arange(len(places)), 2))), shape=(count, len(places)))
