"""Rows as they are trained on: no longer than was declared, prepared, with a constant feature for the intercept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.training.data import shortened_rows
from lastiterate.training.preparation import Preparation
from lastiterate.training.records import parts_of
from lastiterate.training.sources import RecordSource, on_disk

ROWS_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class ShortRows:
    """Features of which no row is longer than `most`: rows whose `norms` exceed it are scaled down, each by itself."""

    features: Floats
    norms: Floats
    most: float

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, chosen: Indices) -> Floats:
        rows, norms = self.features[chosen], self.norms[chosen]
        return shortened_rows(rows, norms, self.most) if (norms > self.most).any() else np.asarray(rows)

    def pieces(self) -> Iterator[Floats]:
        """All of them, some at a time."""
        return (self[part] for part in parts_of(slice(None), len(self), ROWS_AT_ONCE))


@dataclass(frozen=True, eq=False)
class PreparedRecords:
    """Of which only a piece is prepared at a time."""

    rows: ShortRows
    targets: Floats
    preparation: Preparation
    constant: float

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.rows.features.shape[1] + (self.constant > 0)

    @property
    def dtype(self) -> Any:
        return self.rows.features.dtype

    def __len__(self) -> int:
        return len(self.targets)

    def pieces(self, chosen: Indices, rows: int) -> Iterator[tuple[Floats, Floats]]:
        return ((self._rows(part), self.targets[part]) for part in parts_of(chosen, len(self), rows))

    def whole(self) -> tuple[Floats, Floats]:
        """All of them at once."""
        return self._rows(slice(None)), self.targets

    def _rows(self, chosen: Indices) -> Floats:
        return _with_constant(self.preparation.rows(self.rows[chosen]), self.constant)


def prepared(given: PreparedRecords) -> tuple[Floats, Floats] | RecordSource:
    """What `train` takes: arrays, or a source where the features lie on disk."""
    return given if on_disk(given.rows.features) else given.whole()


def _with_constant(features: Floats, constant: float) -> Floats:
    if not constant:
        return features
    return np.hstack([features, np.full((len(features), 1), constant, features.dtype)])
