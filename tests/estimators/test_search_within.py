"""PrivateGridSearchCV with a target for the whole search, in pipelines, on regressions, and its certificate."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, PolynomialFeatures, StandardScaler

import lastiterate as li
from lastiterate.errors import InvalidInput, PrivacyLeak
from lastiterate.estimators import (
    PrivateGridSearchCV,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePreparation,
)
from lastiterate.estimators.trial import HeldOutErrors, planned_run, trial_of
from lastiterate.facts import fact
from lastiterate.numerics.randomness import Source
from raising import raises

SOURCE = np.random.default_rng(3)
FEATURES = SOURCE.uniform(-0.5, 0.5, size=(1000, 3))
SCORES = FEATURES @ [2.0, -1.0, 0.5]
SIDES = np.where(SCORES > 0, "yes", "no")
MODEL = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, feature_norm=1.0, classes=["no", "yes"], batches=1, epochs=4)
REGRESSION = PrivateLinearRegression(delta=1e-5, feature_norm=1.0, target_bound=2.0, batches=1, epochs=5)
PREPARATION = PrivatePreparation(epsilon=0.2, delta=1e-6, feature_norm=1.0)
PIPELINE = Pipeline([("rows", Normalizer()), ("prepare", PREPARATION), ("model", MODEL)])
THREE = li.trials.Geometric(mean=3)


def search(estimator: Any = MODEL, grid: Any = None, **settings: Any) -> PrivateGridSearchCV:
    return PrivateGridSearchCV(estimator, grid or {"l2": [0.0, 0.1]}, **{"trials": THREE, **settings})


@pytest.fixture(scope="module")
def within() -> PrivateGridSearchCV:
    return search(epsilon=1.5, delta=1e-6).fit(FEATURES, SIDES)


def test_the_whole_search_meets_its_target_and_trials_spend_what_it_allows(within: PrivateGridSearchCV) -> None:
    assert 0.98 * 1.5 < within.epsilon_ <= 1.5
    assert within.delta_ == within.best_estimator_.delta == 1e-6
    assert within.best_estimator_.epsilon < 1.5
    assert within.estimator is MODEL
    assert (MODEL.epsilon, MODEL.delta) == (1.0, 1e-5)
    assert within.guarantee_.epsilon(1e-6) == within.epsilon_
    assert within.private_


def test_a_search_has_a_certificate_of_every_setting(within: PrivateGridSearchCV) -> None:
    certificate = within.guarantee_.certificate
    verdict = li.verify(json.dumps(certificate))
    assert verdict.accepted, verdict
    assert within.epsilon_ <= verdict.epsilon <= within.epsilon_ * (1 + 1e-5)
    assert len(certificate["settings"]) == 2
    assert certificate["stated_mu"] > 0
    assert within.best_estimator_.report_.caveats
    certificate["stated_mu"] = None
    assert not li.verify(certificate).accepted


def test_the_certificate_of_a_search_that_leaked_is_rejected() -> None:
    with pytest.warns(PrivacyLeak, match="random_state is set"):
        seeded = search(grid={"l2": [0.1]}, random_state=1).fit(FEATURES, SIDES)
    verdict = li.verify(seeded.guarantee_.certificate)
    assert not verdict.accepted
    assert "random_state is set" in verdict.reason
    for composed in (li.compose, lambda parts: li.Budget(9.0, 1e-5, dataset="people").spend(parts[0], what="search")):
        with raises("guarantee_with_caveat", "guarantees", kind=InvalidInput):
            composed([seeded.guarantee_])


@pytest.mark.parametrize("target", [{"epsilon": 1.0}, {"delta": 1e-5}])
def test_a_target_is_both_numbers(target: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="must be given together") as refused:
        search(**target).fit(FEATURES, SIDES)
    assert refused.value.field not in target


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"epsilon": -1.0, "delta": 1e-5}, "epsilon"),
        ({"epsilon": float("nan"), "delta": 1e-5}, "epsilon"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta"),
        ({"epsilon": 1.0, "delta": 1e-5, "grid": {"epsilon": [0.5]}}, "param_grid"),
    ],
)
def test_a_bad_target_is_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        search(**settings).fit(FEATURES, SIDES)
    assert refused.value.field == field


def test_a_pipeline_is_one_trial_together_with_what_its_steps_learn() -> None:
    """The noise of the preparation is counted in the run of the model, as it was planned."""
    found = search(PIPELINE, {"model__l2": [0.1], "prepare__reach": [2.0]}).fit(FEATURES, SIDES)
    model = found.best_estimator_[-1]
    assert isinstance(found.best_estimator_, Pipeline)
    assert found.best_params_ == {"model__l2": 0.1, "prepare__reach": 2.0}
    assert model.run_.prior_mu >= found.best_estimator_["prepare"]._mu()
    assert found.best_estimator_["prepare"].guarantee_.caveats  # it is of one trial, too
    expected = li.select([li.account(model.run_, 1e-5), li.notions.GaussianDP(_stated(found))], trials=THREE)
    assert found.epsilon_ == pytest.approx(expected.epsilon(1e-5))
    assert found.private_
    assert model.report_.caveats[0] == fact("best_of_trials")
    assert found.predict(FEATURES).shape == (1000,)
    assert found.predict_proba(FEATURES).shape == (1000, 2)
    assert li.verify(found.guarantee_.certificate).accepted


def _stated(found: PrivateGridSearchCV) -> float:
    return float(found.guarantee_.certificate["stated_mu"])


def test_a_pipeline_meets_a_target_and_its_steps_may_add_columns() -> None:
    wider = make_pipeline(PolynomialFeatures(include_bias=False), clone(MODEL).set_params(delta=None))
    grid = {"polynomialfeatures__degree": [1, 2]}
    found = search(wider, {**grid, "privatelogisticregression__l2": [0.1]}, epsilon=2.0, delta=1e-5)
    found.fit(FEATURES, SIDES)
    assert 1.9 < found.epsilon_ <= 2.0
    assert found.best_estimator_[-1].coef_.shape[1] in (3, 9)
    runs = [
        planned_run(trial_of(found.best_estimator_, {"polynomialfeatures__degree": n}), FEATURES[:800]) for n in (1, 2)
    ]
    assert found.best_estimator_[-1].run_ in runs


def test_pipelines_inside_pipelines_are_followed_to_the_model() -> None:
    inner = make_pipeline(FunctionTransformer(np.tanh), clone(MODEL))
    found = search(make_pipeline(Normalizer(), inner), {"pipeline__privatelogisticregression__l2": [0.1]})
    assert found.fit(FEATURES, SIDES).best_estimator_[-1][-1].l2 == 0.1


def test_columns_with_names_are_seen_by_the_search_and_not_by_its_trials() -> None:
    """Warnings are errors."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FEATURES, columns=["a", "b", "c"])
    found = search(make_pipeline(Normalizer(), MODEL), {"privatelogisticregression__l2": [0.1]}).fit(frame, SIDES)
    assert (found.predict(frame) == found.best_estimator_.predict(FEATURES)).all()
    assert found.score(frame, SIDES) == found.best_estimator_.score(FEATURES, SIDES)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame[["c", "b", "a"]])


