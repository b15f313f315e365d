"""Merging steps without the record loses nothing, and late turns are the worst."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lastiterate.kernel.merged_steps import RecordSteps, latest_turns, windows
from lastiterate.kernel.steps import Steps
from lastiterate.shift.optimise import best_schedule
from processes import steps_of, stored_once


def dense(steps: Steps, turns: np.ndarray) -> Steps:
    pushes = np.zeros(len(steps))
    pushes[turns] = steps.sensitivity[turns]
    return Steps(pushes, steps.noise, steps.lipschitz, steps.diameter)


@pytest.mark.parametrize("largest", [1.0, 1.2])
@pytest.mark.parametrize("bounded", [False, True])
def test_merged_steps_give_the_same_mu(largest: float, bounded: bool) -> None:
    source = np.random.default_rng(4)
    for _ in range(60):
        count, every = int(source.integers(1, 60)), int(source.integers(1, 12))
        diameter = float(source.uniform(0.1, 5)) if bounded else math.inf
        lipschitz = source.uniform(0.7, largest, count)
        steps = steps_of(source.uniform(0.01, 1, count), source.uniform(0.5, 2, count), lipschitz, diameter)
        turns = RecordSteps(steps, every)
        for place in range(min(every, count)):
            expected = best_schedule(dense(steps, np.arange(place, count, every)))[0]
            assert best_schedule(turns.regular(place))[0] == pytest.approx(expected, rel=1e-11)


def test_any_turns_can_be_merged() -> None:
    source = np.random.default_rng(5)
    for _ in range(100):
        count = int(source.integers(2, 50))
        steps = steps_of(source.uniform(0.01, 1, count), source.uniform(0.5, 2, count), source.uniform(0.7, 1.1, count))
        chosen = np.flatnonzero(source.random(count) < 0.3)
        if chosen.size:
            merged = RecordSteps(steps, int(source.integers(2, 9))).at(chosen)
            assert best_schedule(merged)[0] == pytest.approx(best_schedule(dense(steps, chosen))[0], rel=1e-11)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 12])
def test_windows_are_products_and_sums_rounded_to_the_safe_side(length: int) -> None:
    source = np.random.default_rng(6)
    lipschitz, noise = source.uniform(0.5, 1.5, 12), source.uniform(0.5, 2, 12)
    factors, noises = windows(lipschitz, noise, length)
    assert len(factors) == 12 - length + 1
    for first in range(len(factors)):
        products = [math.prod(lipschitz[place + 1 : first + length]) for place in range(first, first + length)]
        exact = math.sqrt(math.fsum((noise[first + k] * product) ** 2 for k, product in enumerate(products)))
        assert factors[first] == pytest.approx(math.prod(lipschitz[first : first + length]), rel=1e-13)
        assert noises[first] == pytest.approx(exact, rel=1e-13)
        assert noises[first] <= exact * (1 + 1e-16)


def test_steps_that_overflow_when_merged_are_kept() -> None:
    steps = steps_of(np.ones(4000), 1.0, 1.5)
    turns = RecordSteps(stored_once(steps), 2000)
    assert turns.dense
    assert best_schedule(turns.regular(1999))[0] == pytest.approx(math.sqrt(1 + 1 - 1.5**-2.0), rel=1e-9)


def test_the_end_of_an_epoch_with_its_worst_push_beats_every_turn_inside() -> None:
    """Three epochs of three steps, every sequence of turns."""
    source = np.random.default_rng(7)
    for _ in range(40):
        steps = steps_of(source.uniform(0.1, 1, 9), source.uniform(0.5, 2, 9), source.uniform(0.5, 1.5, 9))
        pushes = np.zeros(9)
        pushes[2::3] = latest_turns(steps, np.array([2, 5, 8]))
        bound = best_schedule(Steps(pushes, steps.noise, steps.lipschitz))[0]
        for places in itertools.product(range(3), repeat=3):
            turns = np.array([3 * epoch + place for epoch, place in enumerate(places)])
            assert best_schedule(dense(steps, turns))[0] <= bound * (1 + 1e-12)
