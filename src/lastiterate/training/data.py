"""Features and targets as a trainer needs them: finite, one row for each record, no row longer than was declared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.norms import row_norms_above
from lastiterate.training.fingerprint import array_fingerprint
from lastiterate.training.records import Records, Unmeasured, limited, parts_of

_LONGEST = 1e150


class Data(ABC):
    """Records as a trainer asks for them, wherever they lie.

    `shortened`: how many rows were longer than declared. It was computed from the data: it is not private.
    """

    shortened: int

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of all features."""

    @property
    @abstractmethod
    def dtype(self) -> Any:
        """Of the features, as they are trained on."""

    @abstractmethod
    def pieces(self, chosen: Indices, most: int) -> Iterator[Records | Unmeasured]:
        """The chosen records, so many at a time."""

    @abstractmethod
    def fingerprints(self) -> list[list[Any]]:
        """Of features and targets: what tells them from any others."""


@dataclass(frozen=True, eq=False)
class InMemory(Data):
    """Arrays as they were given: they are not copied."""

    records: Records
    shortened: int = 0

    def __len__(self) -> int:
        return len(self.records)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.records.features.shape

    @property
    def dtype(self) -> Any:
        return self.records.features.dtype

    def pieces(self, chosen: Indices, most: int) -> Iterator[Records]:
        return (self.records[part] for part in parts_of(chosen, len(self), most))

    def fingerprints(self) -> list[list[Any]]:
        return [array_fingerprint(one) for one in (self.records.features, self.records.targets)]


def pair_of(data: Any) -> tuple[Any, Any]:
    """Features and targets."""
    try:
        features, targets = data
    except (TypeError, ValueError) as error:
        raise InvalidInput("data_not_pair", field="data") from error
    return features, targets


def linear_data(data: Any, records: int, feature_norm: float | None, dtype: Any) -> InMemory:
    """For linear models. A row is scaled without looking at other rows, so privacy holds."""
    features, targets = pair_of(data)
    rows = _numbers("features", features, dtype)
    labels = _numbers("targets", targets, np.float64)
    if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels):
        raise InvalidInput("data_shapes_differ", field="data", features=rows.shape, targets=labels.shape)
    check_count(len(rows), records)
    norms = row_norms_above(rows)
    check_finite(norms, labels)
    check_range(labels, rows.dtype)
    return InMemory(*limited(rows, labels, norms, feature_norm))


def check_finite(norms: Floats, labels: Floats) -> None:
    if not ((norms < _LONGEST).all() and np.isfinite(labels).all()):
        raise InvalidInput("data_not_finite", field="data", norm=_LONGEST)


def any_data(data: Any, records: int) -> InMemory:
    """For a gradient of the user's own: arrays whose first axis counts the records."""
    features, targets = (_unmasked(part) for part in pair_of(data))
    if "O" in (features.dtype.kind, targets.dtype.kind):
        raise must_be("data", "arrays of numbers, or of strings", "objects")
    if not features.ndim or not targets.ndim or len(features) != len(targets):
        raise InvalidInput("data_shapes_differ", field="data", features=features.shape, targets=targets.shape)
    check_count(len(features), records)
    return InMemory(Records(features, targets, np.broadcast_to(1.0, len(targets)), None))


def _numbers(name: str, values: Any, dtype: Any) -> Floats:
    array = _unmasked(values.toarray() if issparse(values) else values)
    try:
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError) as error:
        raise must_be(name, "numbers", f"objects: {error}") from error
    if array.dtype.kind not in "biuf":
        raise must_be(name, "real numbers", f"{array.dtype}")
    return array.astype(float_type(array.dtype, dtype), copy=False)


def check_unmasked(values: Any) -> None:
    """What lies under a mask would be trained on."""
    if np.ma.is_masked(values):
        raise InvalidInput("data_masked", field="data")


def _unmasked(values: Any) -> np.ndarray:
    check_unmasked(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidInput("data_not_arrays", field="data", error=str(error)) from error


def float_type(given: Any, dtype: Any) -> Any:
    """The one asked for; by default single precision stays what it is, and all else becomes double."""
    if dtype is not None:
        return dtype
    return np.float32 if given == np.float32 else np.float64


def checked_float_type(dtype: Any) -> Any:
    """Single or double precision, or None."""
    try:
        kind = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        kind = np.dtype(object)
    if kind not in (None, np.dtype(np.float32), np.dtype(np.float64)):
        raise must_be("dtype", "numpy.float32 or numpy.float64", f"{shown(dtype):.60}")
    return kind


def check_range(labels: Floats, precision: Any) -> None:
    """Products are computed in this precision, and a target that is infinite there is so at every step."""
    largest = float(np.finfo(precision).max)
    if (np.abs(labels) > largest).any():
        got = f"{np.abs(labels).max():.3g}"
        raise InvalidInput("targets_too_large", field="targets", got=got, largest=largest, dtype=str(precision))


def check_count(rows: int, records: int) -> None:
    if rows != records:
        raise InvalidInput("records_not_as_run", field="data", got=f"{rows}", records=records)


def shortened_rows(rows: Floats, norms: Floats, most: float) -> Floats:
    """A copy in which no row is longer than this."""
    scales = most / np.maximum(norms, most)
    copy = rows.copy()
    too_long = scales < 1
    copy[too_long] = rows[too_long] * scales[too_long, None]
    return copy
