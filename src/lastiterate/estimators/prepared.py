"""Rows as they are trained on: no longer than was declared, prepared, with a constant feature for the intercept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.rounding import down, up
from lastiterate.training.data import RecordSource, on_disk, parts_of, shortened_rows
from lastiterate.training.preparation import Preparation, Spent

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
        """Yield all rows, some at a time."""
        return (self[part] for part in parts_of(slice(None), len(self), ROWS_AT_ONCE))


@dataclass(frozen=True, eq=False)
class PreparedRecords:
    """Records of which only a piece is prepared at a time."""

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
        """Return all prepared rows at once, with the targets."""
        return self._rows(slice(None)), self.targets

    def _rows(self, chosen: Indices) -> Floats:
        return _with_constant(self.preparation.rows(self.rows[chosen]), self.constant)


def prepared(given: PreparedRecords) -> tuple[Floats, Floats] | RecordSource:
    """Return the records as `train` takes them: arrays, or a source where the features lie on disk."""
    return given if on_disk(given.rows.features) else given.whole()


def _with_constant(features: Floats, constant: float) -> Floats:
    if not constant:
        return features
    return np.hstack([features, np.full((len(features), 1), constant, features.dtype)])


# Budget for preparing the data: squares of mu add up.


# Of mu².
_LEAST = 1e-12  # that is left for a plan; where nothing is left, calibration says so
_CENTER, _SCALE, _TARGET_CENTER = 0.1, 0.01, 0.05


@dataclass(frozen=True)
class PreparationBudget:
    """Budget spent before training: on features and on targets (None if nothing is learnt), and `before`, upstream."""

    features: Spent | None = None
    targets: Spent | None = None
    before: float = 0.0

    @classmethod
    def of_features(cls, mu: float, centred: bool) -> PreparationBudget:
        """Return a budget for features alone; without centring, nothing is spent on their centre."""
        return cls(_parts(mu, _CENTER if centred else 0.0))

    @staticmethod
    def all_of(mu: float) -> Spent:
        """Split mu between centre and scale of features alone, a hair less so that the sum is at most mu."""
        part = down(mu, by=1e-9) / math.sqrt(_CENTER + _SCALE)
        return _parts(part, _CENTER)

    def and_targets(self, mu: float, centred: bool) -> PreparationBudget:
        return replace(self, targets=_parts(mu, _TARGET_CENTER if centred else 0.0))

    @property
    def mu(self) -> float:
        """Total mu spent before training."""
        parts = [part.mu for part in (self.features, self.targets) if part is not None]
        return up(math.hypot(self.before, *parts), operations=len(parts))

    def left_of(self, mu: float) -> float:
        """Return the mu left for training."""
        return math.sqrt(max(mu**2 - self.mu**2, _LEAST * mu**2))


def _parts(mu: float, center: float) -> Spent:
    return Spent(math.sqrt(center) * mu, math.sqrt(_SCALE) * mu)
