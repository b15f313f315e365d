"""Long lists of numbers in few characters: runs of equal entries, or a pattern that repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats

_MOST = 100_000_000


def packed(values: ArrayLike, period: int = 0) -> Any:
    """[[value, how often], …], or {"pattern": …, "length": …} where the list repeats after `period` entries."""
    array = np.asarray(values)
    if array.strides == (0,):
        return [[array[0].item(), len(array)]]
    if 0 < period < array.size and np.array_equal(array[period:], array[:-period]):
        return {"pattern": packed(array[:period]), "length": len(array)}
    if array.size == 0:
        return []
    starts = np.flatnonzero(np.append(True, array[1:] != array[:-1]))
    counts = np.diff(np.append(starts, array.size))
    return [[value, count] for value, count in zip(array[starts].tolist(), counts.tolist(), strict=True)]


def unpacked(content: Any, length: int | None = None) -> Floats:
    """The list again; with `length`, it has to have it."""
    if isinstance(content, dict):
        total = _checked_length(int(content["length"]), length)
        return np.resize(unpacked(content["pattern"]), total)
    counts = [int(count) for _, count in content]
    if any(count < 1 for count in counts):
        raise InvalidInput("a packed list must have counts >= 1.")
    total = _checked_length(sum(counts), length)
    values = np.array([float(value) for value, _ in content])
    return np.broadcast_to(values, total) if len(values) == 1 else np.repeat(values, counts)


def _checked_length(total: int, length: int | None) -> int:
    if total > _MOST or (length is not None and total != length):
        raise InvalidInput(f"a packed list must have {length} entries. Got {total}.")
    return total
