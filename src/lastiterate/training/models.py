"""Losses of linear models: what a record's score costs, and the sum of clipped gradients without any gradient of one record.

The gradient of a record is (a number that depends on its score) times its features, so its norm is known in closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from lastiterate.algorithms.losses import Loss
from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats


class Model(ABC):
    """A loss of the scores features @ weights, and of targets."""

    @abstractmethod
    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """The derivative of each record's loss in its scores."""

    def gradient_sum(
        self, weights: Floats, features: Floats, targets: Floats, norms: Floats, clip: float | None
    ) -> Floats:
        """Σ of the records' gradients, each clipped to norm `clip`."""
        slopes = self.slopes(features @ weights, targets)
        if clip is not None:
            sizes = (np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)) * norms
            kept = np.minimum(1.0, clip / np.maximum(sizes, np.finfo(sizes.dtype).tiny))
            slopes = slopes * (kept if slopes.ndim == 1 else kept[:, None])
        return np.asarray(features.T @ slopes)


@dataclass(frozen=True)
class _Logistic(Model):
    """Targets −1 and 1."""

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(-targets * expit(-targets * scores))


@dataclass(frozen=True)
class _Huber(Model):
    threshold: float

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets, -self.threshold, self.threshold)


@dataclass(frozen=True)
class _SmoothHinge(Model):
    """Targets −1 and 1; the slope in the margin goes from −1 to 0 over an interval of this width that ends at 1."""

    width: float

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(-targets * np.clip((1 - targets * scores) / self.width, 0.0, 1.0))


@dataclass(frozen=True)
class _Ridge(Model):
    """A residual that is larger than its bound is cut, so that the bound holds."""

    residual_bound: float

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets, -self.residual_bound, self.residual_bound)


@dataclass(frozen=True)
class _Softmax(Model):
    """Targets are the numbers of classes; one column of scores for each."""

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        shares = np.asarray(softmax(scores, axis=1), scores.dtype)
        shares[np.arange(len(shares)), targets.astype(np.intp)] -= 1
        return shares


def model_of(loss: Loss) -> Model:
    """The model whose facts a loss states."""
    given = loss.arguments
    match loss.kind:
        case "logistic":
            return _Logistic()
        case "huber":
            return _Huber(given.get("threshold", 1.0))
        case "smooth_hinge":
            return _SmoothHinge(given.get("width", 1.0))
        case "ridge":
            return _Ridge(given.get("residual_bound", np.inf))
        case "softmax":
            return _Softmax()
    raise InvalidInput(
        f"a loss of kind {loss.kind!r} has no gradient of its own. Give gradient=, or use li.losses.logistic, huber, "
        "smooth_hinge, ridge or softmax."
    )
