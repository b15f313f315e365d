"""What is learnt of the data before training is learnt with noise, paid for, and part of the model's report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import lastiterate as li
from lastiterate.estimators import PrivateLinearRegression, PrivateLogisticRegression, PrivatePreparation
from lastiterate.facts import fact
from lastiterate.numerics.randomness import Source
from lastiterate.training.objectives import summed_in_blocks
from lastiterate.training.preparation import Preparation, PrivateRows, Spent
from raising import raises

SOURCE = np.random.default_rng(0)
FEATURES = 0.05 * SOURCE.normal(size=(1500, 4)).clip(-2, 2) + 0.39
SIDES = np.where((FEATURES - 0.39) @ [2.0, -1.0, 0.5, 0.0] > 0, "yes", "no")
KNOWN = {"epsilon": 1.0, "delta": 1e-5, "feature_norm": 1.0}
KINDS = [li.REPLACE_ONE, li.ZERO_OUT, li.ADD_OR_REMOVE_ONE]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([PrivatePreparation(), PrivatePreparation(random_state=0, delta=1e-5, feature_norm=1.0)])
def test_scikit_learn_agrees(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def _rows(features: np.ndarray, adjacency: Any = li.REPLACE_ONE, most: float = 1.0) -> PrivateRows:
    return PrivateRows(lambda: iter([features]), len(features), most, adjacency)


@pytest.mark.parametrize("adjacency", KINDS)
def test_the_noise_is_that_of_gaussian_mechanisms(adjacency: Any) -> None:
    """Of the sum of rows: twice their norm over mu if one is replaced, once if it is not there; of distances, once."""
    features, spent = np.array([[0.6, 0.0], [0.0, 0.8]]), Spent(center=2.0, scale=200.0)
    learnt = [_rows(features, adjacency).learnt(spent, 2.0, Source(seed)) for seed in range(1000)]
    centers = np.array([one.center for one in learnt])  # two features: nothing is shrunk
    std = (2 if adjacency.replaces else 1) / (2.0 * 2)
    assert kstest((centers - features.mean(axis=0)).ravel() / std, "norm").pvalue > 1e-4
    farthest = 1 + np.linalg.norm(centers, axis=1)
    exact = [np.mean(np.sum(np.square(features - one.center), axis=1)) for one in learnt]
    noise = (np.square([one.scale for one in learnt]) - exact) / np.square(farthest)
    assert kstest(noise / (1 / (200.0 * 2)), "norm").pvalue > 1e-4


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_record_moves_a_computed_sum_by_no_more_than_is_hidden(precision: Any) -> None:
    rows = SOURCE.normal(size=(3000, 5))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - 1e-6)).astype(precision)
    private = _rows(rows)
    allowed, ones = private._moved(2.0, 1.0, precision), np.ones(3000, precision)
    for place in (0, 63, 64, 2999):
        other = rows.copy()
        other[place] = -rows[place]
        apart = np.linalg.norm(summed_in_blocks(ones, rows) - summed_in_blocks(ones, other))
        assert 1.99 < apart <= allowed
    assert allowed < 2.002


def test_where_a_record_is_added_all_others_may_be_rounded_anew() -> None:
    """Rows of single precision are then summed in double precision, and all blocks are charged for."""
    rows = SOURCE.normal(size=(3000, 5)).astype(np.float32)
    rows /= 1.001 * np.linalg.norm(rows, axis=1, keepdims=True)
    private = _rows(rows, li.ADD_OR_REMOVE_ONE)
    ones = np.ones(3000)
    apart = summed_in_blocks(ones, rows.astype(float)) - summed_in_blocks(ones[1:], rows[1:].astype(float))
    assert np.linalg.norm(apart) <= private._moved(1.0, 1.0, np.float64) < 1 + 1e-6
    assert private._moved(1.0, 1.0, np.float64) - 1 > 2 * (_rows(rows)._moved(2.0, 1.0, np.float64) - 2)
    learnt = [
        _rows(one, li.ADD_OR_REMOVE_ONE).learnt(Spent(1e12, 1e12), 2.0, Source(0)) for one in (rows, rows.astype(float))
    ]
    assert (learnt[0].center == learnt[1].center).all()


def test_a_mean_that_is_lost_in_noise_is_shrunk() -> None:
    features = 0.001 * SOURCE.normal(size=(100, 50))
    learnt = _rows(features).learnt(Spent(center=0.1, scale=0.1), 2.0, Source(1))
    noise = 2 / (0.1 * 100) * math.sqrt(50)
    assert np.linalg.norm(learnt.center) < noise / 2  # and not at all, seven times in ten
    assert learnt.scale > 0.3  # its square is no smaller than its noise, 1/(0.1·100)


def test_prepared_rows_are_what_they_say_in_both_precisions() -> None:
    preparation = Preparation(np.array([0.5, 0.0]), 0.25, 2.0)
    for precision in (np.float32, np.float64):
        rows = preparation.rows(np.array([[0.5, 0.25], [1.5, 0.0]], precision))
        assert rows.dtype == precision
        assert rows.tolist() == pytest.approx(np.array([[0.0, 1.0], [2.0, 0.0]]))
    weights, constant = preparation.in_features(np.array([[1.0, 2.0]]))
    assert weights @ [0.6, 0.1] + constant == pytest.approx([0.4 + 0.8])


@pytest.mark.filterwarnings("ignore:the number of records")
@pytest.mark.parametrize("adjacency", KINDS)
def test_the_whole_is_exactly_the_sum_of_its_squares(adjacency: Any) -> None:
    """Centre, scale and every noisy gradient: Gaussian mechanisms, whose mu² add up to that of (ε, δ)."""
    model = PrivateLogisticRegression(classes=["no", "yes"], adjacency=adjacency, batches=1, passes=20, **KNOWN)
    run = model.fit(FEATURES, SIDES).run_
    mu = model.report_.best.notion.mu if isinstance(model.report_.best.notion, li.notions.GaussianDP) else None
    training = math.sqrt(20) * (2 if adjacency.replaces else 1) / run.noise.multiplier
    whole = math.hypot(run.prior_mu, training)
    assert model.report_.epsilon <= 1.0
    assert model.report_.epsilon == pytest.approx(li.notions.GaussianDP(whole).epsilon(1e-5), rel=1e-3)
    assert mu is None or mu == pytest.approx(whole, rel=1e-3)
    assert run.prior_mu**2 == pytest.approx(0.11 * whole**2, rel=1e-3)
    assert fact("released_before", mu=model.run_.prior_mu) in model.report_.promises
    assert "before training" in model.report_.details()
    assert li.verify(model.report_.certificate, run).accepted == (adjacency is not li.ADD_OR_REMOVE_ONE)


def test_without_preparation_nothing_is_spent_on_it() -> None:
    model = PrivateLogisticRegression(classes=["no", "yes"], preparation=None, **KNOWN).fit(FEATURES, SIDES)
    assert model.run_.prior_mu == 0
    assert (model.preparation_.center == 0).all()
    with raises("must_be", "preparation", kind=li.errors.InvalidInput, allowed="'auto' or None"):
        model.set_params(preparation="whiten").fit(FEATURES, SIDES)


def test_centring_pays_where_rows_lie_away_from_the_origin() -> None:
    def median(preparation: str | None) -> float:
        model = PrivateLogisticRegression(classes=["no", "yes"], preparation=preparation, **KNOWN)
        return float(np.median([model.fit(FEATURES, SIDES).score(FEATURES, SIDES) for _ in range(7)]))

    assert median("auto") > median(None) + 0.02


def test_what_is_released_is_a_linear_function_of_the_features() -> None:
    model = PrivateLogisticRegression(classes=["no", "yes"], **KNOWN).fit(FEATURES, SIDES)
    assert model.decision_function(FEATURES) == pytest.approx(FEATURES @ model.coef_[0] + model.intercept_[0])
    through = PrivateLogisticRegression(classes=["no", "yes"], fit_intercept=False, **KNOWN).fit(FEATURES, SIDES)
    assert (through.preparation_.center == 0).all()
    assert through.intercept_.tolist() == [0.0]


def test_targets_are_centred_and_scaled_with_noise_too() -> None:
    targets = FEATURES @ [2.0, -1.0, 0.5, 0.0] + 5.0
    model = PrivateLinearRegression(target_bound=10.0, **{**KNOWN, "epsilon": 8.0}).fit(FEATURES, targets)
    assert model.score(FEATURES, targets) > 0.8
    assert model.report_.epsilon <= 8.0
    assert model.run_.prior_mu**2 == pytest.approx(0.17 * model.report_.best.notion.mu**2, rel=1e-3)


def _neighbours() -> list[tuple[np.ndarray, np.ndarray]]:
    features, labels = np.tile([[0.0, 0.5]], (40, 1)), np.array([0, 1] * 20)
    pairs = []
    for row in ([1.0, 0.0], [-1.0, 0.0]):
        one = features.copy()
        one[0] = row
        pairs.append((one, labels))
    return pairs


@pytest.mark.filterwarnings("ignore")
def test_an_audit_of_everything_that_is_released_proves_no_more_than_is_claimed() -> None:
    """Centre, scale and weights, of two data sets that differ in a record which all of them see."""
    model = PrivateLogisticRegression(4.0, 1e-2, feature_norm=1.0, classes=[0, 1], batches=1, passes=4)

    def train(data: tuple[np.ndarray, np.ndarray], seed: int) -> np.ndarray:
        fitted = model.set_params(random_state=seed).fit(*data)
        kept = fitted.preparation_
        return np.array([kept.center[0], fitted.coef_[0, 0] * kept.scale])

    def score(released: np.ndarray) -> float:
        """Both in units of about their noise: the record pulls the centre up, and the weight down."""
        return float(9.0 * released[0] - released[1] / 1.8)

    found = li.audit(train, *_neighbours(), delta=1e-2, runs=300, confidence=0.999, score=score)
    assert 0.15 * model.report_.mu < found.mu <= model.report_.mu


@pytest.mark.filterwarnings("ignore")
def test_nothing_else_of_a_model_depends_on_a_record() -> None:
    """With the same noise, neighbours differ in what got noise, and in nothing else that a fitted model holds."""
    one, two = (
        PrivateLogisticRegression(4.0, 1e-2, feature_norm=1.0, classes=[0, 1], passes=4, random_state=3).fit(*data)
        for data in _neighbours()
    )
    noisy = {"coef_", "intercept_", "preparation_"}
    for name, value in vars(one).items():
        if name not in noisy:
            assert np.array_equal(value, getattr(two, name)) if name == "classes_" else value == getattr(two, name)
    assert (one.coef_ != two.coef_).all()


@pytest.mark.filterwarnings("ignore:the number of records")
@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.ZERO_OUT])
def test_a_step_of_a_pipeline_has_a_guarantee_of_its_own(adjacency: Any) -> None:
    preparation = PrivatePreparation(0.5, 1e-5, feature_norm=1.0, adjacency=adjacency)
    given = {**KNOWN, "feature_norm": 2.0, "adjacency": adjacency, "preparation": None}
    model = PrivateLogisticRegression(classes=["no", "yes"], **given)
    make_pipeline(preparation, model).fit(FEATURES, SIDES)
    assert 0.499 < preparation.guarantee_.epsilon(1e-5) <= 0.5
    both = li.compose([preparation.guarantee_, model.report_])
    assert 1.0 < both.epsilon(1e-5) < 1.5
    assert np.linalg.norm(preparation.transform(FEATURES), axis=1).max() <= 2.0 * (1 + 1e-9)
    assert preparation.get_feature_names_out(["a", "b", "c", "d"]).tolist() == ["a", "b", "c", "d"]


def test_bad_settings_of_a_preparation() -> None:
    for wrong in ({"reach": 0.0}, {"epsilon": -1.0}, {"adjacency": "x"}):
        with pytest.raises(li.errors.InvalidInput, match=f"{next(iter(wrong))} must be"):
            PrivatePreparation(**{**KNOWN, **wrong}).fit(FEATURES)  # type: ignore[arg-type]
    with pytest.warns(li.errors.PrivacyLeak, match="scaled down"):
        PrivatePreparation(1.0, 1e-5, feature_norm=0.5).fit(FEATURES)
