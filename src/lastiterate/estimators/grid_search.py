"""A search for settings whose cost is known: a random number of trials, of which only the best is released."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lastiterate.accounting.account import account
from lastiterate.accounting.select import Selection, select
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput, PrivacyLeak, Unavailable, shown
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.given import FLOATS, dense, say_if_counted, seed_of
from lastiterate.estimators.leaks import Leaks
from lastiterate.estimators.upstream import upstream_of_this_fit
from lastiterate.estimators.validation import Validation, validation_of
from lastiterate.numerics.randomness import Source, choices
from lastiterate.privacy.trials import Geometric, Trials
from lastiterate.training.data import check_unmasked

# What an estimator would otherwise learn from the data, outside its budget.
_TO_BE_GIVEN = ("delta", "feature_norm", "classes", "target_bound")
_SELECTED = (
    "NOT ACCOUNTED FOR: this model is the best of a random number of trials. Its cost is guarantee_ of the search, not the "
    "epsilon of one trial."
)
_DEFAULT = Geometric(mean=10.0)


def _has(name: str) -> Any:
    return available_if(lambda search: hasattr(search.estimator, name))


class PrivateGridSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Trains a random number of times, each time with settings drawn at random, and releases the best model alone.

    estimator: a private estimator of this module, with the `epsilon` and `delta` of one trial, and all that it must not
        learn from the data: `feature_norm`, and `classes` or `target_bound`.
    param_grid: settings and their values, as in scikit-learn's GridSearchCV. Choose it without a look at the data.
    trials: the law of the number of trials, by default `li.trials.Geometric(mean=10)`.
    validation: the share of the records that no trial is trained on, by default 0.2, on which each model's accuracy is
        measured with noise that costs no more than the training; or `(X, y)`, public records, with any `scoring`.

    After `fit`: `best_estimator_`, trained once and not again, `best_params_` and `best_score_`; `guarantee_`, of all
    three together; `epsilon_`, its ε at `delta_`; `private_`, `leaks_`. The number of trials, and the scores and settings of
    the others, must stay secret and are forgotten; how long `fit` took tells of their number, and is as secret.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        trials: Trials | None = None,
        validation: Any = 0.2,
        scoring: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.trials = trials
        self.validation = validation
        self.scoring = scoring
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PrivateGridSearchCV:
        """Search on private data. What it costs is known before the first trial, and does not depend on what is drawn."""
        settings, leaks = self._settings(), Leaks()
        leaks.say_if_repeated()
        _check_upstream()
        check_unmasked(X)
        rows, targets = validate_data(self, X, y, dtype=FLOATS, accept_sparse="csr")
        features, targets = dense(rows), column_or_1d(targets)
        say_if_counted(self.estimator._adjacency(), len(features), leaks)
        source = Source(seed_of(self.random_state, leaks))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeak)  # how often one is said tells the number of trials
            validation = validation_of(self.validation, self.scoring, self.estimator, (features, targets), source)
            training = features[validation.training], targets[validation.training]
            runs = self._runs(settings, training[0])
            self.guarantee_ = self._guarantee(runs, validation)
            self._search(list(zip(settings, runs, strict=True)), training, validation, source)
        self.delta_ = self.estimator.delta
        self.leaks_ = (*leaks.found, *self.best_estimator_.leaks_)
        self.private_ = not self.leaks_
        self.guarantee_ = replace(self.guarantee_, caveats=self.leaks_)
        self.best_estimator_.leaks_ = (*self.best_estimator_.leaks_, _SELECTED)
        return self

    @property
    def epsilon_(self) -> float:
        """Of the whole search, at `delta_`."""
        check_is_fitted(self)
        return float(self.guarantee_.epsilon(self.delta_))

    def _settings(self) -> list[dict[str, Any]]:
        """All of them, each checked: whether one is refused must not depend on which are drawn."""
        if not isinstance(self.estimator, PrivateLinearModel):
            raise InvalidInput(
                "estimator must be a private estimator, such as PrivateLogisticRegression(epsilon=0.5, delta=1e-5). Got "
                f"{type(self.estimator).__name__}.",
                field="estimator",
            )
        try:
            settings = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"param_grid must map settings to lists of values: {error}.", field="param_grid"
            ) from error
        for setting in settings:
            _check_public(self._trial(setting))
        return settings

    def _trial(self, setting: dict[str, Any]) -> PrivateLinearModel:
        trial: PrivateLinearModel = clone(self.estimator)
        known = trial.get_params(deep=False)
        for name in setting:
            if name not in known or name in ("random_state", "delta"):
                raise InvalidInput(
                    f"param_grid must hold settings of the estimator. Got {shown(name)}.", field="param_grid"
                )
        return trial.set_params(**setting)

    def _runs(self, settings: list[dict[str, Any]], features: Any) -> list[Run]:
        """What a trial with each of the settings will run."""
        records, columns = features.shape
        return [self._trial(setting)._run_for(records, columns, features.dtype) for setting in settings]

    def _guarantee(self, runs: list[Run], validation: Validation) -> Selection:
        """Of the worst setting, whichever are drawn."""
        reports = [account(run, self.estimator.delta) for run in dict.fromkeys(runs)]
        return select([*reports, *validation.guarantees(runs[0].adjacency)], trials=self._law)

    @property
    def _law(self) -> Trials:
        return _DEFAULT if self.trials is None else self.trials

    def _search(
        self,
        planned: list[tuple[dict[str, Any], Run]],
        training: tuple[Any, Any],
        validation: Validation,
        source: Source,
    ) -> None:
        """Nothing but the best so far is kept; of equal ones the first, which is any of them."""
        best = None
        for _ in range(self._law.drawn(source)):
            setting, run = planned[int(choices(source, 1, len(planned))[0])]
            seed = None if source.private else int(source.bits()) >> 33
            model = (
                self._trial(setting).set_params(random_state=seed, verbose=False).fit(*training)
            )  # bars can be counted
            if model.run_ != run:
                raise Unavailable("a trial ran otherwise than it was accounted for, so nothing is released.")
            score = validation.score(model, source)
            if best is None or score > best[0]:
                best = score, setting, model
        if best is None:
            raise Unavailable(
                "the number of trials that was drawn is 0, so there is no model. That has nothing to do with the data. Use "
                "li.trials.Geometric, which is never 0."
            )
        self.best_score_, self.best_params_, self.best_estimator_ = best

    @_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """By the best model."""
        return self._best().predict(X)

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """By the best model."""
        return self._best().predict_proba(X)

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """By the best model."""
        return self._best().decision_function(X)

    def score(self, X: Any, y: Any) -> float:
        """Of the best model, without noise: on public records, or on records whose owners have agreed."""
        return float(self._best().score(X, y))

    @property
    def classes_(self) -> Any:
        """Those of the best model."""
        return self._best().classes_

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


def _check_public(trial: PrivateLinearModel) -> None:
    given = trial.get_params(deep=False)
    for name in _TO_BE_GIVEN:
        if given.get(name, name) is None:
            raise InvalidInput(
                f"{name} must be given to the estimator: a trial must not learn it from the data.", field=name
            )
    if given["random_state"] is not None:
        raise InvalidInput(
            "random_state must not be set in the estimator: all trials would be the same. Give it to the search, for tests.",
            field="random_state",
        )


def _check_upstream() -> None:
    upstream = upstream_of_this_fit()
    if upstream.private or upstream.others:
        raise InvalidInput(
            "PrivateGridSearchCV must not follow a step that learns from the same records: trials would not be independent. "
            "Private estimators prepare features by themselves.",
            field="estimator",
        )
