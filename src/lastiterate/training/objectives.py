"""The sum of clipped gradients over a batch: in closed form for linear models, record by record for anything else."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.norms import row_norms_above
from lastiterate.runs.arithmetic import (
    IN_DOUBLE_PRECISION,
    MOST_FACTOR,
    STRAYING,
    UNBOUNDED,
    Arithmetic,
    Sums,
)
from lastiterate.runs.losses.model import Model
from lastiterate.runs.run import Run
from lastiterate.training.data import Data
from lastiterate.training.linear import clipped_gradient_sum, sums_in
from lastiterate.training.records import Records, Unmeasured
from lastiterate.training.vectors import Vectors

RecordGradients = Callable[[Any, Any, Any], Any]
"""From weights, features and targets of some records: one gradient for each record, along the first axis."""

_RECORDS_AT_ONCE = IN_DOUBLE_PRECISION.block
_ROWS_AT_ONCE = 8192
_TINY = 2.3e-308  # below, factors are not accurate, and a gradient that needs one is as good as 0


class Objective(ABC):
    """What is descended. `precision` is that of what is returned; the iterate itself is always kept in double precision."""

    data: Data
    vectors: Vectors = Vectors()

    @property
    @abstractmethod
    def precision(self) -> Any: ...

    @abstractmethod
    def gradient_sum(self, weights: Floats, chosen: Indices, clip: float | None) -> Floats:
        """Σ of the gradients of these records, each cut to the clip and to what the loss declares; a new vector."""

    @abstractmethod
    def arithmetic(self, run: Run, parameters: int) -> Arithmetic:
        """What rounding adds; an error if that is too much."""


@dataclass(frozen=True, eq=False)
class LinearModel(Objective):
    """No gradient of a single record is ever formed."""

    model: Model
    data: Data
    declared: float = math.inf
    random: bool = True

    @property
    def precision(self) -> Any:
        return self.data.dtype

    @property
    def _products(self) -> Any:
        return precision_of_products(self.precision, self.random)

    @property
    def shape(self) -> tuple[int, ...]:
        width = self.data.shape[1]
        return (width,) if self.model.columns is None else (width, self.model.columns)

    def gradient_sum(self, weights: Floats, chosen: Indices, clip: float | None) -> Floats:
        most, used = _least(self.declared, clip), weights.astype(self._products, copy=False)
        total = np.zeros(weights.shape)
        for piece in self.data.pieces(chosen, _ROWS_AT_ONCE):
            total += clipped_gradient_sum(self.model, used, piece.in_precision(self._products), most)
        return total

    def arithmetic(self, run: Run, parameters: int) -> Arithmetic:
        return linear_arithmetic(run, self.precision, parameters)


@dataclass(frozen=True, eq=False)
class EachRecord(Objective):
    """The user's own gradients, a number of records at a time, each cut to the clip and to what the loss declares."""

    gradients: RecordGradients
    data: Data
    declared: float = math.inf
    sensitivity: float = math.inf

    @property
    def precision(self) -> Any:
        return np.float64

    def gradient_sum(self, weights: Floats, chosen: Indices, clip: float | None) -> Floats:
        most, total, lengths = _least(self.declared, clip), np.zeros_like(weights), 0.0
        for piece in self.data.pieces(chosen, _RECORDS_AT_ONCE):
            rows = self._rows(weights, piece)
            norms = row_norms_above(rows)
            kept = most / np.maximum(norms, most) if math.isfinite(most) else np.ones(len(rows))
            kept[kept < _TINY] = 0.0
            total += np.asarray(kept @ rows).reshape(weights.shape)
            lengths += float(norms.sum())
        if not math.isfinite(most):
            self._check_rounding(lengths, len(self.data))
        return total

    def arithmetic(self, run: Run, parameters: int) -> Arithmetic:
        """`_check_rounding` holds gradients without a bound to a part of the sensitivity."""
        most = _least(self.declared, _smallest_clip(run))
        return acceptable_arithmetic(run, IN_DOUBLE_PRECISION) if math.isfinite(most) else UNBOUNDED

    def _rows(self, weights: Floats, records: Records | Unmeasured) -> Floats:
        found = _as_numbers(self.gradients(weights.copy(), records.features, records.targets))
        if found.shape != (len(records), *weights.shape):
            shape = len(records), *weights.shape
            raise InvalidInput("gradients_shape", field="loss", got=f"{found.shape}", shape=shape)
        if not np.isfinite(found).all():
            raise InvalidInput("gradients_not_finite", field="loss")
        return found.reshape(len(records), -1)

    def _check_rounding(self, lengths: float, records: int) -> None:
        """Of gradients without a bound: the rounding of their sum is small beside the sensitivity, or nothing is claimed."""
        rounding = (_RECORDS_AT_ONCE + records / _RECORDS_AT_ONCE) * 2.0**-53 * lengths
        if not 2 * rounding <= (UNBOUNDED.factor - 1) * self.sensitivity:
            raise InvalidInput("gradients_too_large")


def _least(declared: float, clip: float | None) -> float:
    return declared if clip is None else min(declared, clip)


def linear_arithmetic(run: Run, precision: Any, parameters: int) -> Arithmetic:
    """Of the training of a linear model whose features are in this precision."""
    products = precision_of_products(precision, run.batches.random)
    most, longest = _least(run.loss.gradient_bound, _smallest_clip(run)), run.loss.feature_norm or 1.0
    # Numbers too small to be held, in each of the products of a block, and in slopes of rows that are too long.
    smallest = float(np.finfo(products).smallest_subnormal) * (math.sqrt(parameters) + 1e3 * longest)
    sums = sums_in(products)
    return acceptable_arithmetic(run, sums, 2 * sums.block * smallest / most)


def precision_of_products(precision: Any, random: bool) -> Any:
    """That of the features; but what a random batch would be without a record must not be rounded otherwise."""
    return np.dtype(np.float64) if random else np.dtype(precision)


def acceptable_arithmetic(run: Run, sums: Sums, lost: float = 0.0) -> Arithmetic:
    """Rounding is relative to two gradients of the greatest length; the sensitivity may be known to be smaller."""
    beyond = sums.factor(run.batches.largest, run.batches.random) - 1 + lost
    longest = bound_of_gradients(run)
    factor = 1 + beyond * (max(1.0, 2 * longest / run.loss.gradient_sensitivity) if run.adjacency.replaces else 2.0)
    if not factor <= MOST_FACTOR:
        most, size = MOST_FACTOR, run.batches.largest
        raise InvalidInput("batches_round_too_much", field="batches", got=f"{factor:.6g}", most=most, size=size)
    return Arithmetic(factor, STRAYING)


def bound_of_gradients(run: Run) -> float:
    """No gradient is longer, at any step."""
    return _least(run.loss.gradient_bound, _largest_clip(run))


def _smallest_clip(run: Run) -> float | None:
    return min(run.clip) if isinstance(run.clip, tuple) else run.clip


def _largest_clip(run: Run) -> float | None:
    return max(run.clip) if isinstance(run.clip, tuple) else run.clip


def _as_numbers(found: Any) -> Floats:
    """What the user's function returned, in double precision."""
    try:
        array = np.asarray(found)
        if array.dtype.kind not in "iufb":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # text, None, ragged lists, tensors on another device
        raise InvalidInput("gradients_not_numbers", field="loss", got=type(found).__name__) from error
