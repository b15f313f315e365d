"""A model that was trained earlier goes on without records, as a plan for adaptive requests says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.training.train import SEEDED
from raising import raises

DELTA = 1e-5


@pytest.fixture(scope="module")
def run() -> li.Run:
    return li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.1),
        batches=li.FullBatch(records=60),
        step_size=1.0,
        noise=li.OnMeanGradient(std=0.1),
        steps=20,
        domain=li.Ball(radius=1.0),
        adjacency=li.ZERO_OUT,
    )


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(1).normal(size=(60, 3))
    features /= np.linalg.norm(features, axis=1)[:, None]
    return features, np.where(features @ [1.0, 2.0, -1.0] > 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def earlier(run: li.Run, data: Any) -> li.training.Trained:
    return li.train(run, data)


@pytest.fixture(scope="module")
def plan(run: li.Run) -> li.results.Forgetting:
    return li.forget(run, epsilon=0.5, delta=DELTA, adaptive=True)


def test_it_goes_on_from_the_model_and_says_what_is_proved(
    run: li.Run, data: Any, earlier: li.training.Trained, plan: li.results.Forgetting
) -> None:
    gone = li.train(run, data, forget=plan.of([5]), trained=earlier)
    assert gone.run.steps == 20 + plan.steps
    assert gone.removed == (5,)
    assert list(gone.released) == [20]
    assert gone.released[20] is earlier.weights
    assert gone.forgotten is not None
    assert gone.forgotten.adaptive
    assert plan.epsilon < gone.forgotten.epsilon <= 0.5
    assert li.verify(gone.forgotten.certificate).accepted
    assert gone.run.arithmetic.displacement > earlier.run.arithmetic.displacement
    # Of those who stay, both models tell: the report is about both.
    assert (
        gone.report(DELTA).epsilon == li.account(gone.run, DELTA, releases=[20]).epsilon > earlier.report(DELTA).epsilon
    )


def test_a_second_request_goes_on_from_the_first(
    run: li.Run, data: Any, earlier: li.training.Trained, plan: li.results.Forgetting
) -> None:
    first = li.train(run, data, forget=plan.of([5]), trained=earlier)
    both = li.forget(run, epsilon=0.5, delta=DELTA, removals=[1, 1], adaptive=True)
    second = li.train(run, data, forget=both.of([5], [9]), trained=first)
    assert second.run.steps == 20 + both.steps
    assert list(second.released) == [20, 20 + plan.steps]
    assert second.removed == (5, 9)
    with raises("forgotten_not_named", "forget", kind=li.errors.InvalidInput, got="[9]"):
        li.train(run, data, forget=both.of([9], [5]), trained=first)


def test_its_steps_are_those_of_the_data_without_the_record(
    run: li.Run, data: Any, earlier: li.training.Trained, plan: li.results.Forgetting
) -> None:
    """In plain numpy, with noise that is nearly nothing."""
    quiet = replace(run, noise=li.OnMeanGradient(std=1e-9))
    model = li.train(quiet, data, seed=1)
    gone = li.train(quiet, data, forget=replace(plan, run=quiet).of([5]), trained=model, seed=2)
    features, weights = data[0].copy(), np.array(model.weights)
    features[5] = 0
    for _ in range(plan.steps):
        slopes = -data[1] / (1 + np.exp(data[1] * (features @ weights)))
        weights = 0.9 * weights - slopes @ features / 60
        weights /= max(1.0, float(np.linalg.norm(weights)))
    np.testing.assert_allclose(gone.weights, weights, atol=1e-6)
    assert gone.forgotten is not None
    assert gone.forgotten.caveats == (SEEDED,)


def test_a_seed_of_the_earlier_training_is_not_forgotten(run: li.Run, data: Any, plan: li.results.Forgetting) -> None:
    gone = li.train(run, data, forget=plan.of([5]), trained=li.train(run, data, seed=3))
    assert not gone.private


def test_what_cannot_go_on_is_refused(
    run: li.Run, data: Any, earlier: li.training.Trained, plan: li.results.Forgetting
) -> None:
    removed, other = plan.of([5]), li.train(run.first(10), data)
    wider = replace(earlier, weights=np.zeros(4))
    for more, field in (
        ({"forget": removed, "trained": earlier.weights}, "trained"),
        ({"forget": li.forget(run, epsilon=0.5, delta=DELTA).of([5]), "trained": earlier}, "trained"),
        ({"forget": removed, "trained": other}, "trained"),
        ({"forget": removed, "trained": wider}, "trained"),
        ({"forget": removed, "trained": earlier, "start": np.zeros(3)}, "start"),
        ({"forget": removed, "trained": earlier, "releases": [20]}, "releases"),
        ({"forget": removed, "trained": earlier, "releases": [22]}, "releases"),
        ({"trained": earlier}, "forget"),
    ):
        with pytest.raises(li.errors.InvalidInput) as caught:
            li.train(run, data, **more)  # type: ignore[arg-type]
        assert caught.value.field == field


def test_adaptive_plans_release_what_came_before_a_request(run: li.Run, data: Any) -> None:
    both = li.forget(run, epsilon=0.5, delta=DELTA, removals=[1, 1], adaptive=True)
    end = 20 + both.further[0]
    trained = li.train(run, data, forget=both.of([5], [9]), releases=[3, 20, end])
    assert list(trained.released) == [3, 20, end]
    with raises("releases_not_planned", "releases", kind=li.errors.InvalidInput):
        li.train(run, data, forget=both.of([5], [9]), releases=[21])
