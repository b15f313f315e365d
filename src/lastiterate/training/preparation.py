"""Rows as they are trained on: centred and scaled by numbers that are learnt with noise and accounted for.

Two Gaussian mechanisms: the sum of the rows, and the sum of their squared distances from the centre. All else is computed
from what these released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, Adjacency
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import length, row_norms_above
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import up
from lastiterate.training.objectives import leaves_with_normal_noise, summed_in_blocks, sums_in

Pieces = Callable[[], Iterator[Floats]]
"""All rows, some at a time, none longer than the bound that was declared; the same whenever it is called."""


@dataclass(frozen=True)
class Spent:
    """The mu of each mechanism: for the centre, and for the scale."""

    center: float
    scale: float

    @property
    def mu(self) -> float:
        """Total mu of centre and scale together."""
        return up(math.hypot(self.center, self.scale))


@dataclass(frozen=True, eq=False)
class Preparation:
    """A row x becomes (x − center)/scale, cut to the norm `reach`."""

    center: Floats
    scale: float
    reach: float

    def rows(self, features: Floats) -> Floats:
        """Return the prepared rows in the precision of the features, each computed by itself."""
        moved = features - self.center.astype(features.dtype)
        moved /= self.scale
        norms = row_norms_above(moved)
        moved *= (self.reach / np.maximum(norms, self.reach)).astype(features.dtype)[
            :, None
        ]  # in place: rows may be many
        return moved

    def in_features(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return weights for prepared rows as coefficients and a constant for the rows given."""
        coefficients = weights / self.scale
        return coefficients, -coefficients @ self.center


def only_scaled(features: int, most: float) -> Preparation:
    """Return the preparation that scales rows of norm at most `most` to at most 1, without looking at data."""
    return Preparation(np.zeros(features), most, 1.0)


@dataclass(frozen=True, eq=False)
class PrivateRows:
    """Rows that only mechanisms read. No row is longer than `most`; the number of `records` is public."""

    pieces: Pieces
    records: int
    most: float
    adjacency: Adjacency

    def learnt(self, spent: Spent, reach: float, source: Source, centred: bool = True) -> Preparation:
        """Return the preparation learnt by noisy releases; without centring, rows keep their origin."""
        center = self._center(spent.center, source) if centred else np.zeros(next(self.pieces()).shape[1])
        return Preparation(center, self._scale(center, spent.scale, source), reach)

    def _center(self, mu: float, source: Source) -> Floats:
        """The noisy mean, shrunk towards 0 by as much as is noise (James and Stein)."""
        farthest = 2 * self.most if self.adjacency.replaces else self.most
        precision = np.dtype(np.float64) if self._shifted else next(self.pieces()).dtype
        noise = self._moved(farthest, self.most, precision) / mu
        each = (np.ascontiguousarray(rows, precision) for rows in self.pieces())
        total = sum(summed_in_blocks(np.ones(len(rows), precision), rows) for rows in each)
        noisy = leaves_with_normal_noise(np.asarray(total, np.float64), noise, source) / self.records
        beyond = max(noisy.size - 2, 0) * (noise / self.records) ** 2
        square = length(noisy) ** 2
        return noisy * (max(0.0, 1 - beyond / square) if square > 0 else 0.0)

    def _scale(self, center: Floats, mu: float, source: Source) -> float:
        """The root of the mean squared distance from the centre, no smaller than its noise."""
        farthest = self.most + length(center)
        noise = self._moved(1.0, 1.0, np.float64) / mu
        total = sum(self._shares(rows, center, farthest) for rows in self.pieces())
        share = float(leaves_with_normal_noise(np.array([total]), noise, source)[0]) / self.records
        return farthest * math.sqrt(min(max(share, noise / self.records), 1.0))

    def _shares(self, rows: Floats, center: Floats, farthest: float) -> float:
        """Σ of squared distances over the largest there can be: each is from 0 to 1, so one record moves it by 1."""
        distances = row_norms_above(rows - center) / farthest
        squares = np.minimum(np.square(distances), 1.0)
        return float(summed_in_blocks(np.ones(len(rows)), squares[:, None])[0])

    @property
    def _shifted(self) -> bool:
        """Whether the neighbour's rows are counted differently, so that any of them may be rounded in other blocks."""
        return self.adjacency is ADD_OR_REMOVE_ONE

    def _moved(self, change: float, longest: float, precision: Any) -> float:
        """Distance by which one record moves the computed sum of rows, if it moves the exact sum by `change`."""
        rounding = sums_in(precision).factor(self.records, random=self._shifted) - 1
        return up(change + 2 * longest * rounding)
