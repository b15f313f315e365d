"""The shift engine against enumeration, closed forms and exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lastiterate.kernel.certify import certify
from lastiterate.kernel.steps import Steps
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.schedule import payments
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
