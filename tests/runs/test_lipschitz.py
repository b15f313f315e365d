"""Lipschitz constants against the steps themselves."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.quantities import clipped_constant, step_lipschitz


def constant(loss: object, step_size: float, **options: object) -> float:
    batches = options.pop("batches", li.FullBatch(records=10))
    run = li.Run(loss, batches, step_size, li.OnIterate(1.0), 1, **options)  # type: ignore[arg-type]
    return float(run.process.lipschitz[0])


@pytest.mark.parametrize("step_size", [0.1, 0.5, 1.0, 1.9, 2.5])
@pytest.mark.parametrize(("bottom", "top"), [(0.2, 1.0), (0.0, 1.0), (-0.5, 1.0), (-1.0, 1.0), (-2.0, 0.5)])
def test_unclipped_constants_are_those_of_quadratics(bottom: float, top: float, step_size: float) -> None:
    """1 − ηρ when strongly convex, where Balle2019 has a root (errata E3.6)."""
    modulus = {"strong_convexity": bottom} if bottom >= 0 else {"weak_convexity": -bottom}
    loss = li.losses.general(smoothness=top, gradient_sensitivity=1.0, **modulus)
    exact = max(abs(1 - step_size * bottom), abs(1 - step_size * top))
    assert constant(loss, step_size) == pytest.approx(exact, rel=1e-14)
    assert constant(loss, step_size) >= exact


def observed_constant(bottom: float, top: float, step_size: float, source: np.random.Generator) -> float:
    """The largest ratio seen for x ↦ x − η·clip(Hx + g) in the plane, H with eigenvalues at the ends."""
    worst = 0.0
    for _ in range(4000):
        angle = source.uniform(0, math.pi)
        axes = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        hessian = axes @ np.diag(source.choice([bottom, top], 2)) @ axes.T
        x, move, offset = source.normal(size=2), 1e-5 * source.normal(size=2), source.normal(size=2)
        scale = 1 / np.linalg.norm(hessian @ x + offset)  # the gradient at x is as long as the clip

        def step(point: np.ndarray, hessian: np.ndarray = hessian, offset: np.ndarray = offset) -> np.ndarray:
            gradient = hessian @ point + offset
            return point - step_size * gradient * min(1.0, 1 / float(np.linalg.norm(gradient)))

        start = x * scale
        offset *= scale
        worst = max(worst, float(np.linalg.norm(step(start + move) - step(start)) / np.linalg.norm(move)))
    return worst


@pytest.mark.parametrize("step_size", [0.2, 1.0, 2.0, 3.5])
@pytest.mark.parametrize(("weak", "top"), [(0.0, 1.0), (0.3, 1.0), (1.0, 1.0), (0.9, 0.2)])
def test_the_clipped_constant_is_never_exceeded(weak: float, top: float, step_size: float) -> None:
    """Kong2025 uses the constant of an unclipped step, which is smaller (errata E2.1, E2.2)."""
    found = float(clipped_constant(weak, top, np.array([step_size]))[0])
    assert observed_constant(-weak, top, step_size, np.random.default_rng(23)) <= found * (1 + 1e-6)


@pytest.mark.parametrize("product", [0.1, 1.0, 2.9])
def test_the_clipped_constant_of_convex_losses(product: float) -> None:
    """2/√(4 − ηM), and it is attained: a rank-one Hessian at 45° or so to the gradient, which sits at the clip."""
    found = float(clipped_constant(0.0, product, np.array([1.0]))[0])
    assert found == pytest.approx(2 / math.sqrt(4 - product), rel=1e-14)
    angles = np.linspace(0, math.pi, 2001)
    seen = 0.0
    for angle in angles:  # moving along u, the gradient g·(1, 0) changes by M·⟨v, u⟩v and its radial part is cut
        v = np.array([math.cos(angle), math.sin(angle)])
        change = product * np.outer(v, v)
        step = np.eye(2) - np.diag([0.0, 1.0]) @ change
        seen = max(seen, float(np.linalg.norm(step, 2)))
    assert seen == pytest.approx(found, rel=1e-5)


def test_where_the_worst_angle_is_an_axis_the_clipped_constant_is_the_plain_one() -> None:
    """The curved formula would be 1.512: valid, and more than any step does."""
    assert clipped_constant(0.5, 1.0, np.array([1.0]))[0] == 1.5


def test_decay_and_prox_contract() -> None:
    loss = li.losses.logistic(feature_norm=1.0, clip=1.0)
    assert constant(loss, 0.5) == 1.0
    assert constant(loss, 0.5, weight_decay=0.1) == pytest.approx(0.95, rel=1e-14)
    assert constant(li.losses.logistic(feature_norm=1.0, l2=0.1, clip=1.0), 0.5) == pytest.approx(0.95, rel=1e-14)
    assert constant(loss, 0.5, prox=li.parts.L1(weight=3.0)) == 1.0
    assert constant(loss, 0.5, prox=li.parts.ElasticNet(l1=3.0, l2=0.2)) == pytest.approx(1 / 1.1, rel=1e-14)


def test_decay_after_clipping_a_loss_that_is_not_linear() -> None:
    loss = li.losses.softmax(feature_norm=1.0, clip=1.0)
    shrink = 1 - 0.5 * 0.1
    expected = shrink * 2 / math.sqrt(4 - 0.5 / shrink * 0.5)
    assert constant(loss, 0.5, weight_decay=0.1) == pytest.approx(expected, rel=1e-14)


def test_poisson_batches_may_be_empty_or_everything() -> None:
    """Sums are divided by the expected size: with all records in the batch the step is 1/rate times as long."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.5, gradient_sensitivity=1.0)
    assert constant(loss, 0.5, batches=li.FullBatch(records=10)) == pytest.approx(0.75)
    assert constant(loss, 0.5, batches=li.FixedSize(records=10, batch_size=2)) == pytest.approx(0.75)
    assert constant(loss, 0.5, batches=li.Poisson(records=10, rate=0.5)) == 1.0
    assert constant(loss, 0.5, batches=li.Poisson(records=10, rate=0.1)) == pytest.approx(4.0)


