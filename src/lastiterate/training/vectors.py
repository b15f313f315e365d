"""What a step needs to know of the arrays that it is taken with: numpy's here, PyTorch's tensors in `lastiterate.torch`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.numerics.norms import length
from lastiterate.numerics.randomness import Source
from lastiterate.runs.arithmetic import STRAYING
from lastiterate.runs.run import Run
from lastiterate.training.leaving import RELEASED, leaves_with_normal_noise

_FINEST = 40  # a finer grid would leave too many roundings in doubt


class Vectors:
    """Numpy's arrays in double precision, whose noise is drawn exactly around what they hold."""

    straying = STRAYING
    """By how much the iterates of a training may stray, as mu."""
    finest = _FINEST

    def zeros_like(self, vector: Any) -> Any:
        return np.zeros(vector.shape)

    def length(self, vector: Any) -> float:
        return length(vector)

    def noisy(self, value: Any, std: float, source: Source, finer: int, length: float | None = None) -> Any:
        """With Gaussian noise, on a grid so many powers of two finer than the noise. The value may be used up.

        `length`: that of the value, where it is known.
        """
        return leaves_with_normal_noise(value, std, source, finer)

    def settled(self, run: Run, value: Any, step_size: float) -> Any:
        """After the proximal map and the projection of a run."""
        return run.domain.projected(value if run.prox is None else run.prox.mapped(value, step_size))

    def grid_of_released(self, finer: int) -> int:
        """How fine the grid of what is released is, where that of hidden iterates is `finer`."""
        return RELEASED

    def grid_of_hidden(self, apart: float, noises: tuple[float, float], roundings: float) -> int:
        """So fine that rounding to half a step of the grid, made larger by the next step, strays by half of what it may.

        Also where the noise of the next step is smaller. Where no Lipschitz constant is known, no account uses one, and any
        grid will do.
        """
        if not math.isfinite(apart):
            return RELEASED
        least, most = noises
        return math.ceil(math.log2(roundings * most / least * max(1.0, apart) / self.straying))
