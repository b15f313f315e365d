"""Formulas for one block against the engine, which goes through the steps and certifies what it finds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lastiterate.kernel.steps import Steps
from lastiterate.numerics.levels import spread_out
from lastiterate.shift.distance_bounds import (
    Maps,
    _affine_along,
    _searched,
    from_anywhere,
    on_the_same_data,
    remaining_mus,
)
from lastiterate.shift.optimise import best_schedule, schedule_from


def alike(push: float, factor: float, drift: float, retain: float, noise: float, steps: int) -> Maps:
    return Maps(*(np.broadcast_to(np.float64(x), steps) for x in (push, factor, drift, retain, noise)))


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.02, 1.3, math.inf])
@pytest.mark.parametrize("retain", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 17, 120])
def test_on_the_same_data_the_formula_is_what_the_engine_certifies(factor: float, retain: float, steps: int) -> None:
    for drift, distance in ((0.3, 2.0), (0.01, 5.0), (1.0, 0.5)):
        maps = alike(0.0, factor, drift, retain, 0.7, steps)
        found = remaining_mus(maps, np.array([distance, math.inf]))
        # Whatever the switch, the kernel has gone through it.
        assert found[0] <= _searched(maps, distance) * (1 + 1e-9)
        every = [_searched_at(maps, distance, switch) for switch in range(steps + 1)]
        assert min(every) * (1 - 1e-12) <= found[0]
        assert found[1] == math.inf


def _searched_at(maps: Maps, distance: float, switch: int) -> float:
    steps = maps.steps(switch, distance)
    if math.isfinite(float(steps.lipschitz.max())):
        return schedule_from(steps, 1, distance)[0]
    return schedule_from(steps.part(0, switch + 1), 1, distance)[0] if switch else math.inf


def test_steps_that_differ_push_nothing_and_make_one_block() -> None:
    source = np.random.default_rng(1)
    for steps in (1, 2, 30, 400):
        factors, noise = source.uniform(0.9, 1.05, steps), source.uniform(0.5, 2.0, steps)
        whole = Steps(np.append(1.0, np.zeros(steps)), np.append(1.0, noise), np.append(1.0, factors), 3.0)
        exact = schedule_from(whole, 1, 3.0)[0]
        assert exact * (1 - 1e-12) <= 3.0 * on_the_same_data(factors, noise) <= exact * (1 + 1e-9)
    assert on_the_same_data(np.array([0.5, 0.0, 2.0]), np.ones(3)) == 0.0


@pytest.mark.parametrize("factor", [0.0, 0.8, 0.999, 1.0, 1.001, 1.2, math.inf])
@pytest.mark.parametrize("diameter", [0.5, 8.0, math.inf])
@pytest.mark.parametrize("steps", [1, 3, 200])
def test_with_the_record_at_every_step_the_formula_is_the_best_schedule(
    factor: float, diameter: float, steps: int
) -> None:
    pushes, noise, factors = (np.full(steps, x) for x in (0.3, 0.9, factor))
    exact = best_schedule(Steps(pushes, noise, factors, diameter))[0]
    assert exact * (1 - 1e-12) <= from_anywhere(0.3, factor, 0.9, diameter, steps) <= exact * (1 + 1e-9)


def test_distances_side_by_side_are_those_one_after_the_other() -> None:
    source = np.random.default_rng(2)
    for steps in (1, 2, 99, 1000):
        factors, pushes = source.uniform(0.0, 1.1, steps), source.uniform(0.0, 1.0, steps)
        found, distance = _affine_along(factors, pushes), 0.0
        assert found[0] == 0
        for step in range(steps):
            distance = factors[step] * distance + pushes[step]
            assert distance <= found[step + 1] <= distance * (1 + 1e-11)


def test_values_that_are_spread_out_keep_their_sum_and_raise_what_is_convex() -> None:
    source = np.random.default_rng(3)
    values = 10 ** source.uniform(-14, 0, 5000)
    levels, amounts = spread_out(values, 300)
    assert levels.size <= 300
    assert levels @ amounts == pytest.approx(values.sum(), rel=1e-10)
    for slope in (0.01, 1.0, 20.0):
        exact, raised = (
            np.log1p(0.1 * np.expm1(slope * values)).sum(),
            np.log1p(0.1 * np.expm1(slope * levels)) @ amounts,
        )
        assert exact <= raised <= exact * 1.02
    few, ones = spread_out(values[:10], 300)
    assert (few == values[:10]).all()
    assert (ones == 1).all()
