"""How much the checker and merged steps are rounded up: by what they can lose, and by next to nothing more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lastiterate.kernel.certify import _pay, certify
from lastiterate.kernel.merged_steps import whole, windows
from lastiterate.shift.schedule import Schedule, payments
from processes import steps_of

STEP_UP, SUM_UP = 1 + 2.0**-50, 1 + 1e-14


def test_every_step_is_rounded_up() -> None:
    """Four thousand steps that do nothing, and one that pays: the slack of each adds up."""
    steps = steps_of(np.append(1.0, np.zeros(3999)), 1.0, 1.0)
    found = certify(steps, 0, np.zeros(4000))
    assert found / SUM_UP - 1 == pytest.approx(4000 * 2.0**-50, rel=0.01, abs=0)


def test_pushes_and_the_diameter_are_rounded_up() -> None:
    pushed = certify(steps_of([1.0], 1.0, 1.0), 0, np.zeros(1))
    assert pushed == pytest.approx(STEP_UP * SUM_UP, rel=3e-16, abs=0)
    started = certify(steps_of([0.0, 0.0], 1.0, 1.0, 1.0), 1, np.zeros(1))
    assert started == pytest.approx(STEP_UP**2 * SUM_UP, rel=3e-16, abs=0)


def test_the_smallest_costs_are_seen_and_no_larger_than_needed() -> None:
    assert certify(steps_of([1e-100], 1.0, 1.0), 0, np.zeros(1)) == pytest.approx(1e-100, rel=1e-12, abs=0)
    assert certify(steps_of([1e-200], 1.0, 1.0), 0, np.zeros(1)) == pytest.approx(
        math.sqrt(2) * 1e-150, rel=1e-12, abs=0
    )


def test_a_factor_of_nothing_forgets_even_what_is_enormous() -> None:
    steps = steps_of([1e160, 1.0], 1.0, [1.0, 0.0])
    assert certify(steps, 0, np.zeros(2)) == pytest.approx(1.0, rel=1e-12, abs=0)


def test_what_is_beyond_every_bound_ends() -> None:
    steps = steps_of([1e150, 0.0, 0.0], 1.0, [1.0, 1e300, 1.0])
    assert certify(steps, 0, np.zeros(3)) == math.inf


def test_the_quick_way_of_paying_shrinks_nothing() -> None:
    paid, left = _pay(np.ones(2), np.array([1.0, 2.0]), np.array([0.5, 0.25]), (0.0, 0))
    assert paid.tolist() == [0.5, 0.25]
    assert left == (2.25, 0)


@pytest.mark.parametrize("length", [1, 4, 9, 400])
def test_merged_steps_are_rounded_by_four_halves_of_an_ulp_each(length: int) -> None:
    """Ones and the roots of squares are exact, so that nothing but the slack is seen."""
    ones, slack = np.ones(length), 4 * (length + 1) * 2.0**-53
    expected = 1 + slack, math.sqrt(length) * (1 - slack)
    assert whole(ones, ones) == expected
    assert tuple(float(one[0]) for one in windows(ones, ones, length)) == expected


def test_merged_steps_at_the_end_of_their_range() -> None:
    """1e150 is within it; noise that overflows is unknown even where a factor 0 would forget it."""
    assert whole(np.array([1e150]), np.ones(1))[0] == pytest.approx(1e150)
    assert whole(np.array([1.001e150]), np.ones(1))[0] == math.inf
    factors, noises = windows(np.array([1.0, 0.0]), np.array([1e200, 1.0]), 2)
    assert factors[0] == math.inf
    assert math.isnan(noises[0])


def test_noise_too_small_to_be_squared_is_not_merged() -> None:
    """Of 1e-160 the square has lost its digits: what is merged could be larger than it is."""
    factor, noise = whole(np.ones(2), np.full(2, 1e-160))
    assert math.isinf(factor)
    assert math.isnan(noise)
    assert whole(np.ones(2), np.full(2, 1e-130))[1] == pytest.approx(math.sqrt(2) * 1e-130, rel=1e-14, abs=0)


@pytest.mark.parametrize(("factor", "up"), [(1.5, 1 + 1e-12), (1.0, 1.0), (0.5, 1.0)])
def test_payments_are_a_little_more_where_distances_are_growing(factor: float, up: float) -> None:
    """noise²·(product of the factors that follow)·level, the largest such product being 1."""
    steps = steps_of(np.ones(3), 2.0, factor)
    found = payments(steps, Schedule(0, np.array([3]), np.array([0.7])))
    products = np.array([factor**2, factor, 1.0]) / max(factor**2, 1.0)
    assert found[:2] == pytest.approx(4 * 0.7 * up * products[:2], rel=1e-14, abs=0)
    assert found[2] == math.inf
