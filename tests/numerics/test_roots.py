from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastiterate.numerics.roots import decreasing_crossing, decreasing_root, newton_root, positive_guess

targets = st.floats(1e-6, 1e6)


@given(targets)
def test_decreasing_root_returns_a_point_that_suffices(target: float) -> None:
    root = float(decreasing_root(lambda x: target**3 - x**3, np.zeros(1), np.full(1, 2e6))[0])
    assert root**3 >= target**3
    assert root <= target * (1 + 1e-12)


def test_decreasing_root_answers_low_where_low_suffices() -> None:
    assert decreasing_root(lambda x: -1.0 - x, np.zeros(2), np.ones(2)).tolist() == [0.0, 0.0]


@given(targets, st.floats(0.0, 1e6), st.floats(1e-3, 10.0))
def test_decreasing_crossing_is_close_and_on_the_right_side(target: float, start: float, step: float) -> None:
    crossing = decreasing_crossing(lambda x: math.log(target) - math.log(x), 1e-9, 1e9, start, step, 1e-9)
    assert -1e-9 <= math.log(target) - math.log(crossing) <= 0


def test_decreasing_crossing_stays_within_its_ends() -> None:
    assert decreasing_crossing(lambda x: 1.0, 0.0, 5.0, 1.0, 0.1, 1e-9) == 5.0
    assert decreasing_crossing(lambda x: -1.0, 2.0, 5.0, 3.0, 0.1, 1e-9) == 2.0


@given(targets)
def test_positive_guess_is_near(target: float) -> None:
    assert math.isclose(positive_guess(lambda x: (x - target, x)), target, rel_tol=2e-4)


def test_a_root_alone_is_the_same_as_among_others() -> None:
    """Digit by digit: one number is narrowed down without arrays."""
    source = np.random.default_rng(4)
    for _ in range(200):
        root, reach = float(10 ** source.uniform(-9, 6)), float(10 ** source.uniform(-2, 6))
        jump = source.random() < 0.2

        def function(x: np.ndarray, root: float = root, jump: bool = jump) -> np.ndarray:
            return np.where(x < root, np.inf, -1.0) if jump else np.log(root) - np.log(np.maximum(x, 1e-300))

        high = np.full(2, root * (1 + reach))
        alone, among = (decreasing_root(function, np.zeros_like(one), one) for one in (high[:1], high))
        assert alone[0] == among[0]
        assert function(alone)[0] <= 0


def test_newton_finds_roots_of_steps_that_it_could_circle_around() -> None:
    """log of a sum of two normal tails, whose slope changes a hundredfold; 0 where nothing is to be done."""

    def function(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        near, far = np.exp(-(x**2)), 1e-6 * np.exp(-x / 50)
        return np.log(near + far), -(2 * x * near + far / 50) / (near + far)

    wanted = np.array([-1.0, -9.0, -13.5, -13.9, -16.0, 1.0])
    found = newton_root(function, wanted, np.full(wanted.size, 1000.0), 1e-11)
    assert function(found[:-1])[0] == pytest.approx(wanted[:-1], rel=1e-9)
    assert found[-1] == 0
