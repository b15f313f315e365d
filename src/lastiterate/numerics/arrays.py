"""Small habits with arrays that every layer shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.integer[Any]] | slice
Complexes = NDArray[np.complexfloating[Any, Any]]

ROUNDOFF = float(np.finfo(np.float64).eps)


def like_input(result: Floats, given: ArrayLike) -> Any:
    """A Python float where the caller gave a number, an array of the same shape where it gave an array."""
    return float(result.reshape(-1)[0]) if np.ndim(given) == 0 else result.reshape(np.shape(given))
