"""Vectors that are used again: a training needs the same few at every step, and memory that is given back and taken again is
soon in pieces."""

from __future__ import annotations

from typing import Any

import torch


class SpareVector:
    """A vector in double precision, one number for each trained parameter, that nobody needs at the moment."""

    def __init__(self, size: int, device: Any) -> None:
        self._size, self._device = size, device
        self._vector: Any = None

    def zeros(self) -> Any:
        """It, with nothing in it; a new one where there is none."""
        found, self._vector = self._vector, None
        return torch.zeros(self._size, dtype=torch.float64, device=self._device) if found is None else found.zero_()

    def keep(self, vector: Any) -> None:
        """Whoever gives it must not look at it again."""
        if vector.shape == (self._size,) and vector.dtype == torch.float64 and vector.device == self._device:
            self._vector = vector
