"""A search for settings with a guarantee: a random number of trials, of which only the best is released."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lastiterate.accounting.account import account
from lastiterate.accounting.least_noise import largest_spending
from lastiterate.curves.selected import checked_trials
from lastiterate.curves.trials import Geometric, Trials
from lastiterate.errors import INSIDE_UNIT, POSITIVE, InvalidInput, PrivacyLeak, Unavailable, checked_number
from lastiterate.estimators.given import FLOATS, Leaks, dense, say_if_counted, seed_of
from lastiterate.estimators.trial import (
    Validation,
    check_trial,
    model_of,
    planned_run,
    prefix_of,
    private_parts_of,
    silent,
    trial_of,
    validation_of,
)
from lastiterate.estimators.upstream import upstream_of_this_fit
from lastiterate.facts import fact
from lastiterate.numerics.randomness import Source, choices
from lastiterate.runs.run import Run
from lastiterate.selection.select import Selection, select
from lastiterate.training.data import check_unmasked

_SELECTED = fact("best_of_trials")
_DEFAULT = Geometric(mean=10.0)


def _has(name: str) -> Any:
    return available_if(lambda search: hasattr(search.estimator, name))


class PrivateGridSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Trains a random number of times, each time with settings drawn at random, and releases only the best model.

    estimator: a private estimator of this module, or a Pipeline that ends in one, with all that it must not learn from the
        data: `feature_norm`, and `classes` or `target_bound`. Its `epsilon` and `delta` are those of one trial, unless the
        search has its own.
    param_grid: settings and their values, as in scikit-learn's GridSearchCV (`step__name` in a pipeline). Choose them
        independently of the data.
    epsilon, delta: the target of the whole search. Each trial then spends as much as the search allows.
    trials: the distribution of the number of trials, by default `li.trials.Geometric(mean=10)`.
    validation: the share of the records to hold out of training, by default 0.2, on which a model's accuracy, or the mean
        absolute error of a regression, is measured with noise; or `(X, y)`, public records, with any `scoring`.

    After `fit`: `best_estimator_`, trained once and not again, `best_params_` and `best_score_`; `guarantee_`, of all
    three together, with its `certificate`; `epsilon_`, its ε at `delta_`; `private_`, `leaks_`. The number of trials and the
    scores and settings of the others must stay secret and are deleted. How long `fit` takes depends on their number: keep
    that secret, too.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        trials: Trials | None = None,
        validation: Any = 0.2,
        scoring: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.trials = trials
        self.validation = validation
        self.scoring = scoring
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PrivateGridSearchCV:
        """Search on private data. The guarantee is known before the first trial and does not depend on what is drawn."""
        estimator, leaks = self._estimator(), Leaks()
        settings = self._settings(estimator)
        leaks.say_if_repeated()
        _check_upstream()
        check_unmasked(X)
        rows, targets = validate_data(self, X, y, dtype=FLOATS, accept_sparse="csr")
        features, targets = dense(rows), column_or_1d(targets)
        say_if_counted(model_of(estimator)._adjacency(), len(features), leaks)
        source = Source(seed_of(self.random_state, leaks))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeak)  # how often one is said tells the number of trials
            validation = validation_of(self.validation, self.scoring, estimator, (features, targets), source)
            training = features[validation.training], targets[validation.training]
            plan = self._plan(estimator, settings, training[0], validation)
            self._search(plan, training, source)
        best = model_of(self.best_estimator_)
        self.delta_ = plan.delta
        self.leaks_ = (*leaks.found, *best.leaks_)
        self.private_ = not self.leaks_
        self.guarantee_ = replace(plan.guarantee, caveats=self.leaks_)
        for one in private_parts_of(self.best_estimator_):
            one._mark((*one.leaks_, _SELECTED))
        return self

    @property
    def epsilon_(self) -> float:
        """ε of the whole search, at `delta_`."""
        check_is_fitted(self)
        return float(self.guarantee_.epsilon(self.delta_))

    def _estimator(self) -> Any:
        """Return a copy of the estimator with the δ of the search, if that has one; its ε is chosen later."""
        model_of(self.estimator)
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidInput("search_half_target", field="delta" if self.delta is None else "epsilon")
        if self.epsilon is None:
            return clone(self.estimator)
        checked_number("epsilon", self.epsilon, POSITIVE)
        delta = checked_number("delta", self.delta, INSIDE_UNIT)
        return clone(self.estimator).set_params(**{f"{prefix_of(self.estimator)}delta": delta})

    def _settings(self, estimator: Any) -> list[dict[str, Any]]:
        """Return all settings, each checked: whether one is refused must not depend on which are drawn."""
        try:
            settings = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise InvalidInput("search_grid_kind", field="param_grid", error=error) from error
        decided = () if self.epsilon is None else ("epsilon",)
        for setting in settings:
            check_trial(trial_of(estimator, setting, decided))
        return settings

    def _plan(
        self, estimator: Any, settings: list[dict[str, Any]], features: Any, validation: Validation
    ) -> SearchPlan:
        trials = checked_trials(self._law)
        if self.epsilon is None:
            return search_plan(estimator, settings, features, validation, trials)
        return search_plan_within(self.epsilon, estimator, settings, features, validation, trials)

    @property
    def _law(self) -> Trials:
        return _DEFAULT if self.trials is None else self.trials

    def _search(self, plan: SearchPlan, training: tuple[Any, Any], source: Source) -> None:
        """Run the trials and keep only the best, the first one among equals."""
        best = None
        for _ in range(self._law.drawn(source)):
            setting, run = plan.settings[int(choices(source, 1, len(plan.settings))[0])]
            seed = None if source.private else int(source.bits()) >> 33
            model = silent(trial_of(plan.estimator, setting), seed).fit(*training)
            if model_of(model).run_ != run:
                raise Unavailable("search_trial_differs")
            score = plan.validation.score(model, source)
            if best is None or score > best[0]:
                best = score, setting, model
        if best is None:
            raise Unavailable("search_no_trial")
        self.best_score_, self.best_params_, self.best_estimator_ = best

    @_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict with the best model."""
        return self._best().predict(self._rows(X))

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities by the best model."""
        return self._best().predict_proba(self._rows(X))

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the scores of the best model."""
        return self._best().decision_function(self._rows(X))

    def score(self, X: Any, y: Any) -> float:
        """Score the best model without noise: on public records, or on records whose owners have agreed."""
        return float(self._best().score(self._rows(X), y))

    @property
    def classes_(self) -> Any:
        """Classes of the best model."""
        return self._best().classes_

    def _rows(self, X: Any) -> Any:
        """Return the rows without names of columns, as trials see them."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=FLOATS, accept_sparse="csr")

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.target_tags, tags.input_tags = (
            inner.estimator_type,
            inner.target_tags,
            inner.input_tags,
        )
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.non_deterministic = self.random_state is None
        return tags


def _check_upstream() -> None:
    upstream = upstream_of_this_fit()
    if upstream.private or upstream.others:
        raise InvalidInput("search_after_learning", field="estimator")


# Plan of a search, decided from public numbers before the first trial.


Setting = dict[str, Any]


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """Settings that may be drawn, each with its run, the scoring of trials, and the guarantee of the whole search."""

    estimator: Any
    settings: tuple[tuple[Setting, Run], ...]
    validation: Validation
    guarantee: Selection
    delta: float

    @property
    def epsilon(self) -> float:
        """ε of the whole search."""
        return float(self.guarantee.epsilon(self.delta))


def search_plan(
    estimator: Any, settings: Sequence[Setting], features: Any, validation: Validation, trials: Trials
) -> SearchPlan:
    """Return the plan of a search whose trials spend the estimator's ε; its guarantee is for the worst setting."""
    model, delta = model_of(estimator), _delta_of(estimator)
    scored = validation.spending(model.epsilon, delta)
    runs = [planned_run(trial_of(estimator, setting), features) for setting in settings]
    reports = [account(run, delta) for run in dict.fromkeys(runs)]
    guarantee = select([*reports, *scored.guarantees(runs[0].adjacency)], trials=trials)
    return SearchPlan(estimator, tuple(zip(settings, runs, strict=True)), scored, guarantee, delta)


def search_plan_within(
    epsilon: float,
    estimator: Any,
    settings: Sequence[Setting],
    features: Any,
    validation: Validation,
    trials: Trials,
) -> SearchPlan:
    """Return the plan of a search that spends this ε at the estimator's δ in all."""
    prefix = prefix_of(estimator)

    def made(spent: float) -> tuple[SearchPlan, float]:
        spending = clone(estimator).set_params(**{f"{prefix}epsilon": spent})
        plan = search_plan(spending, settings, features, validation, trials)
        return plan, plan.epsilon

    plan = largest_spending(made, epsilon=epsilon, delta=_delta_of(estimator), trials=trials)
    if not plan.epsilon <= epsilon:
        raise Unavailable("search_overspent", epsilon=plan.epsilon, most=epsilon)
    return plan


def _delta_of(estimator: Any) -> float:
    return checked_number("delta", model_of(estimator).delta, INSIDE_UNIT)
