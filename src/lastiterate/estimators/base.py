"""What all private linear models share: from (ε, δ) and data to a run, its noise, its execution and its account."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lastiterate.accounting.calibrate import calibrate
from lastiterate.accounting.report import Report
from lastiterate.algorithms.batches import Batches, FullBatch, Shuffled
from lastiterate.algorithms.losses import Loss
from lastiterate.algorithms.noise import OnMeanGradient
from lastiterate.algorithms.run import Run, epochs
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    POSITIVE,
    InvalidInput,
    PrivacyLeak,
    checked_choice,
    checked_count,
    checked_number,
    shown,
)
from lastiterate.estimators.leaks import Leaks
from lastiterate.estimators.prepared import PreparedRecords, prepared
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import row_norms
from lastiterate.numerics.rounding import up
from lastiterate.privacy.adjacency import REPLACE_ONE, Adjacency
from lastiterate.training.choose import Plan, Problem, Wishes, chosen_plan
from lastiterate.training.data import check_unmasked
from lastiterate.training.objectives import linear_arithmetic
from lastiterate.training.records import count_longer
from lastiterate.training.train import SEEDED, report_of, train

_FLOATS = (np.float64, np.float32)
_SHORTEST = 1e-6  # where all rows are 0
_INTERCEPT = 0.25  # the constant feature that stands for the intercept, over the feature norm


@dataclass(frozen=True)
class DataShape:
    """What is public about a data set, and what the user said of it."""

    records: int
    features: int
    columns: int
    feature_norm: float
    constant: float

    @property
    def norm(self) -> float:
        """Of a row together with the constant feature."""
        return up(math.hypot(self.feature_norm, self.constant), operations=2)


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Fits by noisy gradient descent of which only the last iterate is kept."""

    epsilon: float
    delta: float | None
    feature_norm: float | None
    l2: float | None
    batches: int | Batches | None
    epochs: int | None
    step_size: float | None
    adjacency: Adjacency | None
    fit_intercept: bool
    random_state: Any
    intercept_: Any
    coef_: Any

    @abstractmethod
    def _loss(self, shape: DataShape, l2: float) -> Loss:
        """The facts of the loss, for rows with the constant feature."""

    @abstractmethod
    def _guess(self, shape: DataShape) -> tuple[float, float]:
        """The second derivative of the loss in a score, and how large scores are, before any data is seen."""

    def _validated(self, features: Any, targets: Any, **checks: Any) -> tuple[Floats, Any]:
        """Dense features and one target for each row, as scikit-learn has them."""
        check_unmasked(features)
        rows, wanted = validate_data(self, features, targets, dtype=_FLOATS, accept_sparse="csr", **checks)
        return dense(rows), column_or_1d(wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _fit(self, features: Any, targets: Floats, columns: int, leaks: Leaks) -> Floats:
        """Choose, calibrate, train, account. Returns the weights, one row for each column of scores."""
        leaks.say_if_repeated()
        seed = self._seed(leaks)
        epsilon, delta = checked_number("epsilon", self.epsilon, POSITIVE), self._delta(len(features), leaks)
        norms = row_norms(features)
        shape = self._shape(features.shape, columns, norms, leaks)
        plan = chosen_plan(self._problem(shape), epsilon, delta, self._wishes())
        run = _calibrated(self._run(shape, plan, features.dtype), epsilon, delta)
        _warn_of_longer(norms, shape.feature_norm)
        used = slice(0, run.batches.records)
        given = PreparedRecords(features[used], targets[used], norms[used], shape.feature_norm, shape.constant)
        trained = train(run, prepared(given), classes=columns if columns > 1 else None, seed=seed)
        self.plan_, self.run_, self.delta_ = plan, trained.run, delta
        self.noise_ = float(run.process.noise[0]) / plan.step_size
        self.private_, self.leaks_ = trained.private, tuple(leaks.found)
        return self._split(trained.weights, shape)

    @property
    def report_(self) -> Report:
        """The account of what was run."""
        check_is_fitted(self)
        return _reported(self.run_, self.delta_, self.private_, self.leaks_)

    def _split(self, weights: Floats, shape: DataShape) -> Floats:
        """Coefficients; the intercept is set aside."""
        rows = np.atleast_2d(weights.T)
        intercept = rows[:, -1] * shape.constant if shape.constant else np.zeros(len(rows), rows.dtype)
        self.intercept_ = intercept
        return rows[:, : shape.features]

    def _problem(self, shape: DataShape) -> Problem:
        width = shape.features + (shape.constant > 0)
        loss = self._loss(shape, 0.0)
        curvature, score = self._guess(shape)
        replaces = self._adjacency().replaces
        return Problem(shape.records, width, shape.columns, loss, shape.norm, curvature, score, replaces)

    def _run(self, shape: DataShape, plan: Plan, precision: Any) -> Run:
        """With the arithmetic that it will be executed in, so that the noise is calibrated for that."""
        batches = self.batches if isinstance(self.batches, Batches) else _shuffled(shape.records, plan.batches)
        if isinstance(self.batches, Batches) and batches.records != shape.records:
            raise InvalidInput(
                f"batches are about {batches.records} records. Got {shape.records} rows.", field="batches"
            )
        loss = self._loss(shape, plan.l2)
        noise, adjacency = OnMeanGradient(std=1.0), self._adjacency()
        run = Run(loss, batches, plan.step_size, noise, epochs(plan.epochs), adjacency=adjacency)
        parameters = (shape.features + (shape.constant > 0)) * shape.columns
        return replace(run, arithmetic=linear_arithmetic(run, precision, parameters))

    def _adjacency(self) -> Adjacency:
        return REPLACE_ONE if self.adjacency is None else checked_choice("adjacency", self.adjacency, Adjacency)

    def _wishes(self) -> Wishes:
        return Wishes(
            self._per_epoch(),
            None if self.epochs is None else checked_count("epochs", self.epochs),
            None if self.step_size is None else checked_number("step_size", self.step_size, POSITIVE),
            None if self.l2 is None else checked_number("l2", self.l2, NON_NEGATIVE),
        )

    def _per_epoch(self) -> int | None:
        if self.batches is None:
            return None
        if isinstance(self.batches, Batches):
            return self.batches.per_epoch
        if not isinstance(self.batches, Integral):
            raise InvalidInput(
                f"batches must be the number of batches in an epoch, or such as li.FullBatch(records=1000). "
                f"Got {shown(self.batches):.60}.",
                field="batches",
            )
        return checked_count("batches", self.batches)

    def _delta(self, records: int, leaks: Leaks) -> float:
        if self.delta is not None:
            return checked_number("delta", self.delta, INSIDE_UNIT)
        delta = 1 / (10 * records)
        leaks.say(
            f"delta was not given: 1/(10·{records}) = {delta:.3g} was taken, which tells how many records there are.",
            "Give delta=.",
        )
        return delta

    def _shape(self, size: tuple[int, ...], columns: int, norms: Floats, leaks: Leaks) -> DataShape:
        if self.feature_norm is not None:
            norm = checked_number("feature_norm", self.feature_norm, POSITIVE)
        else:
            norm = max(float(norms.max()), _SHORTEST)
            leaks.say(
                f"feature_norm was not given: that of the longest row, {norm:.4g}, was taken from the data, and the scale "
                "of the noise now tells how long it is.",
                "Give feature_norm=, a bound that you know without looking; longer rows are scaled down to it.",
            )
        return DataShape(size[0], size[1], columns, norm, _INTERCEPT * norm if self.fit_intercept else 0.0)

    def _seed(self, leaks: Leaks) -> int | None:
        if self.random_state is None:
            return None
        leaks.say(
            "random_state is set: whoever knows it can take the noise off, so this model is not private.",
            "Leave it out of anything that is released.",
        )
        if isinstance(self.random_state, Integral):
            return checked_count("random_state", self.random_state, least=0)
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            raise InvalidInput(
                f"random_state must be None, an integer or a RandomState: {error}.", field="random_state"
            ) from error

    def _scores(self, features: Any) -> Floats:
        check_is_fitted(self)
        rows = validate_data(self, features, reset=False, dtype=_FLOATS, accept_sparse="csr")
        return np.asarray(rows @ self.coef_.T + self.intercept_)


def dense(features: Any) -> Floats:
    """Training is on dense rows."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def _warn_of_longer(norms: Floats, most: float) -> None:
    """Rows that are longer than this are scaled down to it."""
    count = count_longer(norms, most)
    if count:
        warnings.warn(
            f"{count} of {len(norms)} rows were longer than feature_norm = {most:g} and were scaled down to it. "
            "This number is not private.",
            PrivacyLeak,
            stacklevel=5,
        )


def _shuffled(records: int, count: int) -> Batches:
    """Equal batches; the last few records are left out where they do not divide."""
    if count > records:
        raise InvalidInput(f"batches must be at most the number of records, {records}. Got {count}.", field="batches")
    size = records // count
    return FullBatch(records) if count == 1 else Shuffled(size * count, size)


@lru_cache(maxsize=16)
def _reported(run: Run, delta: float, private: bool, leaks: tuple[str, ...]) -> Report:
    return report_of(run, delta, (), (*(() if private else (SEEDED,)), *leaks))


@lru_cache(maxsize=256)
def _calibrated(run: Run, epsilon: float, delta: float) -> Run:
    """The same settings come back in every fold of a search."""
    return calibrate(run, epsilon=epsilon, delta=delta)
