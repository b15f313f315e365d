"""Every linear optimiser and every average, as theorems see them and as they are executed, one impulse after the other."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.filtered import left_of_steps
from lastiterate.runs.kinds import OPTIMIZERS, RELEASED
from lastiterate.runs.optimizers import At, Optimizer, Released

STEPS = 11
LINEAR = (
    *(kind.example for kind in OPTIMIZERS if kind.example.linear is not None),
    li.SGD(momentum=0.6),
    li.SGD(momentum=0.6, dampening=0.3),
    li.SGD(momentum=0.6, nesterov=True),
)
AVERAGES = (
    *(kind.example for kind in RELEASED),
    li.AVERAGE(),
    li.AVERAGE(last=1),
    li.AVERAGE(last=4),
    li.AVERAGE(last=30),
)
each_pair = pytest.mark.parametrize(("optimizer", "released"), list(product(LINEAR, AVERAGES)), ids=repr)


def executed(optimizer: Optimizer, released: Released, taken: np.ndarray) -> tuple[np.ndarray, float]:
    """The iterates and what is released, of steps that add these numbers; the update and the average as they are written."""
    x, memory, average, iterates = np.zeros(()), (np.zeros(()),) * optimizer.slots, 0.0, []
    for step, one in enumerate(taken):
        x, memory = optimizer.moved(x, np.asarray(one), memory, At(step))
        average += released.weight(step, len(taken)) * (float(x) - average)
        iterates.append(float(x))
    return np.array(iterates), average


def defined(released: Released, iterates: np.ndarray) -> float:
    """What is released of these, as its kind says."""
    if isinstance(released, li.EMA):
        powers = released.decay ** np.arange(len(iterates))[::-1]
        return float((1 - released.decay) * (iterates @ powers))
    last = 1 if released.plain else getattr(released, "last", None) or len(iterates)
    return float(np.mean(iterates[-last:]))


@each_pair
def test_what_is_released_is_what_its_name_says(optimizer: Optimizer, released: Released) -> None:
    taken = np.random.default_rng(2).normal(size=STEPS)
    iterates, found = executed(optimizer, released, taken)
    assert found == pytest.approx(defined(released, iterates), abs=1e-12)


@each_pair
def test_the_filter_is_that_of_the_update_as_it_is_executed(optimizer: Optimizer, released: Released) -> None:
    """Steps that are written by any sequence p lead to the points that it says, and to what is released of p's end alone."""
    begins = released.begins(STEPS)
    linear = optimizer.linear
    assert linear is not None
    averaged = released.filtered(linear)
    source = np.random.default_rng(1)
    p = np.where(np.arange(STEPS) >= begins, source.normal(size=STEPS), 0.0)
    ended = np.where(np.arange(STEPS) < STEPS - averaged.taps, p, 0.0)
    for filtered, at_the_end in ((linear, p), (averaged, p), (averaged, ended)):
        steps = np.convolve(at_the_end, filtered.steps)[:STEPS]
        iterates, found = executed(optimizer, released, steps)
        assert iterates == pytest.approx(np.convolve(at_the_end, filtered.point)[:STEPS], abs=1e-12)
    assert found == pytest.approx(0.0, abs=1e-12)


@each_pair
def test_the_noise_of_the_last_step_enters_what_is_released_as_training_says(
    optimizer: Optimizer, released: Released
) -> None:
    """Training draws what is released with weight·factor·noise_factor of the noise; the update spreads as much."""
    impulse = np.zeros(STEPS)
    impulse[-1] = 1.0
    drawn = released.weight(STEPS - 1, STEPS) * optimizer.as_released(np.zeros(()), (np.zeros(()),), 1.0)[0]
    assert executed(optimizer, released, impulse)[1] == pytest.approx(drawn * optimizer.noise_factor, rel=1e-12)


@each_pair
def test_what_is_left_of_each_step_is_that_of_an_impulse(optimizer: Optimizer, released: Released) -> None:
    """So the variance of what is released is the sum of the squares of these, in exact instances as in training."""
    left = left_of_steps(optimizer, released, 0.0, STEPS)
    found = [executed(optimizer, released, impulse)[1] for impulse in np.eye(STEPS)]
    assert left == pytest.approx(found, abs=1e-12)
    assert math.fsum(np.square(found)) > 0
