"""Training that goes on without records, as a plan says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.training.train import SEEDED

DELTA = 1e-5


def made(batches: Any, steps: Any) -> li.Run:
    return li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.1),
        batches=batches,
        step_size=1.0,
        noise=li.OnMeanGradient(std=0.05),
        steps=steps,
        adjacency=li.ZERO_OUT,
    )


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(1).normal(size=(60, 3))
    features /= np.linalg.norm(features, axis=1)[:, None]
    return features, np.where(features @ [1.0, 2.0, -1.0] > 0, 1.0, -1.0)


@pytest.mark.parametrize("batches", [li.FullBatch(records=60), li.Cyclic(records=60, batch_size=20)])
def test_it_is_the_run_whose_rows_vanish_after_each_request(batches: Any, data: Any) -> None:
    """Step by step in plain numpy, with noise that is nearly nothing."""
    run = replace(made(batches, li.epochs(4)), noise=li.OnMeanGradient(std=1e-9))
    plan = li.forget(replace(run, noise=li.OnMeanGradient(std=0.05)), epsilon=0.5, delta=DELTA, removals=[2, 1])
    quiet = replace(plan, run=run)
    trained = li.train(run, data, forget=quiet.of([3, 17], [59]), seed=1)
    features, targets = data[0].copy(), data[1]
    weights, size = np.zeros(3), int(batches.divisor)
    ends = run.steps + np.cumsum((0, *plan.further))
    for step in range(int(ends[-1])):
        for when, gone in zip(ends, ([3, 17], [59]), strict=False):
            if step == when:
                features[gone] = 0
        cut = slice(step * size % 60, step * size % 60 + size)
        margins = targets[cut] * (features[cut] @ weights)
        gradient = -(targets[cut] / (1 + np.exp(margins))) @ features[cut] / size
        weights = weights - gradient - 0.1 * weights
    np.testing.assert_allclose(trained.weights, weights, atol=1e-6)
    assert trained.run.steps == ends[-1]


def test_the_report_is_of_what_was_executed(data: Any) -> None:
    run = made(li.FullBatch(records=60), 30)
    plan = li.forget(run, epsilon=0.5, delta=DELTA)
    trained = li.train(run, data, forget=plan.of([5]))
    assert trained.forgotten is not None
    assert trained.forgotten.further == plan.further
    assert plan.epsilon < trained.forgotten.epsilon <= 0.5
    assert trained.forgotten.run.arithmetic == trained.run.arithmetic
    assert trained.forgotten.whole == trained.run
    verdict = li.verify(trained.forgotten.certificate)
    assert verdict.accepted
    assert trained.report(DELTA).epsilon == li.account(trained.run, DELTA).epsilon  # of those who stayed
    assert li.train(run, data).forgotten is None


@pytest.mark.parametrize(
    "batches", [li.Shuffled(records=60, batch_size=20), li.FixedSize(records=60, batch_size=20), li.BallsAndBins(60, 3)]
)
def test_random_batches_forget_as_well(batches: Any, data: Any) -> None:
    run = replace(made(batches, li.epochs(5)), step_size=0.2)
    plan = li.forget(run, epsilon=1.0, delta=DELTA, removals=2)
    trained = li.train(run, data, forget=plan.of([5, 40]))
    assert trained.forgotten is not None
    assert trained.forgotten.epsilon <= 1.0
    assert trained.removed == (5, 40)
    assert li.verify(trained.forgotten.certificate).accepted


def test_with_a_seed_nothing_is_claimed(data: Any) -> None:
    run = made(li.FullBatch(records=60), 30)
    trained = li.train(run, data, forget=li.forget(run, epsilon=0.5, delta=DELTA).of([5]), seed=2)
    assert trained.forgotten is not None
    assert trained.forgotten.caveats == (SEEDED,)
    assert not li.verify(trained.forgotten.certificate).accepted


def test_what_is_removed_leaves_no_trace_in_later_steps(data: Any) -> None:
    """Two data sets that differ in the removed row alone: once it is gone their seeded trainings come together."""
    run = made(li.FullBatch(records=60), 10)
    removed = li.forget(run, epsilon=0.05, delta=DELTA).of([5])
    other = data[0].copy()
    other[5] = -other[5]
    one, two = (li.train(run, (given, data[1]), forget=removed, seed=3).weights for given in (data[0], other))
    before = [li.train(run, (given, data[1]), seed=3).weights for given in (data[0], other)]
    assert np.linalg.norm(one - two) < 0.3 * np.linalg.norm(before[0] - before[1])


def test_what_cannot_be_executed_is_refused(data: Any, tmp_path: Path) -> None:
    run = made(li.FullBatch(records=60), 30)
    removed = li.forget(run, epsilon=0.5, delta=DELTA).of([5])
    replaced = replace(run, adjacency=li.REPLACE_ONE)
    stored = np.memmap(tmp_path / "rows", float, "w+", shape=(60, 3))
    stored[:] = data[0]
    of_replaced = li.forget(replaced, epsilon=0.5, delta=DELTA).of([5])
    for given, source, more, field in (
        (run, data, {"forget": [5]}, "forget"),
        (run.first(20), data, {"forget": removed}, "forget"),
        (replaced, data, {"forget": of_replaced}, "adjacency"),
        (run, data, {"forget": removed, "checkpoint": tmp_path / "state"}, "forget"),
        (run, data, {"forget": removed, "loss": lambda w, x, y: x}, "forget"),
        (run, data, {"forget": removed, "releases": [7]}, "releases"),
        (run, (stored, data[1]), {"forget": removed}, "data"),
    ):
        with pytest.raises(li.errors.LastIterateError) as caught:
            li.train(given, source, **more)  # type: ignore[arg-type]
        assert caught.value.field == field


def test_a_release_of_the_plan_is_returned(data: Any) -> None:
    run = replace(made(li.FullBatch(records=60), 30), noise=li.OnMeanGradient(std=0.4))
    plan = li.forget(run, epsilon=1.0, delta=DELTA, releases=[10])
    trained = li.train(run, data, forget=plan.of([5]), releases=[10])
    assert list(trained.released) == [10]
    assert trained.forgotten is not None
    assert trained.forgotten.releases == (10,)
