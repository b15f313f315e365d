"""Two neighbouring data sets, made of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.errors import InvalidInput, Unavailable, checked_choice, checked_count, must_be, shown
from lastiterate.numerics.arrays import Floats


def neighbours_of(data: Any, adjacency: Adjacency = REPLACE_ONE, record: int | None = None) -> tuple[Any, Any]:
    """Return `data` and a neighbouring data set, for `audit`. `data` is an array or a tuple such as (features, targets).

    The record at position `record` (by default the one with the largest norm) is replaced by its opposite, -x, with the same
    target; under li.ADD_OR_REMOVE_ONE it is removed. Another pair may give a larger lower bound. Choose the pair before you
    see results, or the confidence does not hold.
    """
    adjacency = checked_choice("adjacency", adjacency, Adjacency)
    if adjacency is ZERO_OUT:
        raise Unavailable("neighbours_of_zero_out")
    arrays = [_records(one) for one in (data if isinstance(data, tuple) else (data,))]
    if len({len(one) for one in arrays}) != 1 or not len(arrays[0]):
        raise InvalidInput("neighbours_lengths_differ", field="data", got=", ".join(str(len(one)) for one in arrays))
    place = _longest(arrays[0]) if record is None else _checked_place(record, len(arrays[0]))
    changed = [_without(arrays, place), _with_opposite(arrays, place)][adjacency.replaces]
    return (tuple(arrays), tuple(changed)) if isinstance(data, tuple) else (arrays[0], changed[0])


def _records(value: Any) -> Any:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.ndim == 0 or array.dtype.kind not in "iuf":
        raise InvalidInput("neighbours_not_arrays", field="data", got=f"{shown(value):.60}")
    return array


def _longest(records: Floats) -> int:
    return int(np.argmax(np.linalg.norm(records.reshape(len(records), -1).astype(float), axis=1)))


def _checked_place(record: int, count: int) -> int:
    place = checked_count("record", record, least=0)
    if place >= count:
        raise must_be("record", f"from 0 to {count - 1}", shown(record))
    return place


def _without(arrays: list[Any], place: int) -> list[Any]:
    return [np.delete(one, place, axis=0) for one in arrays]


def _with_opposite(arrays: list[Any], place: int) -> list[Any]:
    first = arrays[0].astype(np.result_type(arrays[0].dtype, np.int8), copy=True)
    first[place] = -first[place]
    if np.array_equal(first, arrays[0]):
        raise InvalidInput("record_is_its_opposite", field="record", record=place)
    return [first, *arrays[1:]]
