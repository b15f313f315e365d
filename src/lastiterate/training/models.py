"""Losses of linear models: what a record's score costs, and the sum of clipped gradients without any gradient of one record.

The gradient of a record is (a number that depends on its score) times its features, so its norm is known in closed form.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lastiterate.algorithms.arithmetic import IN_DOUBLE_PRECISION, IN_SINGLE_PRECISION, Sums
from lastiterate.algorithms.losses import Loss, PullLimit
from lastiterate.errors import InvalidInput, checked_count
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import row_norms
from lastiterate.training.data import Records
from lastiterate.training.pull import limit_shares

_NUMBERS_AT_ONCE = 1 << 18  # in sums of blocks that wait to be added up


class Model(ABC):
    """A loss of the scores features @ weights, and of targets. `meant`: what targets have to be."""

    meant = "finite numbers"

    @property
    def columns(self) -> int | None:
        """Of the weights; None where they are a vector."""
        return None

    @abstractmethod
    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """The derivative of each record's loss in its scores."""

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        """Which targets mean something to this loss."""
        return np.isfinite(targets)

    def check_targets(self, targets: Floats) -> None:
        known = self.known(targets)
        if not known.all():
            raise InvalidInput(f"targets must be {self.meant}. Got {float(targets[~known][0]):g}.")

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        """Slopes of gradients that are cut where the slopes of a record are longer than its limit."""
        return np.clip(slopes, -limits, limits)

    def gradient_sum(self, weights: Floats, given: Records, most: float) -> Floats:
        """Σ of the records' gradients, each cut to norm `most`, with products in the precision of the features."""
        scores = np.asfortranarray(given.features @ weights)  # columns lie together: sums over classes are fast
        if given.scales is not None:
            scores = scores * _column(given.scales, scores)
        slopes = self.slopes(scores, given.targets)
        if math.isfinite(most):
            slopes = self.cut(slopes, _limits(most, given.norms))
        if given.scales is not None:
            slopes = slopes * _column(given.scales, slopes)
        return summed_in_blocks(slopes, given.features)


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


class _Sides(Model):
    """A loss of the margin target·score."""

    meant = "-1 or 1"

    @abstractmethod
    def pull(self, margins: Floats) -> Floats:
        """Minus the derivative in the margin."""

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        sides = targets.astype(scores.dtype, copy=False)
        return np.asarray(-sides * self.pull(sides * scores))

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        return np.abs(targets) == 1


@dataclass(frozen=True)
class _Logistic(_Sides):
    def pull(self, margins: Floats) -> Floats:
        return np.asarray(expit(-margins))


@dataclass(frozen=True)
class _SmoothHinge(_Sides):
    """The slope in the margin goes from −1 to 0 over an interval of this width that ends at 1."""

    width: float

    def pull(self, margins: Floats) -> Floats:
        return np.clip((1 - margins) / self.width, 0.0, 1.0)


@dataclass(frozen=True)
class _Residual(Model):
    """A squared loss whose residual is cut at `bound`: Huber's loss, or ridge with the bound that it declares."""

    bound: float

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets.astype(scores.dtype, copy=False), -self.bound, self.bound)


@dataclass(frozen=True)
class _Classes(Model):
    """One column of scores for each class."""

    classes: int
    meant = "the numbers of classes, from 0"

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        """Together, as one vector."""
        sizes = row_norms(slopes)
        over = np.flatnonzero(sizes > limits)
        if len(over):
            slopes[over] *= (limits[over] / sizes[over]).astype(slopes.dtype)[:, None]
        return slopes

    @property
    def columns(self) -> int:
        return self.classes

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        return (targets == np.floor(targets)) & (targets >= 0) & (targets < self.classes)


@dataclass(frozen=True)
class _Softmax(_Classes):
    """With a `limit`, probabilities are cut as it says, so that no gradient is long and the loss stays convex."""

    limit: PullLimit | None = None

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        places = targets.astype(np.intp)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        if self.limit is not None:
            limit_shares(shares, scores, places, self.limit)
        shares[np.arange(len(shares)), places] -= 1
        return shares


@dataclass(frozen=True)
class _OneVsRest(_Classes):
    """One problem of two classes for each class, each with its part clip/√classes of the clip."""

    each: _Sides

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        sides = np.where(targets[:, None] == np.arange(self.classes), 1.0, -1.0)
        return self.each.slopes(scores, sides)

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        each = (limits / limits.dtype.type(math.sqrt(self.classes)))[:, None]
        return np.clip(slopes, -each, each)


def model_of(loss: Loss, classes: int | None = None) -> Model:
    """The model whose facts a loss states; only a softmax that does not say it needs the number of classes."""
    given = loss.arguments
    asked = None if classes is None else checked_count("classes", classes, least=2)
    known = given.get("classes", asked if loss.kind == "softmax" else None)
    if asked not in (None, known):
        raise InvalidInput(f"classes must be what the loss says, {known or 'two sides, −1 and 1'}. Got {asked}.")
    match loss.kind:
        case "logistic":
            return _one_or_many(_Logistic(), given)
        case "smooth_hinge":
            return _one_or_many(_SmoothHinge(given.get("width", 1.0)), given)
        case "huber":
            return _Residual(given.get("threshold", 1.0))
        case "ridge":
            return _Residual(given.get("residual_bound", np.inf))
        case "softmax":
            return _softmax(given, known)
    raise InvalidInput(
        f"a loss of kind {loss.kind!r} has no gradient of its own. Give loss=, a function that returns the gradient of "
        "each record, or use li.losses.logistic, huber, smooth_hinge, ridge or softmax."
    )


def _softmax(given: dict[str, Any], classes: int | None) -> Model:
    if classes is None:
        raise InvalidInput(
            "a softmax loss needs classes=, the number of classes: to count them would look at the data."
        )
    return _Softmax(classes, PullLimit(given["pull"], classes) if "pull" in given else None)


def _one_or_many(each: _Sides, given: dict[str, int]) -> Model:
    return _OneVsRest(given["classes"], each) if "classes" in given else each
