"""Sums of clipped gradients over a batch, and the one function through which noisy values are released."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput, must_be
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.exact_noise import NoiseLaw, nearest_multiples, normal, public_grid
from lastiterate.numerics.norms import length, row_norms_above
from lastiterate.numerics.randomness import Source
from lastiterate.runs.losses.loss import Model
from lastiterate.runs.noise import (
    IN_DOUBLE_PRECISION,
    IN_SINGLE_PRECISION,
    MOST_FACTOR,
    STRAYING,
    UNBOUNDED,
    Arithmetic,
    Sums,
)
from lastiterate.runs.run import Run
from lastiterate.training.data import Data, Records, Unmeasured

# Releases: the nearest point of a public grid to value + noise, exactly.


_FARTHEST = 2.0**28  # times the noise: beyond, doubles are too coarse to be quick
RELEASED = 12  # powers of two by which the grid of what is released is finer than the noise
_SMALLEST = 1e-290


def leaves(
    value: Floats,
    noises: Sequence[tuple[NoiseLaw, float]],
    source: Source,
    factor: float = 1.0,
    finer: int = RELEASED,
) -> Floats:
    """Return factor·value with these noises for release, on a grid 2^finer times finer than the noise.

    Its law is that of the ideal mechanism, rounded: low bits show nothing, and a guarantee with δ = 0 stays one, but for a
    probability of 2⁻¹⁹⁰ that noise lies where 191 random bits do not reach.
    """
    scale = max(scale for _, scale in noises)
    if scale < _SMALLEST:
        raise must_be("noise", f"at least {_SMALLEST:g}", f"{scale:g}; use other units")
    with np.errstate(over="ignore"):
        near = not value.size or float(np.abs(value).max()) * abs(factor / scale) < _FARTHEST
    if near:
        return nearest_multiples(value, public_grid(scale, finer), noises, source, factor)
    if source.private:
        raise InvalidInput("noise_lost_beside_value", noise=scale, value=float(np.abs(value).max()))
    for _ in noises:
        source.bits(value.shape)
    return np.asarray(value * factor)  # from a seed, and marked as not private


def leaves_with_normal_noise(value: Floats, std: float, source: Source, finer: int = RELEASED) -> Floats:
    """Release the value with Gaussian noise."""
    return leaves(value, ((normal, std),), source, finer=finer)


# Operations on arrays: numpy's here, PyTorch's tensors in `lastiterate.torch`.


_FINEST = 40  # a finer grid would leave too many roundings in doubt


class Vectors:
    """Operations on numpy's arrays in double precision, with noise drawn exactly around their values."""

    straying = STRAYING
    """By how much the iterates of a training may stray, as mu."""
    finest = _FINEST

    def zeros_like(self, vector: Any) -> Any:
        return np.zeros(vector.shape)

    def length(self, vector: Any) -> float:
        return length(vector)

    def noisy(self, value: Any, std: float, source: Source, finer: int, length: float | None = None) -> Any:
        """Return the value with Gaussian noise on a grid `finer` powers of two below the noise; may overwrite it.

        `length`: that of the value, where it is known.
        """
        return leaves_with_normal_noise(value, std, source, finer)

    def settled(self, run: Run, value: Any, step_size: float) -> Any:
        """Return the value after the proximal map and the projection of a run."""
        return run.domain.projected(value if run.prox is None else run.prox.mapped(value, step_size))

    def grid_of_released(self, finer: int) -> int:
        """Fineness of the grid of what is released, where that of hidden iterates is `finer`."""
        return RELEASED

    def grid_of_hidden(self, apart: float, noises: tuple[float, float], roundings: float) -> int:
        """Fineness at which half a grid step, enlarged by the next step, strays by half of what is allowed.

        Also where the noise of the next step is smaller. Where no Lipschitz constant is known, no account uses one, and any
        grid will do.
        """
        if not math.isfinite(apart):
            return RELEASED
        least, most = noises
        return math.ceil(math.log2(roundings * most / least * max(1.0, apart) / self.straying))


# Objectives: clipped gradient sums, in closed form for linear models, else record by record.


RecordGradients = Callable[[Any, Any, Any], Any]
"""From weights, features and targets of some records: one gradient for each record, along the first axis."""

_RECORDS_AT_ONCE = IN_DOUBLE_PRECISION.block
_ROWS_AT_ONCE = 8192
_TINY = 2.3e-308  # below, factors are not accurate, and a gradient that needs one is as good as 0


class Objective(ABC):
    """An objective to descend; gradients have this `precision`, the iterate always double precision."""

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
        """Rounding error of the run as its arithmetic; raise an error if it is too large."""


@dataclass(frozen=True, eq=False)
class LinearModel(Objective):
    """A linear model, for which no gradient of a single record is ever formed."""

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
    """The user's own gradients, some records at a time, each cut to the clip and to the declared bound."""

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
        """Rounding of the run; that of unbounded gradients is held small by `_check_rounding`."""
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
        """Raise an error if the rounding of a sum of unbounded gradients is not small beside the sensitivity."""
        rounding = (_RECORDS_AT_ONCE + records / _RECORDS_AT_ONCE) * 2.0**-53 * lengths
        if not 2 * rounding <= (UNBOUNDED.factor - 1) * self.sensitivity:
            raise InvalidInput("gradients_too_large")


def _least(declared: float, clip: float | None) -> float:
    return declared if clip is None else min(declared, clip)