def test_nothing_is_known_of_a_network() -> None:
    assert constant(li.losses.network(clip=1.0), 0.1) == math.inf
    assert constant(li.losses.network(clip=1.0, smoothness=2.0), 0.1) == pytest.approx(1.2)


def largest_over_the_disc(weak: float, top: float, step_size: float) -> float:
    """max of (η/2)(‖Δ − 2d/η‖ + ‖Δ‖) over the disc of diameter [−weak·d, top·d], d = 1: its rim, 200,000 points of it."""
    angles = np.linspace(0.0, math.pi, 200_001)
    across, along = (top + weak) / 2 * np.sin(angles), (top - weak) / 2 + (top + weak) / 2 * np.cos(angles)
    both = np.hypot(along - 2 / step_size, across) + np.hypot(along, across)
    return max(step_size / 2 * float(both.max()), 1.0)


@pytest.mark.parametrize("step_size", [0.05, 0.4, 0.5, 1.0, 1.9, 2.0, 3.0, 3.9, 5.0, 9.0])
@pytest.mark.parametrize(
    ("weak", "top"), [(0.0, 1.0), (0.0, 0.3), (0.2, 1.0), (0.5, 0.6), (1.0, 1.0), (0.9, 0.2), (2.0, 3.0)]
)
def test_the_clipped_constant_is_the_longest_detour_over_a_disc(weak: float, top: float, step_size: float) -> None:
    found = float(clipped_constant(weak, top, np.array([step_size]))[0])
    exact = largest_over_the_disc(weak, top, step_size)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-8)


