"""Sums of clipped gradients of linear models, without any gradient of one record.

The gradient of a record is (a number that depends on its score) times its features, so its norm is known in closed form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.runs.arithmetic import IN_DOUBLE_PRECISION, IN_SINGLE_PRECISION, Sums
from lastiterate.runs.losses.model import Model
from lastiterate.training.records import Records, Unmeasured

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
    """Whether no gradient is longer than `most`, so that nothing is to be cut: quickly, and never wrongly.

    No row is longer than `longest`. Squares below 1e-30 may have lost digits, and sums of them lose a part 2⁻²⁴ for each
    column at most.
    """
    with np.errstate(over="ignore"):
        squares = np.square(slopes) if slopes.ndim == 1 else np.square(slopes).sum(axis=1)
    largest, columns = float(squares.max(initial=0.0)), slopes[0].size if len(slopes) else 1
    slack = 1.001 + columns * 2.0**-22
    return largest > 1e-30 and math.sqrt(largest) * longest * slack <= most


def sums_in(precision: Any) -> Sums:
    """In single precision few rows are summed at once, so that one record cannot move their rounding far."""
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
    """On slopes, so that slope·norm is at most `most`; finite, also for rows of zeros."""
    precision = norms.dtype
    with np.errstate(divide="ignore", over="ignore"):
        limits = np.minimum(most / norms.astype(np.float64), float(np.finfo(precision).max))
    nearest = limits.astype(precision)
    return np.where(nearest > limits, np.nextafter(nearest, 0, dtype=precision), nearest)


def _column(values: Floats, like: Floats) -> Floats:
    return values if like.ndim == 1 else values[:, None]
