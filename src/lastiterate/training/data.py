"""Features and targets as a trainer needs them: finite, one row for each record, no row longer than was declared.

The features are never copied: a row that is too long is scaled where it is used, by a factor of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats

Indices = np.ndarray | slice

_ROWS_AT_ONCE = 4096
_ROUNDING = 1e-6  # a row that was normalised to the declared norm is not counted as too long


@dataclass(frozen=True, eq=False)
class Records:
    """Rows of features, and targets. `scales` shortens rows that are too long; `norms` are what they are then."""

    features: Floats
    targets: Floats
    norms: Floats
    scales: Floats | None

    def __getitem__(self, chosen: Indices) -> Records:
        scales = None if self.scales is None else self.scales[chosen]
        return Records(self.features[chosen], self.targets[chosen], self.norms[chosen], scales)

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True, eq=False)
class Data:
    """`shortened`: how many rows were longer than declared. It was computed from the data: it is not private."""

    records: Records
    shortened: int = 0


def pair_of(data: Any) -> tuple[Any, Any]:
    """Features and targets."""
    try:
        features, targets = data
    except (TypeError, ValueError) as error:
        raise InvalidInput("data must be a pair, features and targets.") from error
    return features, targets


def linear_data(data: Any, records: int, feature_norm: float | None, dtype: Any) -> Data:
    """For linear models. A row is scaled without looking at other rows, so privacy holds."""
    features, targets = pair_of(data)
    rows = _numbers("features", features, dtype)
    labels = _numbers("targets", targets, np.float64)
    if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels):
        raise InvalidInput(
            f"data must be features and targets, row by row. Got shapes {rows.shape} and {labels.shape}."
        )
    _check_count(len(rows), records)
    norms = _norms(rows)
    if not (np.isfinite(norms).all() and np.isfinite(labels).all()):
        raise InvalidInput(
            "data must be finite. Got NaN or infinity; drop or fill such records without looking at others."
        )
    if feature_norm is None or not (norms > feature_norm).any():
        return Data(Records(rows, labels, norms.astype(rows.dtype), None))
    shrink = 1 - 2 * float(np.finfo(rows.dtype).eps)  # so that rounding cannot make a row too long again
    scales = shrink * feature_norm / np.maximum(norms, feature_norm)
    kept = Records(rows, labels, (norms * scales).astype(rows.dtype), scales.astype(rows.dtype))
    return Data(kept, int((norms > feature_norm * (1 + _ROUNDING)).sum()))


def any_data(data: Any, records: int) -> Data:
    """For a gradient of the user's own: arrays whose first axis counts the records."""
    features, targets = (np.asarray(part) for part in pair_of(data))
    if not features.ndim or not targets.ndim or len(features) != len(targets):
        raise InvalidInput(
            f"data must be features and targets, row by row. Got shapes {features.shape} and {targets.shape}."
        )
    _check_count(len(features), records)
    return Data(Records(features, targets, np.broadcast_to(1.0, len(targets)), None))


def _numbers(name: str, values: Any, dtype: Any) -> Floats:
    array = np.asarray(values.toarray() if issparse(values) else values)
    try:
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be numbers. Got objects: {error}.") from error
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{name} must be real numbers. Got {array.dtype}.")
    return array.astype(_float_type(array, dtype), copy=False)


def _float_type(array: np.ndarray, dtype: Any) -> Any:
    """The one asked for; by default single precision stays what it is, and all else becomes double."""
    if dtype is not None:
        return dtype
    return np.float32 if array.dtype == np.float32 else np.float64


def _check_count(rows: int, records: int) -> None:
    if rows != records:
        raise InvalidInput(f"the run is about {records} records. Got {rows}.")


def _norms(rows: Floats) -> Floats:
    """In double precision, whatever the rows are in."""
    parts = (rows[first : first + _ROWS_AT_ONCE].astype(np.float64) for first in range(0, len(rows), _ROWS_AT_ONCE))
    return np.sqrt(np.concatenate([np.einsum("ij,ij->i", part, part) for part in parts]))
