"""Base of private linear models: from (ε, δ) and data to a run, its noise, its execution and its account."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lastiterate.accounting.calibrate import calibrate
from lastiterate.accounting.report import Report
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    InvalidInput,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.estimators.given import (
    FLOATS,
    Leaks,
    adjacency_of,
    delta_of,
    dense,
    norm_of,
    say_if_counted,
    seed_of,
    warn_of_longer,
)
from lastiterate.estimators.prepared import PreparationBudget, PreparedRecords, ShortRows, prepared
from lastiterate.estimators.upstream import upstream_of_this_fit
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.norms import row_norms_above
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import up
from lastiterate.progress import progress_bar
from lastiterate.runs.batches import Batches
from lastiterate.runs.losses import Loss
from lastiterate.runs.run import Run
from lastiterate.training.data import check_unmasked
from lastiterate.training.objectives import linear_arithmetic
from lastiterate.training.plans import Plan, Problem, Wishes, chosen_plan
from lastiterate.training.plans.plan import Ingredients, Way, batches_of, change_of, run_of
from lastiterate.training.plans.problem import Guess, guess_for_scaled_rows
from lastiterate.training.preparation import Preparation, PrivateRows, only_scaled
from lastiterate.training.train import EXECUTED, OF_LINEAR_MODELS, SEEDED, report_of, train

_INTERCEPT = 0.3  # the constant feature that stands for the intercept, beside prepared rows
_REACH = {Way.FULL: 2.0, Way.SAMPLED: 2.0, Way.PASSES: 1.0}  # clipped gradients bear longer rows at no cost
_OTHER_SEED = 1 << 40  # so that seeded preparation and training do not draw the same numbers


@dataclass(frozen=True)
class DataShape:
    """Public numbers of a data set, and what the user said of it."""

    records: int
    features: int
    columns: int
    feature_norm: float
    constant: float

    @property
    def width(self) -> int:
        """Number of entries of a row together with the constant feature."""
        return self.features + (self.constant > 0)

    def norm(self, way: Way) -> float:
        """Upper bound on the norm of a prepared row together with the constant feature."""
        return up(math.hypot(_REACH[way], self.constant), operations=2)


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Fits by noisy gradient descent; centring and scaling the features is part of the same privacy budget."""

    epsilon: float
    delta: float | None
    feature_norm: float | None
    l2: float | None
    batches: int | Batches | None
    epochs: int | None
    step_size: float | None
    passes: int
    adjacency: Adjacency | None
    preparation: str | None
    clip: float
    fit_intercept: bool
    random_state: Any
    verbose: bool
    intercept_: Any
    coef_: Any

    @abstractmethod
    def _loss(self, shape: DataShape, way: Way, l2: float) -> Loss:
        """Return the loss for prepared rows; if steps are hidden it is convex and clips by itself."""

    def _spending(self, mu: float) -> PreparationBudget:
        """Return the part of the budget for what is learnt before training."""
        if self.preparation not in ("auto", None):
            raise must_be("preparation", "'auto' or None", f"{shown(self.preparation):.60}")
        return PreparationBudget.of_features(mu, self.fit_intercept) if self.preparation else PreparationBudget()

    def _guess(self, loss: Loss) -> Guess:
        """Return what is assumed about any data before it is seen."""
        return guess_for_scaled_rows(loss)

    def _prepared_targets(self, targets: Floats, spending: PreparationBudget, source: Source) -> Floats:
        """Return the targets as they are trained on."""
        return targets

    def _columns(self) -> int:
        """Number of columns of scores, as far as it is known before any data are seen."""
        return 1

    def _validated(self, features: Any, targets: Any, **checks: Any) -> tuple[Floats, Any]:
        """Return dense features and one target for each row, checked as scikit-learn does."""
        check_unmasked(features)
        rows, wanted = validate_data(self, features, targets, dtype=FLOATS, accept_sparse="csr", **checks)
        return dense(rows), column_or_1d(wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _fit(self, features: Any, targets: Floats, columns: int, leaks: Leaks) -> Floats:
        with progress_bar() if self.verbose else nullcontext():
            return self._fitted(features, targets, columns, leaks)

    def _fitted(self, features: Any, targets: Floats, columns: int, leaks: Leaks) -> Floats:
        """Choose, calibrate, prepare, train. Returns the weights, one row for each column of scores.

        All that can be wrong with the settings is found before the data are looked at.
        """
        leaks.say_if_repeated()
        upstream = upstream_of_this_fit()
        upstream.say(leaks)
        seed = seed_of(self.random_state, leaks)
        checked_number("epsilon", self.epsilon, POSITIVE)
        delta, norms = delta_of(self.delta, len(features), leaks), row_norms_above(features)
        shape = self._shape(features.shape, columns, norms, leaks)
        say_if_counted(self._adjacency(), len(features), leaks)
        spending, plan, run = self._planned(shape, features.dtype, delta, before=upstream.mu(self._adjacency()))
        warn_of_longer(norms, shape.feature_norm)
        used = slice(0, run.batches.records)
        rows, source = ShortRows(features[used], norms[used], shape.feature_norm), Source(seed)
        preparation = self._learnt(rows, shape, plan, spending, source)
        wanted = self._prepared_targets(targets[used], spending, source)
        given = prepared(PreparedRecords(rows, wanted, preparation, shape.constant))
        trained = train(run, given, classes=columns if columns > 1 else None, seed=_another(seed))
        self.plan_, self.run_, self.delta_, self.preparation_ = plan, trained.run, delta, preparation
        self.noise_ = float(run.process.noise[0]) / plan.step_size
        self._mark((*(() if trained.private else (SEEDED,)), *leaks.found))
        return self._split(trained.weights, shape)

    def _mark(self, leaks: Iterable[Fact]) -> None:
        """Store what was found wrong with this fit, which its report states."""
        self.leaks_ = tuple(leaks)
        self.private_ = not self.leaks_

    def _planned(
        self, shape: DataShape, precision: Any, delta: float, before: float = 0.0
    ) -> tuple[PreparationBudget, Plan, Run]:
        """Return preparation, plan and run from public numbers alone; `before` is the mu spent upstream."""
        epsilon = checked_number("epsilon", self.epsilon, POSITIVE)
        mu = float(shift_below(math.log(delta), epsilon))
        spending = replace(self._spending(mu), before=before)
        plan = chosen_plan(self._problem(shape, spending.left_of(mu)), self._wishes())
        return spending, plan, _calibrated(self._run(shape, plan, precision, spending.mu), epsilon, delta)

    def _run_for(self, records: int, features: int, precision: Any, before: float = 0.0) -> Run:
        """Return the run for data of this size; delta, feature_norm and the classes have to be given."""
        leaks = Leaks()
        shape = self._shape((records, features), self._columns(), np.zeros(1), leaks)
        return self._planned(shape, precision, delta_of(self.delta, records, leaks), before)[2]

    @property
    def report_(self) -> Report:
        """The privacy report of everything released: the centre and scale of the features, and the model."""
        check_is_fitted(self)
        return _reported(self.run_, self.delta_, self.leaks_)

    def _learnt(
        self, rows: ShortRows, shape: DataShape, plan: Plan, spending: PreparationBudget, source: Source
    ) -> Preparation:
        """Return the learnt preparation; rows are centred only if an intercept makes up for it."""
        if spending.features is None:
            return only_scaled(shape.features, shape.feature_norm)
        private = PrivateRows(rows.pieces, len(rows), shape.feature_norm, self._adjacency())
        return private.learnt(spending.features, _REACH[plan.way], source, centred=bool(shape.constant))

    def _split(self, weights: Floats, shape: DataShape) -> Floats:
        """Return coefficients for the features as given, and store the intercept."""
        rows = np.atleast_2d(weights.T)
        coefficients, constant = self.preparation_.in_features(rows[:, : shape.features])
        self.intercept_ = constant + (rows[:, -1] * shape.constant if shape.constant else 0.0)
        return coefficients

    def _problem(self, shape: DataShape, mu: float) -> Problem:
        loss, clip = self._loss(shape, Way.PASSES, 0.0), checked_number("clip", self.clip, POSITIVE)
        return Problem(
            shape.records,
            shape.width,
            shape.columns,
            mu,
            self._adjacency().replaces,
            self._guess(loss),
            clip,
            change_of(loss, self._adjacency()),
            loss.smoothness,
        )

    def _run(self, shape: DataShape, plan: Plan, precision: Any, prior_mu: float) -> Run:
        """Return the run of a plan with the arithmetic of its execution, so that the noise is calibrated for that."""
        loss, batches = self._loss(shape, plan.way, plan.l2), self._batches(shape.records, plan)
        run = run_of(plan, Ingredients(loss, batches, self._adjacency(), self.clip, prior_mu))
        return replace(run, arithmetic=linear_arithmetic(run, precision, shape.width * shape.columns))

    def _batches(self, records: int, plan: Plan) -> Batches:
        if not isinstance(self.batches, Batches):
            return batches_of(plan, records, self._adjacency())
        if self.batches.records != records:
            raise InvalidInput("fit_batches_rows", field="batches", rows=records, got=f"{self.batches.records}")
        return self.batches

    def _adjacency(self) -> Adjacency:
        return adjacency_of(self.adjacency)

    def _wishes(self) -> Wishes:
        return Wishes(
            self._per_epoch(),
            None if self.epochs is None else checked_count("epochs", self.epochs),
            None if self.step_size is None else checked_number("step_size", self.step_size, POSITIVE),
            None if self.l2 is None else checked_number("l2", self.l2, NON_NEGATIVE),
            checked_count("passes", self.passes),
        )

    def _per_epoch(self) -> int | None:
        if self.batches is None:
            return None
        if isinstance(self.batches, Batches):
            return self.batches.per_epoch
        if not isinstance(self.batches, Integral):
            raise InvalidInput("fit_batches_kind", field="batches", got=f"{shown(self.batches):.60}")
        return checked_count("batches", self.batches)

    def _shape(self, size: tuple[int, ...], columns: int, norms: Floats, leaks: Leaks) -> DataShape:
        norm = norm_of(self.feature_norm, norms, leaks)
        return DataShape(size[0], size[1], columns, norm, _INTERCEPT if self.fit_intercept else 0.0)

    def _scores(self, features: Any) -> Floats:
        check_is_fitted(self)
        rows = validate_data(self, features, reset=False, dtype=FLOATS, accept_sparse="csr")
        return np.asarray(rows @ self.coef_.T + self.intercept_)


def _another(seed: int | None) -> int | None:
    return None if seed is None else seed + _OTHER_SEED


@lru_cache(maxsize=16)
def _reported(run: Run, delta: float, leaks: tuple[Fact, ...]) -> Report:
    return report_of(run, delta, (), leaks, (*EXECUTED, *OF_LINEAR_MODELS, "start_independent"))


@lru_cache(maxsize=64)
def _calibrated(run: Run, epsilon: float, delta: float) -> Run:
    """Calibrate a run; cached, since the same settings return in every fold of a search."""
    return calibrate(run, epsilon=epsilon, delta=delta)
