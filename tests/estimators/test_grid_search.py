"""PrivateGridSearchCV: what it releases, what that costs, and what it keeps to itself."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import lastiterate as li
from lastiterate.curves.trials import Trials
from lastiterate.errors import InvalidInput, PrivacyLeak, Unavailable
from lastiterate.estimators import PrivateGridSearchCV, PrivateLinearRegression, PrivateLogisticRegression
from lastiterate.estimators.trial import HeldOut
from lastiterate.facts import fact
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.randomness import Source
from raising import raises

SOURCE = np.random.default_rng(3)
FEATURES = SOURCE.uniform(-0.5, 0.5, size=(1000, 3))
SCORES = FEATURES @ [2.0, -1.0, 0.5]
SIDES = np.where(SCORES > 0, "yes", "no")
MODEL = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, feature_norm=1.0, classes=["no", "yes"], batches=1)
GRID = {"l2": [0.0, 0.1], "epochs": [4, 9]}
THREE = li.trials.Geometric(mean=3)


def search(**settings: Any) -> PrivateGridSearchCV:
    return PrivateGridSearchCV(**{"estimator": MODEL, "param_grid": GRID, "trials": THREE, **settings})


class Exactly(li.trials.Geometric):
    """As many trials as are told, whatever is accounted for."""

    count = 6

    def drawn(self, source: Source) -> int:
        return self.count


@pytest.fixture(scope="module")
def found() -> PrivateGridSearchCV:
    """Warnings are errors: nothing is warned of."""
    return search().fit(FEATURES, SIDES)


def test_the_best_model_is_released_and_its_cost_is_that_of_the_whole_search(found: PrivateGridSearchCV) -> None:
    """The worst setting counts, and the noisy score: each costs what a trial may."""
    runs = [
        clone(MODEL).set_params(l2=l2, epochs=n)._run_for(800, 3, np.dtype(float)) for l2 in (0, 0.1) for n in (4, 9)
    ]
    scored = li.notions.GaussianDP(float(shift_below(math.log(1e-5), 1.0)))
    expected = li.select([*(li.account(run, 1e-5) for run in runs), scored], trials=THREE)
    assert found.epsilon_ == pytest.approx(expected.epsilon(1e-5))
    assert found.epsilon_ == found.guarantee_.epsilon(found.delta_) > MODEL.epsilon
    assert found.best_params_ in [{"l2": l2, "epochs": n} for l2 in (0.0, 0.1) for n in (4, 9)]
    assert found.best_estimator_.l2 == found.best_params_["l2"]
    assert (found.predict(FEATURES) == found.best_estimator_.predict(FEATURES)).all()
    assert found.predict_proba(FEATURES).shape == (1000, 2)
    assert found.decision_function(FEATURES).shape == (1000,)
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.score(FEATURES, SIDES) > 0.6
    assert found.private_
    assert found.leaks_ == ()


def test_nothing_tells_of_the_other_trials(found: PrivateGridSearchCV) -> None:
    learnt = {name for name in vars(found) if name.endswith("_")}
    of_the_best = {"best_estimator_", "best_params_", "best_score_"}
    assert learnt == {*of_the_best, "guarantee_", "delta_", "leaks_", "private_", "n_features_in_"}
    assert not hasattr(found, "cv_results_")
    fewer, more = (search(trials=_of(count)).fit(FEATURES, SIDES) for count in (1, 6))
    assert set(vars(fewer)) == set(vars(more))
    assert fewer.epsilon_ == more.epsilon_


def test_a_search_draws_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    loud = search(estimator=clone(MODEL).set_params(verbose=True), trials=_of(2)).fit(FEATURES, SIDES)
    assert not loud.best_estimator_.verbose
    assert capsys.readouterr() == ("", "")


def _of(count: int) -> Trials:
    law = Exactly(mean=3)
    object.__setattr__(law, "count", count)
    return law


def test_the_best_model_alone_does_not_pass_for_one_trial(found: PrivateGridSearchCV) -> None:
    report = found.best_estimator_.report_
    assert report.caveats[0] == fact("best_of_trials")
    with raises("guarantee_with_caveat", "guarantees", kind=InvalidInput):
        li.compose([report])
    assert li.compose([found.guarantee_, li.notions.GaussianDP(mu=0.1)]).epsilon(1e-5) > found.epsilon_


def test_the_better_settings_win() -> None:
    """A public score, so that nothing but the settings makes the difference."""
    public = FEATURES[:300], SIDES[:300]
    chosen = search(
        param_grid={"epochs": [9], "step_size": [1e-6, 1.0]},
        validation=public,
        scoring="neg_log_loss",
        trials=_of(8),
        random_state=1,
    )
    with pytest.warns(PrivacyLeak, match="random_state is set"):
        chosen.fit(FEATURES, SIDES)
    assert chosen.best_params_["step_size"] == 1.0
    assert chosen.best_score_ == pytest.approx(-log_loss(public[1], chosen.predict_proba(public[0])))
    assert not chosen.private_


def test_public_records_cost_nothing_and_any_score_will_do() -> None:
    model = PrivateLinearRegression(epsilon=1.0, delta=1e-5, feature_norm=1.0, target_bound=2.0, batches=1, epochs=5)
    public = FEATURES[:200], SCORES[:200]
    regression = search(
        estimator=model, param_grid={"l2": [0.1]}, validation=public, scoring="neg_mean_absolute_error"
    ).fit(FEATURES, SCORES)
    one = li.account(model.set_params(l2=0.1)._run_for(1000, 3, np.dtype(float)), 1e-5)
    assert regression.epsilon_ == pytest.approx(li.select(one, trials=THREE).epsilon(1e-5))
    assert not hasattr(regression, "predict_proba")
    assert -2 < regression.best_score_ < 0


def test_the_noise_of_a_score_is_that_of_its_mu() -> None:
    held = HeldOut(FEATURES[:100], SIDES[:100], 0.5, slice(None))
    source = Source(5)

    class Always:
        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.full(len(rows), "yes")

    drawn = np.array([held.score(Always(), source) for _ in range(3000)])
    assert drawn.mean() == pytest.approx((SIDES[:100] == "yes").mean(), abs=0.002)
    assert 100 * drawn.std() == pytest.approx(1 / 0.5, rel=0.05)
    assert held.guarantees(li.ZERO_OUT) == [li.notions.GaussianDP(0.5, li.ZERO_OUT)]


def test_no_trial_no_model() -> None:
    with raises("search_no_trial", kind=Unavailable):
        search(trials=_of(0)).fit(FEATURES, SIDES)


def test_a_pipeline_may_end_in_it_if_no_step_before_learns() -> None:
    one = search(param_grid={"l2": [0.1]}, trials=_of(1))
    assert make_pipeline(Normalizer(), one).fit(FEATURES, SIDES)[-1].private_
    with raises("search_after_learning", "estimator", kind=InvalidInput) as refused:
        make_pipeline(StandardScaler(), one).fit(FEATURES, SIDES)
    assert refused.value.field == "estimator"


def test_a_search_of_searches_is_warned_of() -> None:
    twice = GridSearchCV(search(param_grid={"l2": [0.1]}, trials=_of(1)), {"validation": [0.2]}, cv=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        twice.fit(FEATURES, SIDES)
    assert any("one of several on the same data" in str(one.message) for one in said)


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"estimator": LogisticRegression()}, "estimator", "must be a private estimator"),
        (
            {"estimator": clone(MODEL).set_params(delta=None)},
            "delta",
            "delta must be given to PrivateLogisticRegression",
        ),
        ({"estimator": clone(MODEL).set_params(feature_norm=None)}, "feature_norm", "must not learn it"),
        ({"estimator": clone(MODEL).set_params(classes=None)}, "classes", "must not learn it"),
        ({"estimator": clone(MODEL).set_params(random_state=1)}, "random_state", "all trials would be the same"),
        ({"param_grid": {"depth": [1]}}, "param_grid", "settings of the estimator. Got 'depth'"),
        ({"param_grid": {"delta": [1e-5]}}, "param_grid", "Got 'delta'"),
        ({"param_grid": 3}, "param_grid", "must map settings to lists"),
        ({"param_grid": {"l2": [0.1, -1.0]}}, "l2", "l2 must be a float"),
        ({"trials": 5}, "trials", "li.trials.Geometric"),
        ({"validation": 1.5}, "validation", "validation must be a float in"),
        ({"validation": 1e-6}, "validation", "no records to train on or to score"),
        ({"validation": "all"}, "validation", "public records"),
        ({"scoring": "roc_auc"}, "scoring", "give public records"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_trial(settings: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        search(**settings).fit(FEATURES, SIDES)
    assert refused.value.field == field


def test_a_fitted_search_can_be_copied() -> None:
    one = search(param_grid={"l2": [0.1]}, trials=_of(1)).fit(FEATURES, SIDES)
    again = pickle.loads(pickle.dumps(one))
    assert (again.epsilon_, again.private_, again.best_params_) == (one.epsilon_, one.private_, one.best_params_)
    assert (again.predict(FEATURES) == one.predict(FEATURES)).all()


def test_the_best_model_alone_is_not_covered_by_its_own_report() -> None:
    one = search(param_grid={"l2": [0.1]}, trials=_of(1)).fit(FEATURES, SIDES)
    assert one.private_
    assert not one.best_estimator_.private_
    assert one.best_estimator_.leaks_
