"""Features and targets as a trainer needs them: finite, one row for each record, no row longer than was declared.

The features are never copied: a row that is too long is scaled where it is used, by a factor of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.norms import at_least, row_norms_above

_FAR = 1e-3  # a row that has to shrink by more is scaled itself, so that no product of it can overflow
_LONGEST = 1e150
_ROUNDING = 1e-6  # a row that was normalised to the declared norm is not counted as too long


@dataclass(frozen=True, eq=False)
class Records:
    """Rows of features, and targets. `scales` shortens rows that are too long; `norms` are what they are then, at most."""

    features: Floats
    targets: Floats
    norms: Floats
    scales: Floats | None

    def __getitem__(self, chosen: Indices) -> Records:
        scales = None if self.scales is None else self.scales[chosen]
        return Records(self.features[chosen], self.targets[chosen], self.norms[chosen], scales)

    def __len__(self) -> int:
        return len(self.targets)

    def in_precision(self, precision: Any) -> Records:
        """In this precision, row by row in memory whatever the rows are: how they lie must not depend on one of them.

        Rows that are far too long are short already, in a copy.
        """
        rows, norms = np.ascontiguousarray(self.features, precision), at_least(self.norms, precision)
        if self.scales is None:
            return Records(rows, self.targets, norms, None)
        far = self.scales < _FAR
        if not far.any():
            return Records(rows, self.targets, norms, self.scales.astype(precision))
        rows = rows.copy()
        rows[far] = self.features[far].astype(np.float64) * self.scales[far, None]
        return Records(rows, self.targets, norms, np.where(far, 1.0, self.scales).astype(precision))


@dataclass(frozen=True, eq=False)
class Data:
    """`shortened`: how many rows were longer than declared. It was computed from the data: it is not private."""

    records: Records
    shortened: int = 0

    def pieces(self, chosen: Indices, most: int) -> Iterator[Records]:
        """The chosen records, so many at a time."""
        first, last, _ = chosen.indices(len(self.records)) if isinstance(chosen, slice) else (0, len(chosen), 1)
        for start in range(first, last, most):
            end = min(start + most, last)
            yield self.records[slice(start, end) if isinstance(chosen, slice) else chosen[start:end]]


def pair_of(data: Any) -> tuple[Any, Any]:
    """Features and targets."""
    try:
        features, targets = data
    except (TypeError, ValueError) as error:
        raise InvalidInput("data must be a pair, features and targets.", field="data") from error
    return features, targets


def linear_data(data: Any, records: int, feature_norm: float | None, dtype: Any) -> Data:
    """For linear models. A row is scaled without looking at other rows, so privacy holds."""
    features, targets = pair_of(data)
    rows = _numbers("features", features, dtype)
    labels = _numbers("targets", targets, np.float64)
    if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels):
        raise InvalidInput(
            f"data must be features and targets, row by row. Got shapes {rows.shape} and {labels.shape}.", field="data"
        )
    _check_count(len(rows), records)
    norms = row_norms_above(rows)
    if not ((norms < _LONGEST).all() and np.isfinite(labels).all()):
        raise InvalidInput(
            f"data must be finite, and rows shorter than {_LONGEST:g}. Got NaN, infinity or huge numbers; drop or fill such "
            "records without looking at others.",
            field="data",
        )
    _check_range(labels, rows.dtype)
    if feature_norm is None or not (norms > feature_norm).any():
        return Data(Records(rows, labels, at_least(norms, rows.dtype), None))
    shrink = 1 - 4 * float(np.finfo(rows.dtype).eps)  # so that rounding cannot make a row too long again
    scales = np.where(norms > feature_norm, shrink * feature_norm / np.maximum(norms, feature_norm), 1.0)
    kept = Records(rows, labels, at_least(np.minimum(norms, feature_norm), rows.dtype), scales)
    return Data(kept, count_longer(norms, feature_norm))


def any_data(data: Any, records: int) -> Data:
    """For a gradient of the user's own: arrays whose first axis counts the records."""
    features, targets = (_unmasked(part) for part in pair_of(data))
    if "O" in (features.dtype.kind, targets.dtype.kind):
        raise InvalidInput("data must be arrays of numbers or strings of one kind. Got objects.", field="data")
    if not features.ndim or not targets.ndim or len(features) != len(targets):
        raise InvalidInput(
            f"data must be features and targets, row by row. Got shapes {features.shape} and {targets.shape}.",
            field="data",
        )
    _check_count(len(features), records)
    return Data(Records(features, targets, np.broadcast_to(1.0, len(targets)), None))


def _numbers(name: str, values: Any, dtype: Any) -> Floats:
    array = _unmasked(values.toarray() if issparse(values) else values)
    try:
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be numbers. Got objects: {error}.", field=name) from error
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{name} must be real numbers. Got {array.dtype}.", field=name)
    return array.astype(_float_type(array, dtype), copy=False)


def check_unmasked(values: Any) -> None:
    """What lies under a mask would be trained on."""
    if np.ma.is_masked(values):
        raise InvalidInput(
            "data must have no masked entries. Fill them without looking at other records.", field="data"
        )


def _unmasked(values: Any) -> np.ndarray:
    check_unmasked(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidInput(f"data must be arrays: {error}.", field="data") from error


def _float_type(array: np.ndarray, dtype: Any) -> Any:
    """The one asked for; by default single precision stays what it is, and all else becomes double."""
    if dtype is not None:
        return dtype
    return np.float32 if array.dtype == np.float32 else np.float64


def _check_range(labels: Floats, precision: Any) -> None:
    """Products are computed in this precision, and a target that is infinite there is so at every step."""
    largest = float(np.finfo(precision).max)
    if (np.abs(labels) > largest).any():
        raise InvalidInput(
            f"targets must be at most {largest:.3g} in size, the largest number of {precision}. Got "
            f"{np.abs(labels).max():.3g}; scale them without looking at the data, or say dtype=numpy.float64.",
            field="targets",
        )


def _check_count(rows: int, records: int) -> None:
    if rows != records:
        raise InvalidInput(f"the run is about {records} records. Got {rows}.", field="data")


def count_longer(norms: Floats, most: float) -> int:
    """How many rows are longer than this, by more than rounding."""
    return int((norms > most * (1 + _ROUNDING)).sum())


def shortened_rows(rows: Floats, norms: Floats, most: float) -> Floats:
    """A copy in which no row is longer than this."""
    scales = most / np.maximum(norms, most)
    copy = rows.copy()
    too_long = scales < 1
    copy[too_long] = rows[too_long] * scales[too_long, None]
    return copy
