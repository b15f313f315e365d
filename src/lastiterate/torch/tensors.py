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

from lastiterate.errors import InvalidInput
from lastiterate.numerics.exact_noise import add_whole_noises, make_noisy_multiples, normal, public_grid
from lastiterate.numerics.randomness import Source
from lastiterate.runs.noise import STRAYING_OF_NETWORKS
from lastiterate.runs.run import Run
from lastiterate.torch.team import ALONE, Team
from lastiterate.training.objectives import Vectors

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

    def noisy(self, value: Any, std: float, source: Source, finer: int, length: float | None = None) -> Any:
        grid, length = public_grid(std, finer), self.length(value) if length is None else length
        if source.private and not length / grid < _EXACT:
            raise InvalidInput("noise_lost", noise=std, length=length)
        if self.team.leads:
            make_noisy(value, std, grid, source)
        return self.team.broadcast(value)

    def settled(self, run: Run, value: Any, step_size: float) -> Any:
        if run.prox is None and not math.isfinite(run.domain.diameter):
            return value
        return _through_numpy(lambda array: super(Tensors, self).settled(run, array, step_size), value)

    def grid_of_released(self, finer: int) -> int:
        return finer

    def grid_of_hidden(self, apart: float, noises: tuple[float, float], roundings: float) -> int:
        """Fineness if value and noise are rounded apart; with `apart` infinite, only a value's own noise counts."""
        if not math.isfinite(apart):
            return math.ceil(math.log2(roundings / self.straying))
        return super().grid_of_hidden(apart, noises, 2 * roundings)


def make_noisy(vector: Any, std: float, grid: float, source: Source) -> None:
    """Add Gaussian noise to the vector in place, both rounded to the grid; noise is drawn here, then moved."""
    if vector.device.type == "cpu":
        make_noisy_multiples(vector.view(-1).numpy(), grid, normal, std, source)
        return
    vector.mul_(1 / grid).round_()
    if not vector.is_meta:
        vector.add_(_noise_multiples(vector, std / grid, source).to(vector.device))
    vector.mul_(grid)


def _noise_multiples(vector: Any, scale: float, source: Source) -> Any:
    """Return Gaussian noise as whole numbers, rounded exactly, for each coordinate of the vector."""
    noises = torch.zeros_like(vector, device="cpu")
    add_whole_noises(noises.view(-1).numpy(), normal, scale, source)
    return noises


def _through_numpy(function: Any, value: Any) -> Any:
    """Apply a numpy function to a tensor; tensors of the CPU share their memory with numpy."""
    return torch.from_numpy(np.ascontiguousarray(function(value.cpu().numpy()))).to(value.device)


# Vectors that are used again: a training needs the same few at every step, and memory that is given back and taken
# again is soon in pieces.


class SpareVector:
    """A vector in double precision, one number for each trained parameter, that nobody needs at the moment."""

    def __init__(self, size: int, device: Any) -> None:
        self._size, self._device = size, device
        self._vector: Any = None

    def zeros(self) -> Any:
        """Return the spare vector filled with zeros, or a new one if there is none."""
        found, self._vector = self._vector, None
        return torch.zeros(self._size, dtype=torch.float64, device=self._device) if found is None else found.zero_()

    def keep(self, vector: Any) -> None:
        """Keep a vector as the spare one; the caller must not use it again."""
        if vector.shape == (self._size,) and vector.dtype == torch.float64 and vector.device == self._device:
            self._vector = vector
