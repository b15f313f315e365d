"""Private linear classifiers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import RATE, InvalidInput, checked_number, must_be, shown
from lastiterate.estimators.base import DataShape, PrivateLinearModel
from lastiterate.estimators.given import Leaks
from lastiterate.facts import fact
from lastiterate.runs import losses
from lastiterate.runs.losses import Loss
from lastiterate.training.plans.plan import MOST_PASSES, Way


class _PrivateLinearClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    classes: Any

    def fit(self, X: Any, y: Any) -> Any:
        """Train on private data. Rows longer than `feature_norm` are scaled down to it."""
        features, labels = self._validated(X, y)
        check_classification_targets(labels)
        leaks = Leaks()
        self.classes_, numbers = self._numbered(labels, leaks)
        count = len(self.classes_)
        targets = numbers if count > 2 else 2 * numbers - 1
        self.coef_ = self._fit(features, targets, count if count > 2 else 1, leaks)
        return self

    def _columns(self) -> int:
        count = len(_enough(_sorted(self.classes)))
        return count if count > 2 else 1

    def _numbered(self, labels: Any, leaks: Leaks) -> tuple[Any, Any]:
        """Return the classes, and for each label the number of its class."""
        if self.classes is None:
            known, numbers = np.unique(labels, return_inverse=True)
            leaks.say(fact("classes_read", count=len(known)))
            return _enough(known), numbers
        known = _enough(_sorted(self.classes))
        if (known.dtype.kind in "US") != (labels.dtype.kind in "OUS"):
            raise InvalidInput("labels_type", field="labels", classes=known.tolist(), got=f"{labels.dtype}")
        numbers = np.searchsorted(known, labels.astype(str) if labels.dtype.kind == "O" else labels)
        if not (known[np.minimum(numbers, len(known) - 1)] == labels).all():
            raise InvalidInput("labels_unknown", field="y", classes=known.tolist())
        return known, numbers

    def decision_function(self, X: Any) -> Any:
        """Return one score per row for two classes (positive means the second class), or one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """Return the class with the highest score for each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise that hides a record hides more of a few records
        return tags


def _sorted(classes: Any) -> Any:
    """Return the classes without duplicates, in the order of scikit-learn."""
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise must_be("classes", "a list of labels", f"{shown(classes):.60}")
    known = np.asarray(list(classes))
    if known.dtype.kind not in "biufUS" or known.ndim != 1:
        raise must_be("classes", "a list of numbers, or of strings", f"{shown(list(classes)):.60}")
    return np.unique(known)


def _enough(known: Any) -> Any:
    if len(known) < 2:
        raise InvalidInput("classes_too_few", got=f"{known.tolist()}")
    return known


class PrivateLogisticRegression(_PrivateLinearClassifier):
    """Logistic regression whose released model is (ε, δ)-differentially private.

    Set `epsilon`, `delta`, `feature_norm` (longer rows are scaled down to it) and `classes`. A value that you leave out is
    read from the data, with a warning that it is not private. Features are centred and scaled within the same budget,
    unless `preparation` is None. `l2`, `batches` per epoch, `epochs` and `step_size` are chosen from public numbers unless
    you set them (see `plan_`), with at most `passes` over the data. Each record's gradient is clipped at `clip`, for rows
    of scale 1. A plan with hidden iterates needs a convex loss: with more than two classes it caps the total probability of
    the wrong classes at `pull` instead of clipping (see li.losses.softmax). `adjacency` defines neighbouring data sets: one
    record is replaced (li.REPLACE_ONE, the default), contributes nothing (li.ZERO_OUT), or is added or removed
    (li.ADD_OR_REMOVE_ONE); the last two need about half of the noise.

    After `fit`: `coef_` and `intercept_` for the features as you passed them; `classes_`; `report_`, the privacy report of
    everything released; `plan_`, `run_`, `preparation_`, `private_`, `leaks_`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        feature_norm: float | None = None,
        classes: Any = None,
        l2: float | None = None,
        batches: Any = None,
        epochs: int | None = None,
        step_size: float | None = None,
        passes: int = MOST_PASSES,
        adjacency: Adjacency | None = None,
        preparation: str | None = "auto",
        clip: float = 0.3,
        pull: float = 0.3,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_norm = feature_norm
        self.classes = classes
        self.l2 = l2
        self.batches = batches
        self.epochs = epochs
        self.step_size = step_size
        self.passes = passes
        self.adjacency = adjacency
        self.preparation = preparation
        self.clip = clip
        self.pull = pull
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, shape: DataShape, way: Way, l2: float) -> Loss:
        norm, hidden, pull = shape.norm(way), way is Way.PASSES, checked_number("pull", self.pull, RATE)
        if shape.columns > 1:
            return losses.softmax(feature_norm=norm, l2=l2, pull=pull if hidden else None, classes=shape.columns)
        return losses.logistic(feature_norm=norm, l2=l2, clip=self.clip if hidden else None)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, one column per class."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))


class PrivateLinearSVC(_PrivateLinearClassifier):
    """A linear support vector machine whose released model is (ε, δ)-differentially private.

    The corner of the hinge loss is rounded over an interval of length `width`. More than two classes are trained one
    against the rest, together and within one budget. Everything else is as in `PrivateLogisticRegression`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        feature_norm: float | None = None,
        classes: Any = None,
        l2: float | None = None,
        batches: Any = None,
        epochs: int | None = None,
        step_size: float | None = None,
        passes: int = MOST_PASSES,
        adjacency: Adjacency | None = None,
        preparation: str | None = "auto",
        clip: float = 0.3,
        width: float = 1.0,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_norm = feature_norm
        self.classes = classes
        self.l2 = l2
        self.batches = batches
        self.epochs = epochs
        self.step_size = step_size
        self.passes = passes
        self.adjacency = adjacency
        self.preparation = preparation
        self.clip = clip
        self.width = width
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, shape: DataShape, way: Way, l2: float) -> Loss:
        classes, clip = shape.columns if shape.columns > 1 else None, self.clip if way is Way.PASSES else None
        return losses.smooth_hinge(feature_norm=shape.norm(way), width=self.width, l2=l2, clip=clip, classes=classes)
