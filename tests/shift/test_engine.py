"""The shift engine against enumeration, closed forms and exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import lastiterate as li
from lastiterate.shift.certify import certify
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.schedule import payments
from lastiterate.shift.steps import Steps
from processes import best_by_enumeration, random_steps, steps_of


@pytest.mark.parametrize("bounded", [False, True])
def test_no_schedule_is_better_and_one_is_as_good(bounded: bool) -> None:
    source = np.random.default_rng(1)
    for _ in range(300):
        steps = random_steps(source, int(source.integers(1, 9)), bounded)
        mu, exact = best_schedule(steps)[0], best_by_enumeration(steps)
        assert mu >= exact * (1 - 1e-12)
        assert mu <= exact * (1 + 1e-9) + 1e-140


@pytest.mark.parametrize("factor", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("count", [1, 2, 30, 1000])
def test_contracting_full_batches_are_theorem_4_2(factor: float, count: int) -> None:
    power = factor**count
    exact = 0.1 * math.sqrt((1 - power) / (1 + power) * (1 + factor) / (1 - factor))
    assert best_schedule(steps_of(np.full(count, 0.1), 1.0, factor))[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("factor", [1.0, 1.001, 1.5])
def test_expanding_steps_that_all_see_the_record_are_composition(factor: float) -> None:
    mu, schedule = best_schedule(steps_of(np.full(1_000_000, 0.001), 1.0, factor))
    assert mu == pytest.approx(1.0, rel=1e-12)
    assert schedule.lengths.sum() == 1_000_000


@pytest.mark.parametrize(("factor", "exact"), [(1.0, 1e-6), (1.001, 1 - 1.001**-2.0), (1.5, 1 - 1.5**-2.0)])
def test_one_push_and_a_million_steps(factor: float, exact: float) -> None:
    """Σ of the squared factors to come is geometric; beyond 10³ steps its tail is rounding."""
    pushes = np.zeros(1_000_000)
    pushes[0] = 1.0
    assert best_schedule(steps_of(pushes, 1.0, factor))[0] ** 2 == pytest.approx(exact, rel=1e-8)


def test_a_push_that_is_forgotten_still_is_not_free() -> None:
    pushes = np.zeros(1_000_000)
    pushes[0] = 1.0
    assert 0 < best_schedule(steps_of(pushes, 1.0, 0.5))[0] < 1e-100


def test_half_a_million_contractions_converge() -> None:
    exact = math.sqrt((1 + 0.5) / (1 - 0.5))
    assert best_schedule(steps_of(np.ones(500_000), 1.0, 0.5))[0] == pytest.approx(exact, rel=1e-12)


def test_an_unknown_factor_leaves_composition() -> None:
    """Nothing is paid for a shift that is not there, whatever the factor (errata E2.7)."""
    assert best_schedule(steps_of(np.ones(9), 1.0, math.inf))[0] == pytest.approx(3.0, rel=1e-12)


def test_the_best_start_is_the_best_of_all_starts() -> None:
    source = np.random.default_rng(2)
    for _ in range(40):
        count = int(source.integers(100, 500))
        lipschitz = source.uniform(0.97, source.choice([1.0, 1.02]), count)
        steps = steps_of(
            source.uniform(0, 0.1, count), source.uniform(0.5, 2, count), lipschitz, float(source.uniform(0.1, 5))
        )
        mu, schedule = best_schedule(steps)
        unbounded = Steps(steps.sensitivity, steps.noise, steps.lipschitz)
        others = [best_schedule(unbounded)[0]]
        for start in range(1, count):
            tail = unbounded.part(start, count)
            pushed = np.array(tail.sensitivity)
            pushed[0] += tail.lipschitz[0] * steps.diameter
            others.append(best_schedule(Steps(pushed, tail.noise, tail.lipschitz))[0])
        assert mu == pytest.approx(min(others), rel=1e-9)
        assert certify(steps, schedule.start, payments(steps, schedule)) == pytest.approx(mu, rel=1e-13)


def exact_cost(steps: Steps, start: int, due: np.ndarray, distance: float) -> Fraction:
    """What `certify` should say of these payments, in exact arithmetic."""
    left, cost = Fraction(distance), Fraction(0)
    for place in range(start, len(steps)):
        left = Fraction(steps.lipschitz[place]) * left + Fraction(steps.sensitivity[place])
        asked = left if place == len(steps) - 1 or math.isinf(due[place - start]) else Fraction(due[place - start])
        paid = min(asked, left)
        left -= paid
        cost += (paid / Fraction(steps.noise[place])) ** 2
    return cost


def test_certify_is_never_below_exact_arithmetic() -> None:
    source = np.random.default_rng(3)
    for _ in range(300):
        count = int(source.integers(1, 40))
        steps = random_steps(source, count, bounded=True)
        start = int(source.integers(0, count))
        due = np.where(source.random(count - start) < 0.2, np.inf, 10 ** source.uniform(-3, 1, count - start))
        distance = 0.0 if start == 0 or steps.lipschitz[start] == 0 else steps.diameter
        exact = exact_cost(steps, start, due, distance)
        mu = certify(steps, start, due)
        assert Fraction(mu) ** 2 >= exact
        assert mu <= math.sqrt(exact) * (1 + 1e-11) + 1e-140


@pytest.mark.parametrize(
    ("start", "due"),
    [(0, [1.0]), (0, [1.0, -1.0, 0.0]), (0, [1.0, math.nan, 1.0]), (3, []), (-1, [1.0] * 4), (1, [1.0] * 3)],
)
def test_certify_says_why_not(start: int, due: list[float]) -> None:
    with pytest.raises(li.InvalidInput, match="payments must be"):
        certify(steps_of(np.ones(3), 1.0, 1.0), start, np.array(due))
