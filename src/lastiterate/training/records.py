"""Rows of features with their targets, none longer than was declared.

The features are never copied: a row that is too long is scaled where it is used, by a factor of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.norms import at_least, row_norms_above

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
        """No row is longer."""
        return float(self.norms.max(initial=0.0))

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
class Unmeasured:
    """Records that are short enough as they are. Their norms are computed when they are asked for: most steps need none.

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
        """As `limited` has them."""
        return at_least(at_least(row_norms_above(self.features), self.kept_in), self.features.dtype)

    def in_precision(self, precision: Any) -> Unmeasured:
        """As those that were measured."""
        rows = np.ascontiguousarray(self.features, precision)
        return Unmeasured(rows, self.targets, self.longest, self.kept_in)


def limited(rows: Floats, labels: Floats, norms: Floats, feature_norm: float | None) -> tuple[Records, int]:
    """Records of which none is longer than declared, and how many were. No row is looked at for the sake of another."""
    if feature_norm is None or not (norms > feature_norm).any():
        return Records(rows, labels, at_least(norms, rows.dtype), None), 0
    shrink = 1 - 4 * float(np.finfo(rows.dtype).eps)  # so that rounding cannot make a row too long again
    scales = np.where(norms > feature_norm, shrink * feature_norm / np.maximum(norms, feature_norm), 1.0)
    kept = Records(rows, labels, at_least(np.minimum(norms, feature_norm), rows.dtype), scales)
    return kept, count_longer(norms, feature_norm)


def parts_of(chosen: Indices, records: int, most: int) -> Iterator[Indices]:
    """The same records, at most so many at a time."""
    if not isinstance(chosen, slice):
        yield from (chosen[first : first + most] for first in range(0, len(chosen), most))
        return
    every = range(*chosen.indices(records))
    for first in range(0, len(every), most):
        part = every[first : first + most]
        yield slice(part.start, part.stop, part.step) if part.step > 0 else np.asarray(part, np.intp)


def count_longer(norms: Floats, most: float) -> int:
    """How many rows are longer than this, by more than rounding."""
    return int((norms > most * (1 + _ROUNDING)).sum())
