"""Records that lie somewhere else than in memory: files that are mapped, or whatever can be read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lastiterate.errors import InvalidInput, must_be
from lastiterate.numerics.arrays import Indices
from lastiterate.training.data import check_unmasked
from lastiterate.training.records import parts_of


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
        """Features and targets of the chosen records, in the given order, `rows` at a time; the last piece may be shorter.

        `chosen` is a slice or an array of positions.
        """
        ...


@dataclass(frozen=True, eq=False)
class ArrayRecords:
    """Two arrays, of which only the records that a step uses are touched."""

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
    """Features in a mapped file, and targets, as they are given."""
    check_unmasked(features)
    check_unmasked(targets)
    rows, labels = np.asarray(features), np.asarray(targets)
    if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels):
        raise InvalidInput("data_shapes_differ", field="data", features=rows.shape, targets=labels.shape)
    for name, array in (("features", rows), ("targets", labels)):
        if array.dtype.kind not in "biuf":
            raise must_be(name, "real numbers", f"{array.dtype}")
    return ArrayRecords(rows, labels)
