"""Small habits with arrays that every layer shares."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def either_way(condition: Any, where: Callable[..., Floats], elsewhere: Callable[..., Floats], *of: Floats) -> Floats:
    """`where` of the entries that meet the condition, `elsewhere` of the others: each is asked about its own alone."""
    if condition.all():
        return where(*of)
    if not condition.any():
        return elsewhere(*of)
    found = np.empty(condition.shape)
    found[condition] = where(*(one[condition] for one in of))
    found[~condition] = elsewhere(*(one[~condition] for one in of))
    return found


# Convex minorants of points.


def lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The vertices of the greatest convex function below the points (x increasing)."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1 and _above_chord(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _above_chord(x: Floats, y: Floats, left: int, middle: int, right: int) -> bool:
    rise = (y[right] - y[left]) * (x[middle] - x[left])
    return bool((y[middle] - y[left]) * (x[right] - x[left]) >= rise)


# The divisors of a whole number.


def divisors(number: int) -> tuple[int, ...]:
    """All of them, in order."""
    small = np.arange(1, math.isqrt(number) + 1)
    found = small[number % small == 0]
    return tuple(int(one) for one in np.union1d(found, number // found))