def test_the_clipped_constant_of_many_steps_at_once() -> None:
    sizes = np.array([0.1, 1.0, 3.5, 8.0])
    one_by_one = [float(clipped_constant(0.1, 1.0, np.array([size]))[0]) for size in sizes]
    assert clipped_constant(0.1, 1.0, sizes).tolist() == one_by_one


@pytest.mark.parametrize(("weak", "top"), [(0.0, 1.0), (0.5, 2.0), (1.0, 1.0), (2.0, 0.5)])
def test_the_clipped_constant_of_enormous_steps(weak: float, top: float) -> None:
    """Nothing overflows on the way; what is left is the plain constant."""
    assert clipped_constant(weak, top, np.array([1e300])).tolist() == [1e300 * max(weak, top)]


@pytest.mark.parametrize("decay", [0.0, 0.3, 1.0, 1.4, 2.6])
@pytest.mark.parametrize("step_size", [0.2, 0.7])
def test_a_clipped_step_with_any_decay(decay: float, step_size: float) -> None:
    """(1 − λ)·L_clip(η/(1 − λ)); where nothing is kept, or it is turned round, the triangle inequality."""
    for smoothness in (0.5, 2.0):
        loss = li.losses.network(clip=1.0, smoothness=smoothness)
        found = float(step_lipschitz(loss, True, np.array([step_size]), np.array([decay]), (1.0, 1.0))[0])
        kept = 1 - decay
        if kept > 0:
            exact = kept * largest_over_the_disc(smoothness, smoothness, step_size / kept)
        else:
            exact = -kept + step_size * smoothness
        assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-8)
    weaker = li.losses.general(smoothness=0.5, weak_convexity=2.0, clip=1.0)
    found = float(step_lipschitz(weaker, True, np.array([step_size]), np.array([1.5]), (1.0, 1.0))[0])
    assert found == pytest.approx(0.5 + step_size * 2.0, rel=1e-14)


def test_a_clipped_step_is_that_of_the_largest_batch() -> None:
    """Sums over a public divisor: a batch that is larger than expected moves farther."""
    loss = li.losses.network(clip=1.0, smoothness=1.0)
    sizes, decay = np.array([0.4]), np.zeros(1)
    found = step_lipschitz(loss, True, sizes, decay, (0.5, 2.5))
    assert found == pytest.approx(float(clipped_constant(1.0, 1.0, 2.5 * sizes)[0]), rel=1e-12)
    strongly = li.losses.general(smoothness=2.0, strong_convexity=1.0, clip=1.0)
    assert step_lipschitz(strongly, True, sizes, decay, (1.0, 1.0)) == pytest.approx(2 / math.sqrt(4 - 0.8), rel=1e-12)


def test_constants_are_not_rounded_down() -> None:
    """Against exact fractions; 1 is exact."""
    source = np.random.default_rng(27)
    for _ in range(300):
        top, size = float(source.uniform(0.1, 2)), float(source.uniform(0.1, 0.9))
        bottom = top * float(source.random())
        loss = li.losses.general(smoothness=top, strong_convexity=bottom, gradient_sensitivity=1.0)
        found = float(step_lipschitz(loss, False, np.array([size]), np.zeros(1), (1.0, 1.0))[0])
        exact = max(abs(1 - Fraction(size) * Fraction(bottom)), abs(1 - Fraction(size) * Fraction(top)))
        assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 10**14))
    convex = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0)
    assert step_lipschitz(convex, False, np.array([0.7]), np.zeros(1), (1.0, 1.0))[0] == 1.0


def test_constants_are_rounded_up_by_two_ulps_and_two_of_what_is_taken_from_1() -> None:
    """One half and four are exact: nothing but the slack is seen."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=1.0, gradient_sensitivity=1.0)
    found = step_lipschitz(loss, False, np.array([0.5, 1.0, 5.0]), np.zeros(3), (1.0, 1.0))
    assert found.tolist() == [0.5 + 2.0**-51, 2.0**-52, 4.0 + 2.0**-49]
