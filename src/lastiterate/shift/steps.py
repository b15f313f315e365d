"""What the distance between two neighbouring runs meets at each step, for one fixed record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats

Counts = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Steps:
    """One entry per step: how far the record pushes (0 where it is absent), the noise, the Lipschitz constant.

    Between the steps both iterates lie in a set of this diameter. Nothing but ratios of lengths matters.
    """

    sensitivity: Floats
    noise: Floats
    lipschitz: Floats
    diameter: float = math.inf

    def __len__(self) -> int:
        return len(self.noise)

    def part(self, first: int, last: int) -> Steps:
        """Steps `first` to `last`, the latter left out."""
        cut = slice(first, last)
        return Steps(self.sensitivity[cut], self.noise[cut], self.lipschitz[cut], self.diameter)


@dataclass(frozen=True, eq=False)
class Schedule:
    """A proof in short form: skip `start` steps, then blocks of steps that end with nothing left to pay.

    Inside a block the payments are noise²·(product of the Lipschitz constants that follow), scaled to the block's level.
    """

    start: int
    lengths: Counts
    levels: Floats
