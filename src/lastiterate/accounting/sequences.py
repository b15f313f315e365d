"""Long lists of numbers in few characters: as they are, as runs of equal entries, or as a pattern that repeats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.errors import Interval, InvalidInput, checked_array, checked_count
from lastiterate.numerics.arrays import Floats

_MOST = 100_000_000
_ANY = Interval(-np.inf, np.inf, high_included=True)
_COUNTS = Interval(1, 1e18, low_included=True)


def packed(values: ArrayLike, period: int = 0) -> Any:
    """[1.5, 2.5, …], {"runs": [[value, how often], …]}, or {"pattern": …, "length": …} for what repeats after `period`."""
    array = np.asarray(values)
    if array.strides == (0,):
        return {"runs": [[*_plain(array[:1]), len(array)]]}
    if 0 < period < array.size and np.array_equal(array[period:], array[:-period]):
        return {"pattern": packed(array[:period]), "length": len(array)}
    starts = np.flatnonzero(np.append(array.size > 0, array[1:] != array[:-1]))
    if 2 * len(starts) > array.size:
        return _plain(array)
    counts = np.diff(np.append(starts, array.size))
    return {"runs": [list(pair) for pair in zip(_plain(array[starts]), counts.tolist(), strict=True)]}


def unpacked(content: Any, length: int | None = None, most: int = _MOST) -> Floats:
    """The list again; with `length`, it has to have it, and `most` entries at the most.

    No small file may ask for a large list; one number repeated takes no memory.
    """
    if isinstance(content, list):
        values = _numbers(content)
        _checked_length(len(values), length, most)
        return values
    if "pattern" in content:
        total = _checked_length(checked_count("length", content["length"]), length, most)
        return np.resize(unpacked(content["pattern"], most=total), total)
    values = _numbers([value for value, _ in content["runs"]])
    counts = checked_array("a count", [count for _, count in content["runs"]], _COUNTS)
    if (counts != np.floor(counts)).any():
        raise InvalidInput("a count must be an integer.")
    if len(values) == 1 and length is not None:
        return np.broadcast_to(values, _checked_length(int(counts[0]), length, math.inf))
    _checked_length(int(counts.sum()), length, most)
    return np.repeat(values, counts.astype(np.intp))


def _plain(values: Floats) -> list[Any]:
    """JSON knows no infinity; null stands for it."""
    return values.tolist() if np.isfinite(values).all() else [x if np.isfinite(x) else None for x in values.tolist()]


def _numbers(content: list[Any]) -> Floats:
    return np.atleast_1d(checked_array("an entry", [np.inf if x is None else x for x in content], _ANY))


def _checked_length(total: int, length: int | None, most: float) -> int:
    if total > most or (length is not None and total != length):
        wanted = f"{length}" if length is not None else f"at most {most:g}"
        raise InvalidInput(f"a packed list must have {wanted} entries. Got {total}.")
    return total
