"""`li.plan`: every plan is a run that meets the target, the best first, and what the user has fixed stays fixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.training.plans import chosen_plan
from raising import raises

LOGISTIC = li.losses.logistic(feature_norm=1.0)


def planned(**changes: Any) -> li.training.Plans:
    values = {"loss": LOGISTIC, "records": 2000, "features": 10, "epsilon": 2.0, "delta": 1e-5, "passes": 25}
    return li.plan(**{**values, **changes})


@pytest.fixture(scope="module")
def plans() -> li.training.Plans:
    return planned()


LOSSES = (
    LOGISTIC,
    li.losses.logistic(feature_norm=2.0, classes=3),
    li.losses.softmax(feature_norm=1.0, classes=4),
    li.losses.smooth_hinge(feature_norm=1.0, width=0.5),
    li.losses.ridge(feature_norm=1.0, clip=1.0),
    li.losses.huber(feature_norm=1.0, threshold=1.0),
    li.losses.general(smoothness=2.0, strong_convexity=0.0, gradient_norm=1.0),
    li.losses.general(smoothness=2.0, strong_convexity=0.1, gradient_sensitivity=1.0),
    li.losses.network(clip=1.0, smoothness=5.0),
)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_every_plan_meets_the_target(loss: Any) -> None:
    found = planned(loss=loss, passes=5)
    assert all(0.99 * 2.0 < li.account(one.run, 1e-5).epsilon == one.epsilon <= 2.0 for one in found)
    assert all(one.composed_epsilon >= one.epsilon and one.run.batches.records <= 2000 for one in found)
    assert all(one.run.steps <= 5 * one.run.batches.per_epoch for one in found)


@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.ZERO_OUT, li.ADD_OR_REMOVE_ONE], ids=repr)
def test_under_every_adjacency(adjacency: Any) -> None:
    found = planned(adjacency=adjacency, passes=5)
    assert {one.run.adjacency for one in found} == {adjacency}
    assert all(li.account(one.run, 1e-5).epsilon <= 2.0 for one in found)


def test_for_users_with_several_records(plans: li.training.Plans) -> None:
    found = planned(user_records=3, passes=5, batches=2)
    assert all(one.run.user_records == 3 for one in found)
    assert all(li.account(one.run, 1e-5).epsilon == pytest.approx(one.epsilon, rel=1e-9) for one in found)
    assert all(one.epsilon <= 2.0 for one in found)
    assert ", replace up to 3 records of one user, " in str(found)
    assert "one user" not in str(plans)
    assert found.best.expected_error > plans.best.expected_error
    with raises("must_be", "user_records", kind=li.errors.InvalidInput, allowed="at most records = 2000"):
        planned(user_records=2001)


def test_the_least_expected_error_comes_first(plans: li.training.Plans) -> None:
    errors = [one.expected_error for one in plans]
    assert plans.best is plans[0]
    assert errors[0] <= 1.1 * min(errors)  # full batches are preferred where they are nearly as good
    chosen = chosen_plan(plans.goal.problem, plans.goal.wishes)
    assert (plans[0].settings.way, plans[0].settings.epochs) == (chosen.way, chosen.epochs)


def test_the_error_is_that_of_the_noise_that_was_calibrated(plans: li.training.Plans) -> None:
    """What was foreseen from closed forms is near, and the table has what is true of the run."""
    for one in plans:
        noise = float(one.run.process.noise[0]) / one.settings.step_size
        assert one.settings.noise == pytest.approx(noise, rel=1e-12)


def test_each_is_ready_to_train(plans: li.training.Plans) -> None:
    source = np.random.default_rng(0)
    rows = source.normal(size=(2000, 10))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    signs = np.where(rows[:, 0] + 0.1 * source.normal(size=2000) > 0, 1.0, -1.0)
    for one in plans:
        used = one.run.batches.records
        trained = li.train(one.run, (rows[:used], signs[:used]))
        assert li.account(trained.run, 1e-5).epsilon <= 2.0
        assert np.mean(np.sign(rows @ trained.weights) == signs) > 0.8


def test_what_is_given_is_kept() -> None:
    for one in planned(batches=4, epochs=3, step_size=0.5, loss=li.losses.logistic(feature_norm=1.0, l2=0.01)):
        assert (one.run.batches.per_epoch, one.run.steps, one.run.step_size) == (4, 12, 0.5)
        assert one.run.loss.l2 == 0.01


def test_units_do_not_matter(plans: li.training.Plans) -> None:
    tenfold = planned(loss=li.losses.logistic(feature_norm=10.0))
    for one, other in zip(plans, tenfold, strict=True):
        assert other.expected_error == pytest.approx(one.expected_error, rel=1e-5)
        assert other.run.step_size == pytest.approx(one.run.step_size / 100, rel=1e-9)


def test_more_epsilon_more_records_less_error(plans: li.training.Plans) -> None:
    errors = [error for _, error in plans.frontier()]
    assert errors == sorted(errors, reverse=True)
    assert [epsilon for epsilon, _ in plans.frontier([1.0, 3.0])] == [1.0, 3.0]
    assert any("Twice as many records" in line for line in plans.advice)


def test_other_batches_are_worth_a_line_where_they_take_less_noise() -> None:
    found = planned(batches=20, epochs=3, adjacency=li.ZERO_OUT)
    line = next(line for line in found.advice if "balls and bins instead of shuffled" in line)
    percent = -float(line.split("would reduce the noise by ")[1].split("%")[0])
    other = li.BallsAndBins(records=2000, batches=20)
    run = found[0].run
    changed = li.Run(run.loss, other, run.step_size, run.noise, run.steps, adjacency=li.ZERO_OUT)
    noise = li.calibrate(changed, epsilon=2.0, delta=1e-5).noise.std  # type: ignore[attr-defined]
    assert 100 * (noise / run.noise.std - 1) == pytest.approx(percent, abs=0.51)  # type: ignore[attr-defined]


def test_the_table_the_json_and_the_plot(plans: li.training.Plans, tmp_path: Path) -> None:
    text, content = str(plans), json.loads(json.dumps(plans.to_dict()))
    assert "2000 records of 10 features, epsilon = 2 at delta = 1e-05, replace one" in text
    assert len(content["plans"]) == len(plans)
    assert content["plans"][0]["epsilon"] == plans[0].epsilon
    assert {"way", "batches", "epochs", "noise", "expected_error", "seconds", "composed_epsilon", "run"} <= set(
        content["plans"][0]
    )
    plans.plot(tmp_path / "plans.png")
    assert (tmp_path / "plans.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"loss": "logistic"}, "loss", "loss must be a loss, such as"),
        ({"loss": li.losses.network(clip=1.0)}, "loss", "loss must have a known smoothness"),
        ({"records": 0}, "records", "records must be"),
        ({"features": 1.5}, "features", "features must be"),
        ({"epsilon": -1.0}, "epsilon", "epsilon must be"),
        ({"delta": 2.0}, "delta", "delta must be"),
        ({"passes": 0}, "passes", "passes must be"),
        ({"batches": 3000}, "batches", "batches must be at most the number of records"),
        ({"rows": 10}, "rows", "rows is not an argument of plan"),
    ],
    ids=str,
)
def test_bad_input_is_one_sentence(changes: Any, field: str, message: str) -> None:
    with pytest.raises(li.errors.LastIterateError, match=message) as caught:
        planned(**changes)
    assert caught.value.field == field  # type: ignore[attr-defined]