def linear_arithmetic(run: Run, precision: Any, parameters: int) -> Arithmetic:
    """Arithmetic of training a linear model whose features are in this precision."""
    products = precision_of_products(precision, run.batches.random)
    most, longest = _least(run.loss.gradient_bound, _smallest_clip(run)), run.loss.feature_norm or 1.0
    # Numbers too small to be held, in each of the products of a block, and in slopes of rows that are too long.
    smallest = float(np.finfo(products).smallest_subnormal) * (math.sqrt(parameters) + 1e3 * longest)
    sums = sums_in(products)
    return acceptable_arithmetic(run, sums, 2 * sums.block * smallest / most)


def precision_of_products(precision: Any, random: bool) -> Any:
    """Precision of products: that of the features; double for random batches, which must round alike with one less."""
    return np.dtype(np.float64) if random else np.dtype(precision)


def acceptable_arithmetic(run: Run, sums: Sums, lost: float = 0.0) -> Arithmetic:
    """Return the rounding relative to the sensitivity, which may be less than two gradients; an error if too large."""
    beyond = sums.factor(run.batches.largest, run.batches.random) - 1 + lost
    longest = bound_of_gradients(run)
    factor = 1 + beyond * (max(1.0, 2 * longest / run.loss.gradient_sensitivity) if run.adjacency.replaces else 2.0)
    if not factor <= MOST_FACTOR:
        most, size = MOST_FACTOR, run.batches.largest
        raise InvalidInput("batches_round_too_much", field="batches", got=f"{factor:.6g}", most=most, size=size)
    return Arithmetic(factor, STRAYING)


def bound_of_gradients(run: Run) -> float:
    """Upper bound on the norm of a record's gradient at any step."""
    return _least(run.loss.gradient_bound, _largest_clip(run))


def _smallest_clip(run: Run) -> float | None:
    return min(run.clip) if isinstance(run.clip, tuple) else run.clip


def _largest_clip(run: Run) -> float | None:
    return max(run.clip) if isinstance(run.clip, tuple) else run.clip


def _as_numbers(found: Any) -> Floats:
    """Return in double precision what the user's function returned."""
    try:
        array = np.asarray(found)
        if array.dtype.kind not in "iufb":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # text, None, ragged lists, tensors on another device
        raise InvalidInput("gradients_not_numbers", field="loss", got=type(found).__name__) from error


# Clipped gradient sums of linear models, without forming a record's gradient.
#
# The gradient of a record is (a number that depends on its score) times its features, so its norm is known in closed
# form.


_NUMBERS_AT_ONCE = 1 << 18  # in sums of blocks that wait to be added up


def clipped_gradient_sum(model: Model, weights: Floats, given: Records | Unmeasured, most: float) -> Floats:
    """Σ of the records' gradients, each cut to norm `most`, with products in the precision of the features."""
    scores = np.asfortranarray(given.features @ weights)  # columns lie together: sums over classes are fast
    if given.scales is not None:
        scores = scores * _column(given.scales, scores)
    slopes = model.slopes(scores, given.targets)
    if math.isfinite(most) and not _surely_short(slopes, given.longest, model.uncut * most):
        slopes = model.cut(slopes, _limits(most, given.norms))
    if given.scales is not None:
        slopes = slopes * _column(given.scales, slopes)
    return summed_in_blocks(slopes, given.features)


def _surely_short(slopes: Floats, longest: float, most: float) -> bool:
    """Whether no gradient is longer than `most`, by a quick test that is never wrong when it says yes.

    No row is longer than `longest`. Squares below 1e-30 may have lost digits, and sums of them lose a part 2⁻²⁴ for each
    column at most.
    """
    with np.errstate(over="ignore"):
        squares = np.square(slopes) if slopes.ndim == 1 else np.square(slopes).sum(axis=1)
    largest, columns = float(squares.max(initial=0.0)), slopes[0].size if len(slopes) else 1
    slack = 1.001 + columns * 2.0**-22
    return largest > 1e-30 and math.sqrt(largest) * longest * slack <= most


def sums_in(precision: Any) -> Sums:
    """Return how sums are taken; in single precision few rows at once, so that no record moves their rounding far."""
    return IN_SINGLE_PRECISION if precision == np.float32 else IN_DOUBLE_PRECISION


def summed_in_blocks(slopes: Floats, rows: Floats) -> Floats:
    """Σ slope·row in double precision, from blocks that are summed in that of the rows."""
    block = sums_in(rows.dtype).block
    columns, whole = slopes.reshape(len(rows), -1), len(rows) // block * block
    total = np.asarray(columns[whole:].T @ rows[whole:], np.float64)
    at_once = block * max(1, _NUMBERS_AT_ONCE // total.size)
    for first in range(0, whole, at_once):
        chosen = slice(first, min(first + at_once, whole))
        left, right = _stacked(np.ascontiguousarray(columns[chosen]), block), _stacked(rows[chosen], block)
        total += (left.swapaxes(1, 2) @ right).sum(axis=0, dtype=np.float64)
    return total.T.reshape(rows.shape[1], *slopes.shape[1:])


def _stacked(rows: Floats, block: int) -> Floats:
    return rows.reshape(-1, block, rows.shape[1])


def _limits(most: float, norms: Floats) -> Floats:
    """Largest finite slopes for which slope·norm is at most `most`, also for rows of zeros."""
    precision = norms.dtype
    with np.errstate(divide="ignore", over="ignore"):
        limits = np.minimum(most / norms.astype(np.float64), float(np.finfo(precision).max))
    nearest = limits.astype(precision)
    return np.where(nearest > limits, np.nextafter(nearest, 0, dtype=precision), nearest)


def _column(values: Floats, like: Floats) -> Floats:
    return values if like.ndim == 1 else values[:, None]
