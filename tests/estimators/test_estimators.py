"""Estimators: scikit-learn's own checks, what they promise about privacy, and data as it comes."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Iterator

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import lastiterate as li
from lastiterate.estimators import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from lastiterate.estimators.given import warn_of_longer
from lastiterate.estimators.prepared import PreparedRecords, ShortRows
from lastiterate.facts import fact, facts_to_json
from lastiterate.training.preparation import only_scaled
from raising import raises

ALL = (PrivateLogisticRegression, PrivateLinearSVC, PrivateLinearRegression)
SOURCE = np.random.default_rng(0)
FEATURES = SOURCE.normal(size=(900, 4)) / 3
SCORES = FEATURES @ [2.0, -1.0, 0.5, 0.0] + 0.2
SIDES = np.where(SCORES > 0, "yes", "no")
THIRDS = np.digitize(SCORES, [-0.5, 0.7])
KNOWN = {"delta": 1e-5, "feature_norm": 1.0}
AT_ONCE = {"batches": 1, **KNOWN}  # full batches are calibrated at once: for what does not depend on the plan


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rows were longer.*")
        yield


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([kind() for kind in ALL] + [kind(random_state=0, **KNOWN) for kind in ALL])
def test_scikit_learn_agrees(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (PrivateLogisticRegression(classes=["no", "yes"], **KNOWN), SIDES),
        (PrivateLogisticRegression(classes=[0, 1, 2], **KNOWN), THIRDS),
        (PrivateLinearSVC(classes=["no", "yes"], **KNOWN), SIDES),
        (PrivateLinearSVC(classes=[0, 1, 2], **KNOWN), THIRDS),
        (PrivateLinearRegression(target_bound=3.0, **KNOWN), SCORES),
        (PrivateLinearRegression(target_bound=3.0, loss="ridge", l2=0.01, **KNOWN), SCORES),
    ],
    ids=lambda value: f"{len(value)} targets" if isinstance(value, np.ndarray) else repr(value),
)
def test_what_is_run_meets_the_target_and_learns(model: object, targets: np.ndarray, epsilon: float) -> None:
    fitted = model.set_params(epsilon=epsilon).fit(FEATURES, targets)  # type: ignore[attr-defined]
    assert 0.99 * epsilon < fitted.report_.epsilon <= epsilon
    assert fitted.report_.delta == 1e-5
    assert fitted.report_.run is fitted.run_
    assert fitted.private_
    assert fitted.report_.caveats == ()
    # One model in twenty is worse at epsilon = 0.5, by its noise; five of nine are with a probability below 1e-4.
    scores = [model.fit(FEATURES, targets).score(FEATURES, targets) for _ in range(9)]  # type: ignore[attr-defined]
    assert np.median(scores) > (0.5 if epsilon < 1 else 0.7)


@pytest.mark.parametrize("kind", ALL)
def test_an_adjacency_is_a_parameter_like_others(kind: type) -> None:
    model = kind(adjacency=li.ZERO_OUT)
    assert clone(model).get_params()["adjacency"] is li.ZERO_OUT
    assert kind().set_params(adjacency=li.ZERO_OUT).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).adjacency is li.ZERO_OUT


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (PrivateLogisticRegression(classes=["no", "yes"], batches=1, **KNOWN), SIDES),
        (PrivateLogisticRegression(classes=[0, 1, 2], batches=3, **KNOWN), THIRDS),
        (PrivateLinearSVC(classes=["no", "yes"], batches=5, **KNOWN), SIDES),
        (PrivateLinearRegression(target_bound=3.0, batches=1, **KNOWN), SCORES),
    ],
    ids=repr,
)
def test_a_record_that_contributes_nothing_is_hidden_by_less_noise(model: object, targets: np.ndarray) -> None:
    """The plan is chosen and the noise calibrated for what is asked, and both reports say for what."""
    plan = {"epochs": 10, "step_size": 0.5, "l2": 0.01}
    replaced, zeroed = (
        clone(model).set_params(adjacency=one, **plan).fit(FEATURES, targets)  # type: ignore[attr-defined]
        for one in (li.REPLACE_ONE, li.ZERO_OUT)
    )
    assert 0.99 < zeroed.report_.epsilon <= 1.0
    assert (replaced.report_.run.adjacency, zeroed.report_.run.adjacency) == (li.REPLACE_ONE, li.ZERO_OUT)
    assert zeroed.report_.unit == li.ZERO_OUT.unit()
    assert " (zero out one record" in str(zeroed.report_).splitlines()[0]
    assert zeroed.noise_ < 0.75 * replaced.noise_
    assert zeroed.plan_.error < replaced.plan_.error


@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
def test_records_that_are_added_or_removed_are_dealt_by_themselves() -> None:
    given = {"adjacency": li.ADD_OR_REMOVE_ONE, "classes": ["no", "yes"], **KNOWN}
    assert PrivateLogisticRegression(**given).fit(FEATURES, SIDES).run_.batches == li.Poisson(900, 1.0)
    passes = PrivateLogisticRegression(batches=5, epochs=3, **given).fit(FEATURES, SIDES)
    assert passes.run_.batches == li.BallsAndBins(900, 5)
    model = PrivateLogisticRegression(batches=li.Poisson(900, 0.1), epochs=3, **given).fit(FEATURES, SIDES)
    assert 0.99 < model.report_.epsilon <= 1.0
    with raises("records_would_move", "adjacency", kind=li.errors.InvalidInput):
        PrivateLogisticRegression(batches=li.Shuffled(900, 100), **given).fit(FEATURES, SIDES)
    with raises(
        "must_be",
        "adjacency",
        kind=li.errors.InvalidInput,
        allowed="one of 'replace_one', 'zero_out', 'add_or_remove_one'",
    ):
        PrivateLogisticRegression(**{**given, "adjacency": "zeroed_out"}).fit(FEATURES, SIDES)


def test_hidden_steps_have_convex_losses_and_others_need_none() -> None:
    """A softmax clipped as one vector is not convex (errata E4.1): every step is paid for, or it is not clipped so."""
    given = {"classes": [0, 1, 2], **KNOWN}
    paid = PrivateLogisticRegression(**given).fit(FEATURES, THIRDS)
    assert (paid.run_.loss.kind, paid.run_.clip, paid.run_.convex) == ("softmax", 0.3, False)
    assert paid.report_.epsilon == pytest.approx(paid.report_.epsilon_all_released)
    assert paid.coef_.shape == (3, 4)
    assert paid.predict_proba(FEATURES).sum(axis=1) == pytest.approx(np.ones(900))
    hidden = PrivateLogisticRegression(batches=5, epochs=2, **given).fit(FEATURES, THIRDS)
    assert (hidden.run_.loss.arguments["pull"], hidden.run_.clip, hidden.run_.convex) == (0.3, None, True)
    assert hidden.report_.epsilon < hidden.report_.epsilon_all_released
    hinges = PrivateLinearSVC(batches=5, epochs=2, **given).fit(FEATURES, THIRDS)
    assert hinges.run_.loss.arguments["classes"] == 3
    assert hinges.run_.convex


@pytest.mark.parametrize(
    ("left_out", "code", "said"),
    [
        ("delta", "delta_from_records", "reveals the number of records"),
        ("feature_norm", "feature_norm_read", "longest row"),
        ("classes", "classes_read", "labels were read from the data"),
        ("random_state", "random_state_set", "not private"),
    ],
)
def test_what_leaks_is_said(left_out: str, code: str, said: str) -> None:
    given = {"classes": ["no", "yes"], "random_state": None, **AT_ONCE, "feature_norm": 3.0}
    given[left_out] = 0 if left_out == "random_state" else None  # type: ignore[assignment]
    with pytest.warns(li.errors.PrivacyLeak, match=said) as caught:
        model = PrivateLogisticRegression(**given).fit(FEATURES, SIDES)
    assert said in str(model.report_)
    assert model.report_.to_dict()["caveats"][-1]["code"] == code
    assert said in str(model.report_.caveats[-1])
    assert len([one for one in caught if one.category is li.errors.PrivacyLeak]) == 1
    assert all(one.filename == __file__ for one in caught if one.category is li.errors.PrivacyLeak)


def test_the_target_bound_leaks() -> None:
    with pytest.warns(li.errors.PrivacyLeak, match="largest"):
        PrivateLinearRegression(**KNOWN).fit(FEATURES, SCORES)


@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
def test_what_leaks_is_not_private() -> None:
    known = {"classes": ["no", "yes"], **AT_ONCE, "feature_norm": 3.0}
    given = known, {**known, "classes": None}
    told, untold = (PrivateLogisticRegression(**one).fit(FEATURES, SIDES) for one in given)
    assert (told.private_, untold.private_) == (True, False)
    assert not li.verify(untold.report_.certificate).accepted
    counted = PrivateLogisticRegression(adjacency=li.ADD_OR_REMOVE_ONE, **known).fit(FEATURES, SIDES)
    assert not counted.private_
    assert counted.report_.caveats == (fact("records_counted", records=900),)


def test_targets_that_are_cut_are_counted() -> None:
    with pytest.warns(li.errors.PrivacyLeak, match="of 900 targets were larger than target_bound = 0.1") as caught:
        PrivateLinearRegression(target_bound=0.1, **AT_ONCE).fit(FEATURES, SCORES)
    assert [one.filename for one in caught if "targets" in str(one.message)] == [__file__]


@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
def test_a_seed_is_marked_in_the_report() -> None:
    one, two = (PrivateLinearSVC(random_state=7, **AT_ONCE).fit(FEATURES, SIDES) for _ in range(2))
    assert (one.coef_ == two.coef_).all()
    assert not one.private_
    assert "DO NOT RELEASE" in str(one.report_)
    seeded = [fact("noise_seeded", generator="lastiterate"), fact("random_state_set")]
    assert one.report_.to_dict()["caveats"][:1] + one.report_.to_dict()["caveats"][-1:] == facts_to_json(seeded)


def test_without_a_seed_nothing_repeats() -> None:
    one, two = (PrivateLogisticRegression(classes=["no", "yes"], **AT_ONCE).fit(FEATURES, SIDES) for _ in range(2))
    assert (one.coef_ != two.coef_).all()


def test_pipelines_and_files() -> None:
    model = make_pipeline(Normalizer(), PrivateLogisticRegression(epsilon=2.0, classes=["no", "yes"], **AT_ONCE))
    model.fit(FEATURES, SIDES)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    again = joblib.load(file)
    assert (again.predict(FEATURES) == model.predict(FEATURES)).all()
    assert again[-1].report_.epsilon == model[-1].report_.epsilon
    assert pickle.loads(pickle.dumps(model[-1])).report_.epsilon <= 2.0


def test_tuning_on_private_data_is_warned_of() -> None:
    model = PrivateLogisticRegression(epsilon=2.0, classes=["no", "yes"], **AT_ONCE)
    search = GridSearchCV(model, {"l2": [0.0, 0.01]}, cv=2)
    with pytest.warns(li.errors.PrivacyLeak, match="one of several on the same data"):
        search.fit(FEATURES, SIDES)
    assert search.best_score_ > 0.6
    with pytest.warns(li.errors.PrivacyLeak, match="one of several on the same data"):
        cross_val_score(model, FEATURES, SIDES, cv=2)


def test_what_the_user_fixes_is_what_is_run() -> None:
    fixed = {"l2": 0.01, "batches": 7, "epochs": 3, "step_size": 0.5, "fit_intercept": False}
    model = PrivateLinearSVC(classes=["no", "yes"], **KNOWN, **fixed).fit(FEATURES, SIDES)  # type: ignore[arg-type]
    assert model.run_.batches == li.Shuffled(896, 128)  # seven equal batches; four records are left out
    assert (model.run_.steps, model.run_.step_size, model.run_.loss.l2) == (21, 0.5, 0.01)
    assert model.intercept_.tolist() == [0.0]
    own = PrivateLinearSVC(classes=["no", "yes"], batches=li.Poisson(900, 0.1), epochs=3, **KNOWN).fit(FEATURES, SIDES)
    assert own.run_.batches == li.Poisson(900, 0.1)
    assert own.report_.epsilon <= 1.0


def test_the_intercept_is_part_of_the_norm() -> None:
    """No row of what is trained on is longer than the run declares, and some row is nearly as long."""
    longest = FEATURES / np.linalg.norm(FEATURES, axis=1, keepdims=True)
    given = {"classes": ["no", "yes"], "preparation": None, "batches": 5, "epochs": 1, **KNOWN}
    model = PrivateLogisticRegression(**given).fit(longest, SIDES)
    rows = np.hstack([longest, np.full((900, 1), 0.3)])
    declared = model.run_.loss.arguments["feature_norm"]
    assert declared * (1 - 1e-9) < np.linalg.norm(rows, axis=1).max() <= declared


def test_rows_that_are_too_long_are_counted() -> None:
    model = PrivateLogisticRegression(classes=["no", "yes"], batches=1, delta=1e-5, feature_norm=0.2)
    with pytest.warns(li.errors.PrivacyLeak, match="of 900 rows were longer.*not private"):
        model.fit(FEATURES, SIDES)
    assert not [name for name in vars(model) if "short" in name]  # what is dumped with the model must not tell


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        (np.where(FEATURES > 0.5, np.nan, FEATURES), SIDES, "NaN"),
        (np.where(FEATURES > 0.5, np.inf, FEATURES), SIDES, "infinity"),
        (FEATURES, np.full(900, "yes"), None),
        (FEATURES, np.where(SCORES > 0, "yes", "perhaps"), "only labels in classes"),
        (FEATURES.astype(str).astype(object) + "x", SIDES, "could not convert"),
        (FEATURES[:0], SIDES[:0], "0 sample"),
        (FEATURES + 1j, SIDES, "Complex"),
        (FEATURES, SIDES[:10], "inconsistent numbers"),
    ],
)
def test_bad_data(features: np.ndarray, labels: np.ndarray, said: str | None) -> None:
    """One class only is no error where the classes are known; all else is refused in one sentence."""
    model = PrivateLogisticRegression(classes=["no", "yes"], **KNOWN)
    if said is None:
        assert set(model.fit(features, labels).predict(FEATURES)) <= {"no", "yes"}
        return
    with pytest.raises(ValueError, match=said):
        model.fit(features, labels)


@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
def test_one_class_that_is_learnt_from_the_data_is_an_error() -> None:
    with raises("classes_too_few", kind=li.errors.InvalidInput):
        PrivateLogisticRegression(**KNOWN).fit(FEATURES, np.full(900, "yes"))


@pytest.mark.parametrize("kind", [np.float32, np.int64, bool, csr_array, list])
def test_features_of_every_kind(kind: object) -> None:
    rows = np.sign(FEATURES[:, :3]) / (1 if kind in (np.int64, bool) else 2)
    features = (
        rows.astype(kind)
        if kind in (np.float32, np.int64, bool)
        else kind(rows)
        if kind is csr_array
        else rows.tolist()
    )  # type: ignore[operator, call-overload, arg-type]
    model = PrivateLogisticRegression(epsilon=4.0, classes=["no", "yes"], batches=1, delta=1e-5, feature_norm=2.0)
    assert model.fit(features, SIDES).score(features, SIDES) > 0.55


def test_constant_features_and_few_records() -> None:
    model = PrivateLogisticRegression(classes=["no", "yes"], **KNOWN)
    assert np.isfinite(model.fit(np.ones((900, 2)) / 2, SIDES).coef_).all()
    assert np.isfinite(model.fit(np.zeros((900, 2)), SIDES).coef_).all()
    assert np.isfinite(model.fit(FEATURES[:1], SIDES[:1]).coef_).all()
    with raises("batches_beyond_records", "batches", kind=li.errors.InvalidInput, records=5):
        model.set_params(batches=8).fit(FEATURES[:5], SIDES[:5])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"feature_norm": -1.0}, "feature_norm must be"),
        ({"l2": -1.0}, "l2 must be"),
        ({"batches": 2.5}, "batches must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"step_size": 0.0}, "step_size must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"batches": li.FullBatch(1000)}, "one for each row. Got 1000"),
        ({"batches": li.FullBatch(100)}, "one for each row. Got 100"),
        ({"pull": 1.5}, "pull must be"),
        ({"classes": "yes"}, "a list of labels"),
        ({"classes": 2}, "a list of labels"),
        ({"classes": ["yes"]}, "at least two labels"),
        ({"classes": [0, 1]}, "have the type of classes"),
        ({"classes": [None, 1]}, "numbers, or of strings"),
        ({"random_state": "x"}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"step_size": 1e9, "l2": 1e9, "epochs": 100}, "a smaller step_size"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_settings(wrong: dict[str, object], said: str) -> None:
    model = PrivateLogisticRegression(classes=["no", "yes"], **KNOWN).set_params(**wrong)
    with pytest.raises(li.errors.InvalidInput, match=said):
        model.fit(FEATURES, SIDES)


def test_masked_entries_are_refused() -> None:
    masked = np.ma.masked_greater(FEATURES, 0.5)
    for model in (PrivateLogisticRegression(classes=["no", "yes"], **KNOWN), PrivateLinearRegression(**KNOWN)):
        with raises("data_masked", "data", kind=li.errors.InvalidInput):
            model.fit(masked, SIDES if hasattr(model, "classes") else SCORES)


def test_rows_keep_the_constant_feature_when_they_are_scaled() -> None:
    """A row of norm 100 becomes one of norm 1; its intercept stays what it is."""
    given, norms = np.r_[[[100.0, 0, 0, 0]], FEATURES[1:] / 4], np.r_[100.0, np.ones(899) / 2]
    with pytest.warns(li.errors.PrivacyLeak, match="1 of 900 rows"):
        warn_of_longer(norms, 1.0)
    rows, _ = PreparedRecords(ShortRows(given, norms, 1.0), np.ones(900), only_scaled(4, 1.0), 0.25).whole()
    assert rows[0].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0, 0.25], rel=1e-14)
    assert rows[0, 0] <= 1
    assert np.array_equal(rows[1:, :4], given[1:])


def _mean_score(features: np.ndarray, labels: np.ndarray, seeds: int, **given: object) -> float:
    model = PrivateLogisticRegression(delta=1e-5, feature_norm=1.0, classes=np.unique(labels), **given)  # type: ignore[arg-type]
    return float(np.mean([model.fit(features, labels).score(features, labels) for _ in range(seeds)]))


@pytest.mark.parametrize(("load", "epsilon"), [(load_breast_cancer, 1.0), (load_digits, 2.0)])
def test_the_chosen_plan_beats_fixed_ones(load: object, epsilon: float) -> None:
    """Settings that one would write down without thinking: 1 or 10 batches, 10 epochs, step size 0.1 or 1."""
    features, labels = load(return_X_y=True)  # type: ignore[operator]
    features = 2 * features / features.max(axis=0).clip(1e-9) - 1
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    chosen = _mean_score(features, labels, 4, epsilon=epsilon)
    for batches in (1, 10):
        for step_size in (0.1, 1.0):
            fixed = _mean_score(features, labels, 4, epsilon=epsilon, batches=batches, epochs=10, step_size=step_size)
            assert chosen > fixed - 0.01
