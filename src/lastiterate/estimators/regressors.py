"""Private regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from lastiterate.algorithms import losses
from lastiterate.algorithms.losses import Loss
from lastiterate.errors import POSITIVE, InvalidInput, checked_number, shown
from lastiterate.estimators.base import DataShape, PrivateLinearModel
from lastiterate.estimators.leaks import Leaks
from lastiterate.privacy.adjacency import Adjacency

REGRESSIONS = ("huber", "ridge")


class PrivateLinearRegression(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Linear regression whose released model is (ε, δ)-differentially private.

    `target_bound` bounds |y|: targets beyond it are cut. `loss="huber"` pays linearly for residuals beyond
    `threshold`·target_bound; `loss="ridge"` is quadratic, with gradients clipped where a residual exceeds target_bound.
    All else is as in `PrivateLogisticRegression`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        feature_norm: float | None = None,
        target_bound: float | None = None,
        loss: str = "huber",
        threshold: float = 0.25,
        l2: float | None = None,
        batches: Any = None,
        epochs: int | None = None,
        step_size: float | None = None,
        adjacency: Adjacency | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_norm = feature_norm
        self.target_bound = target_bound
        self.loss = loss
        self.threshold = threshold
        self.l2 = l2
        self.batches = batches
        self.epochs = epochs
        self.step_size = step_size
        self.adjacency = adjacency
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def _guess(self, shape: DataShape) -> tuple[float, float]:
        return 1.0, 0.5

    def _loss(self, shape: DataShape, l2: float) -> Loss:
        if self.loss not in REGRESSIONS:
            raise InvalidInput(
                f"loss must be one of {', '.join(REGRESSIONS)}. Got {shown(self.loss):.60}.", field="loss"
            )
        if self.loss == "ridge":
            return losses.ridge(feature_norm=shape.norm, l2=l2, clip=shape.norm)
        return losses.huber(feature_norm=shape.norm, threshold=self.threshold, l2=l2)

    def fit(self, X: Any, y: Any) -> Any:
        """Train on private data. Rows longer than `feature_norm` are scaled down, targets beyond `target_bound` cut."""
        features, wanted = self._validated(X, y, y_numeric=True)
        targets, leaks = wanted.astype(np.float64), Leaks()
        bound = self._bound(targets, leaks)
        coefficients = self._fit(features, np.clip(targets / bound, -1.0, 1.0), 1, leaks)
        self.coef_ = coefficients[0] * bound
        self.intercept_ = float(self.intercept_[0]) * bound
        return self

    def _bound(self, targets: Any, leaks: Leaks) -> float:
        if self.target_bound is not None:
            return checked_number("target_bound", self.target_bound, POSITIVE)
        bound = float(np.abs(targets).max()) or 1.0
        leaks.say(
            f"target_bound was not given: the largest |y|, {bound:.4g}, was taken from the data.",
            "Give target_bound=, a bound that you know without looking; targets beyond it are cut.",
        )
        return bound

    def predict(self, X: Any) -> Any:
        """The linear function of the features."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise that hides a record hides more of a few records
        return tags
