"""What the distance between two neighbouring runs meets at each step, for one fixed record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Counts = NDArray[np.intp]


class Refused(ValueError):
    """What was given proves nothing; the sentence says why."""


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
        """Return the steps `first` to `last`, the latter left out."""
        cut = slice(first, last)
        return Steps(self.sensitivity[cut], self.noise[cut], self.lipschitz[cut], self.diameter)

    @property
    def alike(self) -> bool:
        """Whether one number for every step is all that is stored."""
        return all(x.strides == (0,) or x.size == 1 for x in (self.sensitivity, self.noise, self.lipschitz))


def greatest(values: Floats) -> float:
    """Return the largest of these values; a billion equal ones, stored once, are looked at once."""
    return float(values[:1].max() if values.strides == (0,) else values.max())
