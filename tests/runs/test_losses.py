"""The facts of every loss, against the losses themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.losses import Loss

Gradient = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def margin_model(derivative: Callable[[float, float], float]) -> Gradient:
    return lambda theta, x, y: derivative(float(theta @ x), y) * x


def smooth_hinge_slope(u: float, y: float, width: float) -> float:
    return -y * min(max((1 - y * u) / width, 0.0), 1.0)


MODELS: dict[str, tuple[Loss, Gradient]] = {
    "logistic": (li.losses.logistic(feature_norm=2.0), margin_model(lambda u, y: -y / (1 + math.exp(y * u)))),
    "huber": (
        li.losses.huber(feature_norm=2.0, threshold=0.7),
        margin_model(lambda u, y: min(max(u - y, -0.7), 0.7)),
    ),
    "smooth_hinge": (
        li.losses.smooth_hinge(feature_norm=2.0, width=0.5),
        margin_model(lambda u, y: smooth_hinge_slope(u, y, 0.5)),
    ),
    "ridge": (li.losses.ridge(feature_norm=2.0, clip=1.0), margin_model(lambda u, y: u - y)),
}


def softmax_gradient(theta: np.ndarray, x: np.ndarray, label: int) -> np.ndarray:
    scores = theta.reshape(3, len(x)) @ x
    weights = np.exp(scores - scores.max())
    return np.outer(weights / weights.sum() - np.eye(3)[label], x).ravel()


def clipped(gradient: np.ndarray, limit: float) -> np.ndarray:
    return gradient * min(1.0, limit / max(float(np.linalg.norm(gradient)), 1e-300))


def record(source: np.random.Generator) -> tuple[np.ndarray, float]:
    x = source.normal(size=2)
    return 2.0 * x / np.linalg.norm(x) * source.choice([1.0, source.random()]), float(source.choice([-1.0, 1.0]))


@pytest.mark.parametrize("name", MODELS)
def test_smoothness_and_sensitivity_hold_and_are_attained(name: str) -> None:
    """Replaced records move a gradient by twice its bound (errata E2.8)."""
    loss, gradient = MODELS[name]
    source = np.random.default_rng(20)
    steepest, change = 0.0, 0.0
    for _ in range(4000):
        (x, y), (other, label) = record(source), record(source)
        theta = source.normal(size=2) * source.choice([0.3, 3.0, 30.0])
        # Near a record's own direction, where the curvature is.
        near = theta + source.normal(size=2) * 1e-4
        slope = np.linalg.norm(gradient(theta, x, y) - gradient(near, x, y)) / np.linalg.norm(theta - near)
        steepest = max(steepest, float(slope))
        if math.isfinite(loss.gradient_sensitivity):
            change = max(change, float(np.linalg.norm(gradient(theta, x, y) - gradient(theta, other, label))))
    assert 0.8 * loss.smoothness <= steepest <= loss.smoothness * (1 + 1e-6)
    if math.isfinite(loss.gradient_sensitivity):
        assert 0.9 * loss.gradient_sensitivity <= change <= loss.gradient_sensitivity * (1 + 1e-12)


def test_softmax_facts() -> None:
    loss = li.losses.softmax(feature_norm=2.0)
    source = np.random.default_rng(21)
    for _ in range(3000):
        x = 2.0 * (direction := source.normal(size=2)) / np.linalg.norm(direction)
        theta = source.normal(size=6) * source.choice([0.1, 2.0])
        near = theta + source.normal(size=6) * 1e-4
        label, other = int(source.integers(3)), int(source.integers(3))
        slope = np.linalg.norm(softmax_gradient(theta, x, label) - softmax_gradient(near, x, label))
        assert slope <= loss.smoothness * np.linalg.norm(theta - near) * (1 + 1e-6)
        assert (
            np.linalg.norm(softmax_gradient(theta, x, label) - softmax_gradient(theta, -x, other))
            <= loss.gradient_sensitivity
        )


def test_a_clipped_linear_model_is_convex_and_a_clipped_softmax_is_not() -> None:
    """Errata E4.1: ⟨F(v + d) − F(v), d⟩ is negative for some clipped softmax gradients, never for linear models."""
    assert li.losses.logistic(feature_norm=2.0, clip=0.6).convex
    assert li.losses.softmax(feature_norm=2.0).convex
    assert not li.losses.softmax(feature_norm=2.0, clip=0.6).convex
    source = np.random.default_rng(22)
    for name in MODELS:
        for _ in range(500):
            x, y = record(source)
            theta, move = source.normal(size=2) * 3, source.normal(size=2)
            change = clipped(MODELS[name][1](theta + move, x, y), 0.6) - clipped(MODELS[name][1](theta, x, y), 0.6)
            assert change @ move >= -1e-12
    assert min(monotonicity_of_clipped_softmax(source) for _ in range(20_000)) < -0.002


def monotonicity_of_clipped_softmax(source: np.random.Generator) -> float:
    """⟨F(v + d) − F(v), d⟩/‖d‖² in the scores v of ten classes, clipped at 0.6, for a small d along the gradient."""
    scores = source.normal(size=10) * source.uniform(0.5, 4)
    move = 1e-4 * source.normal(size=10)
    change = _clipped_scores(scores + move) - _clipped_scores(scores)
    return float(change @ move / (move @ move))


def _clipped_scores(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return clipped(weights / weights.sum() - np.eye(10)[0], 0.6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: li.losses.general(smoothness=1.0),
        lambda: li.losses.general(smoothness=1.0, strong_convexity=2.0, clip=1.0),
        lambda: li.losses.general(smoothness=1.0, strong_convexity=0.1, weak_convexity=0.1, clip=1.0),
        lambda: li.losses.ridge(feature_norm=1.0),
        lambda: li.losses.network(clip=None),  # type: ignore[arg-type]
    ],
)
def test_what_is_false_or_missing_is_refused(call: Callable[[], Loss]) -> None:
    with pytest.raises(li.errors.InvalidInput):
        call()
