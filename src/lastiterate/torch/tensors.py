"""Steps with tensors of PyTorch, on the device of the model: lengths, noise on a public grid, projections.

What gets noise is first rounded to the grid, on the device; the noise is drawn exactly, rounded to the same grid, and moved
there. Both are whole numbers of steps of the grid, so that their sum is exact: it is the ideal mechanism, rounded, applied
to a value that is off by at most half a step in each coordinate. This is charged as a displacement (docs/numerics.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from lastiterate.algorithms.arithmetic import STRAYING_OF_NETWORKS
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput
from lastiterate.numerics.exact_noise import add_whole_noises, normal, public_grid
from lastiterate.numerics.randomness import Source
from lastiterate.torch.team import ALONE, Team
from lastiterate.training.vectors import Vectors

_EXACT = 2.0**52  # whole numbers up to here, and their sums, are exact in double precision


class Tensors(Vectors):
    """Vectors in double precision on one device."""

    straying = STRAYING_OF_NETWORKS  # so that grids are coarse enough for noise to be quick in millions of coordinates

    def __init__(self, team: Team = ALONE) -> None:
        self.team = team

    def zeros_like(self, vector: Any) -> Any:
        return torch.zeros_like(vector)

    def length(self, vector: Any) -> float:
        return 0.0 if vector.is_meta else float(torch.linalg.vector_norm(vector))

    def noisy(self, value: Any, std: float, source: Source, finer: int) -> Any:
        grid = public_grid(std, finer)
        if source.private and not self.length(value) / grid < _EXACT:
            raise InvalidInput(
                f"noise of {std:.3g} is lost beside a value of length {self.length(value):.3g}: double precision has too "
                "few digits for both. Take more noise, or smaller steps."
            )
        multiples = value.mul_(1 / grid).round_()
        if self.team.leads:
            add_noise_multiples(multiples, std, grid, source)
        return self.team.told(multiples.mul_(grid))

    def settled(self, run: Run, value: Any, step_size: float) -> Any:
        if run.prox is None and not math.isfinite(run.domain.diameter):
            return value
        return _through_numpy(lambda array: super(Tensors, self).settled(run, array, step_size), value)

    def grid_of_released(self, finer: int) -> int:
        return finer

    def grid_of_hidden(self, apart: float, noises: tuple[float, float], roundings: float) -> int:
        """Value and noise are rounded by themselves. Where no account forgets, values count beside their own noise alone."""
        if not math.isfinite(apart):
            return math.ceil(math.log2(roundings / self.straying))
        return super().grid_of_hidden(apart, noises, 2 * roundings)


def add_noise_multiples(vector: Any, std: float, grid: float, source: Source) -> None:
    """Gaussian noise as whole numbers of steps of a grid, rounded exactly; drawn here, moved to the device."""
    if vector.is_meta:
        return
    here = vector if vector.device.type == "cpu" else torch.zeros_like(vector, device="cpu")
    add_whole_noises(here.view(-1).numpy(), normal, std / grid, source)
    if here is not vector:
        vector.add_(here.to(vector.device))


def _through_numpy(function: Any, value: Any) -> Any:
    """Projections and proximal maps are numpy's; tensors of the CPU share their memory with it."""
    return torch.from_numpy(np.ascontiguousarray(function(value.cpu().numpy()))).to(value.device)
