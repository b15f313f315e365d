"""In a pipeline: what was learnt before the model is found, charged where it has noise, and warned of where it has none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from sklearn.semi_supervised import SelfTrainingClassifier

import lastiterate as li
from lastiterate.estimators import EachRow, PrivateLinearRegression, PrivateLogisticRegression, PrivatePreparation
from lastiterate.facts import fact
from raising import raises

SOURCE = np.random.default_rng(2)
FEATURES = SOURCE.normal(size=(400, 3))
SIDES = np.where(FEATURES[:, 0] > 0, "yes", "no")
DELTA = 1e-5
LEARNT = "in this pipeline"
SIGNS = FunctionTransformer(np.sign)
GIVEN = [[-1.0, 1.0]] * 3


def model(epsilon: float = 1.0, **given: Any) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(epsilon, DELTA, feature_norm=50.0, classes=["no", "yes"], **given)


def preparation(epsilon: float = 0.5, **given: Any) -> PrivatePreparation:
    return PrivatePreparation(epsilon, DELTA, feature_norm=10.0, **given)


def warned(*steps: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        make_pipeline(*steps).fit(FEATURES, SIDES)
    return [str(one.message) for one in said if LEARNT in str(one.message)]


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (StandardScaler(), "StandardScaler"),
        (make_pipeline(Normalizer(), PCA(2)), "PCA"),
        (FeatureUnion([("one", PCA(2)), ("two", Normalizer())]), "PCA"),
        (
            ColumnTransformer([("one", OneHotEncoder(), [0]), ("two", "passthrough", [1])]),
            "OneHotEncoder",
        ),
        (SimpleImputer(), "SimpleImputer"),
        (SimpleImputer(strategy="constant"), "SimpleImputer"),
        (SimpleImputer(strategy="constant", add_indicator=True, keep_empty_features=True), "SimpleImputer"),
        (make_pipeline(SIGNS, TargetEncoder(categories=GIVEN)), "TargetEncoder"),
        (make_pipeline(SIGNS, OneHotEncoder(categories=GIVEN, min_frequency=0.5)), "OneHotEncoder"),
        (make_pipeline(SIGNS, OrdinalEncoder(categories=GIVEN, max_categories=1)), "OrdinalEncoder"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_what_learns_without_noise_is_warned_of_once(step: Any, name: str) -> None:
    classifier = model()
    assert warned(step, classifier) == [
        f"{name} in this pipeline learnt from the same records without noise. This is released with the model, and "
        "epsilon does not cover it. Use PrivatePreparation, or a step that treats each row alone, such as Normalizer or "
        "EachRow(function)."
    ]
    assert not classifier.private_
    assert classifier.leaks_ == (fact("learnt_before", steps=name),)


def test_the_warning_is_at_the_users_line() -> None:
    with pytest.warns(li.errors.PrivacyLeak, match="StandardScaler in this pipeline") as said:
        make_pipeline(StandardScaler(), model()).fit(FEATURES, SIDES)
    assert [one.filename for one in said if LEARNT in str(one.message)] == [__file__]


@pytest.mark.parametrize(
    "step",
    [
        Normalizer(),
        FunctionTransformer(np.tanh),
        PolynomialFeatures(2),
        SimpleImputer(strategy="constant", keep_empty_features=True),
        make_pipeline(SIGNS, OrdinalEncoder(categories=GIVEN)),
        ColumnTransformer([("one", OneHotEncoder(categories=[[-1.0, 1.0]], handle_unknown="ignore"), [0])]),
        "passthrough",
    ],
    ids=str,
)
def test_what_looks_at_each_row_alone_is_not(step: Any) -> None:
    assert warned(step, model()) == []


class OwnPipeline(Pipeline):  # type: ignore[misc]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        return super().fit(X - X.mean(axis=0), y, **params)


class Renamed(Pipeline):  # type: ignore[misc]
    """With a `_fit` of its own, perhaps: what it does is not known."""


class Centred:
    """Not of scikit-learn, but as it does."""

    def fit(self, features: Any, targets: Any) -> Any:
        return regression().fit(features - features.mean(axis=0), targets)


class OwnModel(PrivateLinearRegression):
    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(X - X.mean(axis=0), y)


def regression() -> PrivateLinearRegression:
    return PrivateLinearRegression(1.0, DELTA, feature_norm=20.0, target_bound=5.0)


TWICE = FEATURES[:, :2]
BITS = np.where(TWICE > 0, "yes", "no")
SOME = np.where(np.arange(400) % 2, (FEATURES[:, 0] > 0).astype(int), -1)
COUNTED = PrivateLogisticRegression(1.0, DELTA, feature_norm=50.0, classes=[0, 1])
FITS: dict[str, Callable[[], Any]] = {
    "MultiOutputRegressor": lambda: MultiOutputRegressor(regression()).fit(FEATURES, TWICE).estimators_,
    "in parallel": lambda: MultiOutputRegressor(regression(), n_jobs=2).fit(FEATURES, TWICE).estimators_,
    "MultiOutputClassifier": lambda: MultiOutputClassifier(model()).fit(FEATURES, BITS).estimators_,
    "ClassifierChain": lambda: ClassifierChain(COUNTED).fit(FEATURES, (TWICE > 0).astype(int)).estimators_,
    "RegressorChain": lambda: RegressorChain(regression()).fit(FEATURES, TWICE).estimators_,
    "SelfTrainingClassifier": lambda: [SelfTrainingClassifier(clone(COUNTED)).fit(FEATURES, SOME).estimator_],
    "TransformedTargetRegressor": lambda: [
        TransformedTargetRegressor(regression(), transformer=StandardScaler()).fit(FEATURES, FEATURES[:, 0]).regressor_
    ],
    "OneVsRestClassifier": lambda: OneVsRestClassifier(COUNTED).fit(FEATURES, SIDES).estimators_,
    "BaggingRegressor": lambda: BaggingRegressor(regression(), 2).fit(FEATURES, FEATURES[:, 0]).estimators_,
    "a pipeline with its own fit": lambda: [OwnPipeline([("one", regression())]).fit(FEATURES, FEATURES[:, 0])[-1]],
    "another kind of pipeline": lambda: [Renamed([("one", regression())]).fit(FEATURES, FEATURES[:, 0])[-1]],
    "another object with a fit": lambda: [Centred().fit(FEATURES, FEATURES[:, 0])],
    "a model with its own fit": lambda: [
        OwnModel(1.0, DELTA, feature_norm=2.0, target_bound=5.0).fit(FEATURES, FEATURES[:, 0])
    ],
    "a function of all rows": lambda: [
        make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), regression()).fit(
            FEATURES, FEATURES[:, 0]
        )[-1]
    ],
    "preparation after a scaler": lambda: [make_pipeline(StandardScaler(), preparation()).fit(FEATURES)[-1]],
    "preparation between": lambda: [make_pipeline(StandardScaler(), preparation(), Normalizer()).fit(FEATURES)[1]],
}


@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
@pytest.mark.parametrize("fit", FITS)
def test_a_fit_inside_of_what_is_not_known_is_not_private(fit: str) -> None:
    fitted = FITS[fit]()
    assert fitted
    for one in fitted:
        assert not one.private_
        assert one.leaks_


def test_such_a_fit_is_warned_of() -> None:
    with pytest.warns(li.errors.PrivacyLeak, match="called by MultiOutputRegressor"):
        FITS["MultiOutputRegressor"]()


@pytest.mark.parametrize(
    "fit",
    [
        lambda: regression().fit(FEATURES, FEATURES[:, 0]),
        lambda: make_pipeline(Normalizer(), make_pipeline("passthrough", regression())).fit(FEATURES, FEATURES[:, 0])[
            -1
        ][-1],
        lambda: make_pipeline(EachRow(lambda rows: rows / 3), regression()).fit(FEATURES, FEATURES[:, 0])[-1],
        lambda: make_pipeline(preparation(), Normalizer()).fit(FEATURES)[0],
        lambda: (
            make_pipeline(ColumnTransformer([("one", preparation(), [0, 1])]), Normalizer())
            .fit(FEATURES)[0]
            .transformers_[0][1]
        ),
    ],
    ids=["alone", "pipelines", "each row", "preparation", "columns"],
)
def test_what_is_known_stays_private(fit: Callable[[], Any]) -> None:
    one = fit()
    assert one.private_
    assert one.leaks_ == ()


def test_each_row_sees_one_row_at_a_time() -> None:
    frame = pytest.importorskip("pandas").DataFrame(FEATURES, columns=["a", "b", "c"])
    centred, doubled = EachRow(lambda rows: rows - rows.mean(axis=0)), EachRow(lambda rows: rows * 2)
    for table in (FEATURES, frame):
        assert (centred.fit_transform(table) == 0).all()
        assert (doubled.fit_transform(table) == 2 * FEATURES).all()
    assert (doubled.fit_transform(csr_array(FEATURES)).toarray() == 2 * FEATURES).all()


def test_outside_a_pipeline_nothing_is_said() -> None:
    scaled = StandardScaler().fit_transform(FEATURES)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model().fit(scaled, SIDES)
    assert not [one for one in said if LEARNT in str(one.message)]


@pytest.mark.parametrize("classifier", [model(preparation=None), model()], ids=["alone", "and its own"])
def test_private_preparation_is_part_of_the_models_account(classifier: PrivateLogisticRegression) -> None:
    before = preparation()
    make_pipeline(before, classifier).fit(FEATURES, SIDES)
    report = classifier.report_
    assert report.epsilon <= 1.0
    assert report.run.prior_mu >= before.guarantee_.mu
    alone = li.account(_with_nothing_before(report.run), DELTA)
    both = np.hypot(alone.mu, report.run.prior_mu)
    assert both <= report.mu <= both * (1 + 1e-5)  # what rounding may add is charged once more


def _with_nothing_before(run: li.Run) -> li.Run:
    names = ("loss", "batches", "step_size", "noise", "steps", "arithmetic", "adjacency", "optimizer", "released")
    return li.Run(**{name: getattr(run, name) for name in names})


def test_a_regression_counts_it_too() -> None:
    regression = PrivateLinearRegression(1.0, DELTA, feature_norm=2.0, target_bound=5.0)
    before = preparation()
    make_pipeline(before, regression).fit(FEATURES, FEATURES[:, 0])
    own = regression.report_.run.prior_mu**2 - before.guarantee_.mu**2
    assert own == pytest.approx(0.17 * regression.report_.mu**2, rel=0.01)  # of features and targets
    assert regression.report_.epsilon <= 1.0


def test_preparation_that_leaves_nothing_is_refused() -> None:
    with raises("spent_beforehand", "prior_mu", kind=li.errors.Unavailable, epsilon=1.0):
        make_pipeline(preparation(2.0), model(preparation=None)).fit(FEATURES, SIDES)


def test_another_adjacency_is_refused() -> None:
    with raises("preparation_adjacency", "adjacency", kind=li.errors.InvalidInput):
        make_pipeline(preparation(adjacency=li.ZERO_OUT), model()).fit(FEATURES, SIDES)


def test_what_leaked_upstream_is_in_the_models_report() -> None:
    classifier = model()
    with pytest.warns(li.errors.PrivacyLeak, match="random_state is set"):
        make_pipeline(preparation(random_state=0), classifier).fit(FEATURES, SIDES)
    assert not classifier.private_
