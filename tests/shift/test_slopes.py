"""The best slopes of a linear chain: primal against dual, the engine, a general solver, and what overflows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from lastiterate.numerics.arrays import Floats
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.prepay import best_slopes
from processes import steps_of


def value(pushes: Floats, noise: Floats, slopes: Floats) -> float:
    return float(np.sum(2 * pushes * slopes - np.square(noise * slopes)))


def left_to_pay(pushes: Floats, lowest: Floats, highest: Floats, payments: Floats) -> float:
    """Of a path that may run below zero, that is pay before the push comes."""
    left = 0.0
    for push, low, high, paid in zip(pushes, lowest, highest, payments, strict=True):
        left = (high if left > 0 else low) * left + push - paid
    return float(left)


def random_schedule(source: np.random.Generator, count: int) -> tuple[Floats, Floats, Floats, Floats]:
    pushes = source.random(count) * (source.random(count) < source.choice([0.05, 0.3, 1.0]))
    pushes[source.integers(count)] = 1.0
    noise = 10 ** source.uniform(-1, 1, count) if source.random() < 0.5 else np.ones(count)
    highest = source.uniform(0.5, 1.15, count)
    lowest = highest * source.choice([0.0, 0.5, 0.99, 1.0]) * (source.random(count) if source.random() < 0.5 else 1.0)
    return pushes, noise, lowest, highest


def assert_within(slopes: Floats, lowest: Floats, highest: Floats) -> None:
    assert (slopes >= 0).all()
    assert (lowest[1:] * slopes[1:] <= slopes[:-1] * (1 + 1e-14)).all()
    assert (slopes[:-1] <= highest[1:] * slopes[1:] * (1 + 1e-14)).all()


def test_what_the_slopes_are_worth_is_what_their_payments_cost() -> None:
    """Weak duality makes both the optimum: the payments noise²·r leave nothing, and cost Σ (noise·r)²."""
    source = np.random.default_rng(0)
    for _ in range(1000):
        pushes, noise, lowest, highest = random_schedule(source, int(source.integers(1, 60)))
        slopes = best_slopes(pushes, noise, lowest, highest)
        assert_within(slopes, lowest, highest)
        cost = float(np.sum(np.square(noise * slopes)))
        assert cost == pytest.approx(value(pushes, noise, slopes), rel=1e-10)
        assert left_to_pay(pushes, lowest, highest, noise**2 * slopes) == pytest.approx(0.0, abs=1e-12)


def test_without_a_lowest_slope_it_is_the_engine() -> None:
    source = np.random.default_rng(1)
    for _ in range(200):
        pushes, noise, lowest, highest = random_schedule(source, int(source.integers(1, 300)))
        slopes = best_slopes(pushes, noise, np.zeros_like(lowest), highest)
        mu, _ = best_schedule(steps_of(pushes, noise, highest))
        assert value(pushes, noise, slopes) ** 0.5 == pytest.approx(mu, rel=1e-10)


def test_a_general_solver_finds_nothing_better() -> None:
    source = np.random.default_rng(2)
    for _ in range(20):
        pushes, noise, lowest, highest = random_schedule(source, 7)
        slopes = best_slopes(pushes, noise, lowest, highest)
        found = minimize(
            lambda r, s=pushes, v=noise: -value(s, v, r),
            np.zeros(7),
            jac=lambda r, s=pushes, v=noise: -2 * (s - v**2 * r),
            method="SLSQP",
            bounds=[(0, None)] * 7,
            constraints=[LinearConstraint(matrix, 0.0, np.inf) for matrix in chain_matrices(lowest, highest)],
            options={"maxiter": 2000, "ftol": 1e-14},
        )
        assert value(pushes, noise, slopes) >= -found.fun * (1 - 1e-7)
        assert value(pushes, noise, slopes) <= -found.fun * (1 + 1e-4)


def chain_matrices(lowest: Floats, highest: Floats) -> tuple[Floats, Floats]:
    earlier, later = np.eye(len(lowest))[:-1], np.eye(len(lowest))[1:]
    return earlier - lowest[1:, None] * later, highest[1:, None] * later - earlier


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.999, 1.0, 1.001, 1.5])
@pytest.mark.parametrize("lowest", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("every", [1, 7, 1000])
def test_products_may_leave_the_range_of_floats(factor: float, lowest: float, every: int) -> None:
    """From above by the engine, which is the case without a lowest slope; from below by a chain of equal slopes."""
    count = 20_000
    pushes, noise = np.zeros(count), np.ones(count)
    pushes[every - 1 :: every] = 1.0
    highest = np.full(count, factor)
    slopes = best_slopes(pushes, noise, np.full(count, min(lowest, factor)), highest)
    found = value(pushes, noise, slopes)
    assert found == pytest.approx(float(np.sum(slopes**2)), rel=1e-10)
    assert found <= best_schedule(steps_of(pushes, noise, highest))[0] ** 2 * (1 + 1e-10)
    assert found >= max(of_equal_slopes(pushes, one) for one in (min(lowest, factor), factor)) * (1 - 1e-10)


def of_equal_slopes(pushes: Floats, factor: float) -> float:
    """(Σ s·r)²/Σ r² with r ∝ the powers of the factor, of which the largest is 1."""
    powers = np.power(min(factor, 1 / factor) if factor else 0.0, np.arange(len(pushes)))
    after = powers if factor > 1 else powers[::-1]
    return float(np.sum(pushes * after)) ** 2 / float(np.sum(after**2))


@pytest.mark.parametrize(("factor", "exact"), [(1.0, 1e-5), (1.001, 1 - 1.001**-2.0), (1.5, 1 - 1.5**-2.0)])
def test_one_early_push_that_grows(factor: float, exact: float) -> None:
    """The slopes fall by the factor at each step, far below the least float."""
    pushes = np.zeros(100_000)
    pushes[0] = 1.0
    slopes = best_slopes(pushes, np.ones(100_000), np.zeros(100_000), np.full(100_000, factor))
    assert value(pushes, np.ones(100_000), slopes) == pytest.approx(exact, rel=1e-8)


def test_nothing_to_pay() -> None:
    assert not best_slopes(np.zeros(5), np.ones(5), np.zeros(5), np.ones(5)).any()


def test_equal_bounds_leave_no_choice() -> None:
    """(Σ s·r)²/Σ (ν·r)² with r ∝ the product of the factors to come."""
    source = np.random.default_rng(3)
    pushes, noise, factor = source.random(5000), source.uniform(0.5, 2.0, 5000), source.uniform(0.9, 1.1, 5000)
    after = np.append(np.cumprod(factor[:0:-1])[::-1], 1.0)
    exact = float(np.sum(pushes * after)) ** 2 / float(np.sum(np.square(noise * after)))
    assert value(pushes, noise, best_slopes(pushes, noise, factor, factor)) == pytest.approx(exact, rel=1e-10)


def test_units_do_not_matter() -> None:
    pushes, noise, lowest, highest = random_schedule(np.random.default_rng(4), 200)
    slopes = best_slopes(pushes, noise, lowest, highest)
    assert best_slopes(1e-9 * pushes, 1e6 * noise, lowest, highest) * 1e21 == pytest.approx(slopes, rel=1e-12)


def test_of_a_long_run() -> None:
    pushes = np.zeros(100_000)
    pushes[19::20] = 1.0
    ones = np.ones_like(pushes)
    slopes = best_slopes(pushes, ones, 0.9 * ones, ones)
    assert value(pushes, ones, slopes) == pytest.approx(float(np.sum(slopes**2)), rel=1e-10)
