"""Limited softmax: the gradient of a convex function, no less smooth, whose norm is what the loss declares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import lastiterate as li
from lastiterate.runs.losses import PullLimit
from lastiterate.runs.losses.several_classes import limited
from raising import raises

CLASSES = (2, 3, 5, 10)
PULLS = (0.3, 0.7, 1.0)


def slopes(scores: np.ndarray, labels: np.ndarray, pull: float) -> np.ndarray:
    loss = li.losses.softmax(feature_norm=1.0, pull=pull, classes=scores.shape[1])
    return loss.model.slopes(scores, labels.astype(float))


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("pull", PULLS)
def test_convex_and_smooth_and_bounded(classes: int, pull: float) -> None:
    """⟨F(v) − F(u), v − u⟩ ≥ 2‖F(v) − F(u)‖²: of a convex function with Hessian at most 1/2. The bound on F is attained."""
    source = np.random.default_rng(classes)
    longest = 0.0
    for _ in range(100):
        scores = source.normal(size=(200, classes)) * source.choice([0.1, 1.0, 5.0, 30.0, 1000.0])
        labels = source.integers(0, classes, 200)
        step = source.normal(size=scores.shape) * source.choice([0.01, 0.3, 3.0, 100.0])
        before, after = slopes(scores, labels, pull), slopes(scores + step, labels, pull)
        change = after - before
        assert (np.sum(change * step, axis=1) - 2 * np.sum(change**2, axis=1)).min() > -1e-11
        assert before.sum(axis=1) == pytest.approx(np.zeros(200), abs=1e-12)
        longest = max(longest, np.linalg.norm(before, axis=1).max())
    declared = li.losses.softmax(feature_norm=1.0, pull=pull, classes=classes).gradient_bound
    assert declared * (1 - 1e-6) < longest <= declared


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("pull", [0.3, 0.7])
def test_it_is_the_likeliest_within_the_limit(classes: int, pull: float) -> None:
    """Against a general solver of the same problem."""
    source, limit = np.random.default_rng(7), PullLimit(pull, classes)
    for _ in range(5):
        scores, label = 2 * source.normal(size=classes), int(source.integers(classes))
        found = limited(scores[None], np.array([label]), limit)[0]

        def cost(p: np.ndarray, scores: np.ndarray = scores) -> float:
            return float(np.sum(p * np.log(np.maximum(p, 1e-300))) - p @ scores)

        bounds = [(0.0, pull / limit.parts)] * classes
        bounds[label] = (1 - pull, 1.0)
        start = np.full(classes, pull / 2 / (classes - 1))
        start[label] = 1 - pull / 2
        total = {"type": "eq", "fun": lambda p: p.sum() - 1}
        best = minimize(cost, start, bounds=bounds, constraints=total, method="SLSQP", options={"ftol": 1e-14})
        assert cost(found) <= cost(best.x) + 1e-9
        assert all(low - 1e-12 <= share <= high + 1e-12 for share, (low, high) in zip(found, bounds, strict=True))


def test_inside_the_limit_it_is_the_softmax() -> None:
    scores = np.array([[5.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    shares = np.exp(scores) / np.exp(scores).sum()
    assert slopes(scores, np.array([0]), 0.5)[0] == pytest.approx(shares[0] - np.eye(6)[0])


def test_rows_in_single_precision() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 10)).astype(np.float32) * 100
    labels = np.arange(50) % 10
    found = slopes(scores, labels, 0.7)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1).max() <= PullLimit(0.7, 10).gradient_bound * (1 + 1e-6)


def test_runs_with_a_limit_are_convex_and_can_be_written_down(tmp_path: object) -> None:
    loss = li.losses.softmax(feature_norm=1.0, l2=0.01, pull=0.7, classes=10)
    run = li.Run(loss, li.Shuffled(100, 10), 0.5, li.OnMeanGradient(0.1), 20)
    assert run.convex
    li.write_run(run, tmp_path / "run.toml")  # type: ignore[operator]
    assert li.read_run(tmp_path / "run.toml") == run  # type: ignore[operator]
    for wrong in ({"pull": 0.7}, {"pull": 0.7, "classes": 10, "clip": 1.0}):
        with raises("pull_and_clip", "pull", kind=li.errors.InvalidInput):
            li.losses.softmax(feature_norm=1.0, **wrong)  # type: ignore[arg-type]