class Untold:
    """A step that says nothing of itself."""

    def fit(self, X: Any, y: Any = None) -> Untold:
        return self

    def transform(self, X: Any) -> Any:
        return X

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("estimator", "grid", "field", "message"),
    [
        (make_pipeline(StandardScaler(), MODEL), {}, "estimator", "StandardScaler does. Use PrivatePreparation"),
        (make_pipeline(Untold(), MODEL), {}, "estimator", "Untold does"),
        (
            make_pipeline(Normalizer(), StandardScaler()),
            {},
            "estimator",
            "Pipeline that ends in one. Got StandardScaler",
        ),
        (Pipeline(PIPELINE.steps, memory="cache"), {"model__l2": [0.1]}, "memory", "would not be independent"),
        (PIPELINE, {"l2": [0.1]}, "param_grid", "model__l2 names one of the last step. Got 'l2'"),
        (PIPELINE, {"memory": ["cache"]}, "param_grid", "Got 'memory'"),
        (PIPELINE, {"model__delta": [1e-5]}, "param_grid", "Got 'model__delta'"),
        (PIPELINE, {"model__random_state": [1]}, "param_grid", "Got 'model__random_state'"),
        (PIPELINE, {"prepare__random_state": [1]}, "random_state", "all trials would be the same"),
        (PIPELINE, {"prepare__feature_norm": [None]}, "feature_norm", "given to PrivatePreparation"),
        (PIPELINE, {"prepare__delta": [None]}, "delta", "given to PrivatePreparation"),
        (PIPELINE, {"prepare__adjacency": [li.ZERO_OUT]}, "adjacency", "must be the same in all steps"),
        (PIPELINE, {"model__classes": [None]}, "classes", "given to PrivateLogisticRegression"),
    ],
)
def test_what_a_pipeline_must_not_do_is_refused(estimator: Any, grid: Any, field: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        search(estimator, grid or {"privatelogisticregression__l2": [0.1]}).fit(FEATURES, SIDES)
    assert refused.value.field == field


def test_a_regression_is_scored_on_records_that_it_was_not_trained_on() -> None:
    found = search(REGRESSION, epsilon=2.0, delta=1e-5).fit(FEATURES, SCORES)
    assert found.epsilon_ <= 2.0
    assert -4.5 < found.best_score_ < 0.5
    assert found.private_
    assert li.verify(found.guarantee_.certificate).accepted
    with raises("search_scoring", "scoring", kind=InvalidInput, allowed="neg_mean_absolute_error"):
        search(REGRESSION, scoring="r2").fit(FEATURES, SCORES)


class Given:
    def __init__(self, predictions: Any) -> None:
        self.predictions = np.asarray(predictions)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.predictions


def held(targets: list[float], mu: float = 0.5) -> HeldOutErrors:
    return HeldOutErrors(np.zeros((len(targets), 1)), np.array(targets), mu, slice(None), 2.0)


def test_an_error_counts_as_twice_the_bound_at_most_so_that_a_record_moves_the_sum_by_one() -> None:
    """Without noise, so that the sum itself is seen: whatever a target or a prediction is."""
    for targets, predictions in (
        ([0.0, 0.0], [1e300, 0.0]),
        ([0.0, 0.0], [np.nan, 0.0]),
        ([np.inf, 0.0], [-np.inf, 0.0]),
        ([4.0, 0.0], [0.0, 0.0]),
    ):
        exact = held(targets, mu=2.0**40).score(Given(predictions), Source(1))
        assert exact == pytest.approx(-4.0 / 2, abs=1e-6)
    assert held([1.0, 1.0], mu=2.0**40).score(Given([0.0, 0.5]), Source(1)) == pytest.approx(-0.75, abs=1e-5)


def test_the_noise_of_an_error_is_that_of_its_mu() -> None:
    source, one = Source(5), held([0.3] * 100)
    drawn = np.array([one.score(Given(np.zeros(100)), source) for _ in range(3000)])
    assert drawn.mean() == pytest.approx(-0.3, abs=0.01)
    assert 100 * drawn.std() / 4.0 == pytest.approx(1 / 0.5, rel=0.05)
    assert one.guarantees(li.ZERO_OUT) == [li.notions.GaussianDP(0.5, li.ZERO_OUT)]
