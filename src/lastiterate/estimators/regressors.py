"""Private linear regression."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import POSITIVE, PrivacyLeak, checked_number, must_be, shown, worded
from lastiterate.estimators.base import DataShape, PrivateLinearModel
from lastiterate.estimators.given import Leaks, outside
from lastiterate.estimators.prepared import ROWS_AT_ONCE, PreparationBudget
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.runs import losses
from lastiterate.runs.losses import Loss
from lastiterate.training.data import parts_of
from lastiterate.training.plans.plan import MOST_PASSES, Way
from lastiterate.training.preparation import PrivateRows, only_scaled

REGRESSIONS = ("huber", "ridge")
_FARTHEST = 4.0  # from the centre, in units of their own scale: targets beyond are cut


class PrivateLinearRegression(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Linear regression whose released model is (ε, δ)-differentially private.

    `target_bound` bounds |y|: targets beyond it are clipped. Targets, like features, are centred and scaled within the same
    budget, unless `preparation` is None. `loss="ridge"` is quadratic with clipped gradients; `loss="huber"` is linear for
    residuals beyond `threshold`, in units of the targets' scale. Everything else is as in `PrivateLogisticRegression`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        feature_norm: float | None = None,
        target_bound: float | None = None,
        loss: str = "ridge",
        threshold: float = 1.0,
        l2: float | None = None,
        batches: Any = None,
        epochs: int | None = None,
        step_size: float | None = None,
        passes: int = MOST_PASSES,
        adjacency: Adjacency | None = None,
        preparation: str | None = "auto",
        clip: float = 0.25,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: bool = False,
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
        self.passes = passes
        self.adjacency = adjacency
        self.preparation = preparation
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, shape: DataShape, way: Way, l2: float) -> Loss:
        if self.loss not in REGRESSIONS:
            raise must_be("loss", f"one of {', '.join(REGRESSIONS)}", f"{shown(self.loss):.60}")
        norm, clip = shape.norm(way), checked_number("clip", self.clip, POSITIVE)
        if self.loss == "ridge":
            return losses.ridge(feature_norm=norm, l2=l2, clip=clip)
        return losses.huber(feature_norm=norm, threshold=self.threshold, l2=l2, clip=clip)

    def _spending(self, mu: float) -> PreparationBudget:
        features = super()._spending(mu)
        return features.and_targets(mu, self.fit_intercept) if features.features is not None else features

    def _prepared_targets(self, targets: Floats, spending: PreparationBudget, source: Source) -> Floats:
        """Return the targets centred if there is an intercept, scaled, and cut where they are far."""
        self.target_preparation_ = only_scaled(1, 1.0)
        if spending.targets is not None:
            rows = PrivateRows(lambda: _pieces(targets), len(targets), 1.0, self._adjacency())
            self.target_preparation_ = rows.learnt(spending.targets, _FARTHEST, source, centred=self.fit_intercept)
        return self.target_preparation_.rows(targets[:, None])[:, 0]

    def fit(self, X: Any, y: Any) -> Any:
        """Train on private data. Longer rows are scaled down to `feature_norm`; targets are clipped to `target_bound`."""
        features, wanted = self._validated(X, y, y_numeric=True)
        targets, leaks = wanted.astype(np.float64), Leaks()
        bound = self._bound(targets, leaks)
        _warn_of_larger(targets, bound)
        coefficients = self._fit(features, np.clip(targets / bound, -1.0, 1.0), 1, leaks)
        unit = bound * self.target_preparation_.scale
        self.coef_ = coefficients[0] * unit
        self.intercept_ = float(self.intercept_[0]) * unit + float(self.target_preparation_.center[0]) * bound
        return self

    def _bound(self, targets: Any, leaks: Leaks) -> float:
        if self.target_bound is not None:
            return checked_number("target_bound", self.target_bound, POSITIVE)
        bound = float(np.abs(targets).max()) or 1.0
        leaks.say(fact("target_bound_read", bound=bound))
        return bound

    def predict(self, X: Any) -> Any:
        """Return the predicted targets, one per row."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise that hides a record hides more of a few records
        return tags


def _warn_of_larger(targets: Floats, bound: float) -> None:
    count = int((np.abs(targets) > bound * (1 + 1e-9)).sum())
    if count:
        said = worded("targets_clipped", count=count, targets=len(targets), bound=bound)
        warnings.warn(said, PrivacyLeak, stacklevel=outside())


def _pieces(targets: Floats) -> Iterator[Floats]:
    return (targets[part, None] for part in parts_of(slice(None), len(targets), ROWS_AT_ONCE))
