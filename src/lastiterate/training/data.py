"""Features and targets as a trainer needs them: finite, one row for each record, no row longer than was declared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import issparse

from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.norms import at_least, row_norms_above
from lastiterate.training.fingerprint import array_fingerprint

_LONGEST = 1e150


class Data(ABC):
    """Records that a trainer reads, wherever they are stored.

    `shortened`: how many rows were longer than declared. It was computed from the data: it is not private.
    """

    shortened: int

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of all features."""

    @property
    @abstractmethod
    def dtype(self) -> Any:
        """Type of the features as they are trained on."""

    @abstractmethod
    def pieces(self, chosen: Indices, most: int) -> Iterator[Records | Unmeasured]:
        """Yield the chosen records in pieces of at most `most`."""

    @abstractmethod
    def fingerprints(self) -> list[list[Any]]:
        """Fingerprints of features and targets."""


@dataclass(frozen=True, eq=False)
class InMemory(Data):
    """Records in arrays as they were given, without a copy."""

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
    """Return features and targets as a pair, or raise an error."""
    try:
        features, targets = data
    except (TypeError, ValueError) as error:
        raise InvalidInput("data_not_pair", field="data") from error
    return features, targets


def linear_data(data: Any, records: int, feature_norm: float | None, dtype: Any) -> InMemory:
    """Check data for linear models; a row is scaled without looking at other rows, so privacy holds."""
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
    """Check data for a gradient of the user's own: arrays whose first axis counts the records."""
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
    """Raise an error if values are masked, since what a mask hides would be trained on."""
    if np.ma.is_masked(values):
        raise InvalidInput("data_masked", field="data")


def _unmasked(values: Any) -> np.ndarray:
    check_unmasked(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidInput("data_not_arrays", field="data", error=str(error)) from error


def float_type(given: Any, dtype: Any) -> Any:
    """Return the type asked for; by default single precision stays, and anything else becomes double."""
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
    """Raise an error if targets are infinite in the precision in which products are computed."""
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


# Records in memory, none longer than declared.
#
# The features are never copied: a row that is too long is scaled where it is used, by a factor of its own.


_FAR = 1e-3  # a row that has to shrink by more is scaled itself, so that no product of it can overflow
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

    @property
    def longest(self) -> float:
        """Upper bound on the norm of a row."""
        return float(self.norms.max(initial=0.0))

    def in_precision(self, precision: Any) -> Records:
        """Return contiguous rows in this precision, so that no record decides how the others lie in memory.

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
class Unmeasured:
    """Records short enough as they are; norms are computed on request, since most steps need none.

    `longest` is what no norm exceeds; `kept_in` is the precision that the rows came in.
    """

    features: Floats
    targets: Floats
    longest: float
    kept_in: Any
    scales = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def norms(self) -> Floats:
        """Upper bounds on the norms of the rows, as `limited` computes them."""
        return at_least(at_least(row_norms_above(self.features), self.kept_in), self.features.dtype)

    def in_precision(self, precision: Any) -> Unmeasured:
        """Return the records with contiguous rows in this precision."""
        rows = np.ascontiguousarray(self.features, precision)
        return Unmeasured(rows, self.targets, self.longest, self.kept_in)


def limited(rows: Floats, labels: Floats, norms: Floats, feature_norm: float | None) -> tuple[Records, int]:
    """Return records scaled down to the declared norm, each by itself, and the number of those that were longer."""
    if feature_norm is None or not (norms > feature_norm).any():
        return Records(rows, labels, at_least(norms, rows.dtype), None), 0
    shrink = 1 - 4 * float(np.finfo(rows.dtype).eps)  # so that rounding cannot make a row too long again
    scales = np.where(norms > feature_norm, shrink * feature_norm / np.maximum(norms, feature_norm), 1.0)
    kept = Records(rows, labels, at_least(np.minimum(norms, feature_norm), rows.dtype), scales)
    return kept, count_longer(norms, feature_norm)


def parts_of(chosen: Indices, records: int, most: int) -> Iterator[Indices]:
    """Yield the chosen records in parts of at most `most`."""
    if not isinstance(chosen, slice):
        yield from (chosen[first : first + most] for first in range(0, len(chosen), most))
        return
    every = range(*chosen.indices(records))
    for first in range(0, len(every), most):
        part = every[first : first + most]
        yield slice(part.start, part.stop, part.step) if part.step > 0 else np.asarray(part, np.intp)


def count_longer(norms: Floats, most: float) -> int:
    """Number of rows that are longer than `most` by more than rounding."""
    return int((norms > most * (1 + _ROUNDING)).sum())


# Records outside memory: mapped files, or any source that can be read piece by piece.


@runtime_checkable
class RecordSource(Protocol):
    """Interface of `li.train` for records that do not fit into memory. Every read must return the same numbers.

    `shape` is (records, features); `dtype` is that of the features: numpy.float32 or numpy.float64.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> Any: ...

    def __len__(self) -> int: ...

    def pieces(self, chosen: Indices, rows: int) -> Iterator[tuple[Any, Any]]:
        """Yield features and targets of the chosen records in order, `rows` at a time; the last piece may be shorter.

        `chosen` is a slice or an array of positions.
        """
        ...


@dataclass(frozen=True, eq=False)
class ArrayRecords:
    """Records in two arrays, of which only those that a step uses are read."""

    features: np.ndarray
    targets: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.features.shape

    @property
    def dtype(self) -> Any:
        return self.features.dtype

    def __len__(self) -> int:
        return len(self.features)

    def pieces(self, chosen: Indices, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return ((self.features[part], self.targets[part]) for part in parts_of(chosen, len(self), rows))


def on_disk(array: Any) -> bool:
    """Whether an array shows a file that is mapped into memory, or a part of one."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def mapped_pair(features: np.ndarray, targets: Any) -> ArrayRecords:
    """Return features in a mapped file, and targets, as records; they are checked, not copied."""
    check_unmasked(features)
    check_unmasked(targets)
    rows, labels = np.asarray(features), np.asarray(targets)
    if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels):
        raise InvalidInput("data_shapes_differ", field="data", features=rows.shape, targets=labels.shape)
    for name, array in (("features", rows), ("targets", labels)):
        if array.dtype.kind not in "biuf":
            raise must_be(name, "real numbers", f"{array.dtype}")
    return ArrayRecords(rows, labels)
