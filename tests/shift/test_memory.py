"""What is left of a push after n steps is at most what is claimed, whatever Hessians a run meets on its way."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.optimizers import LinearFilter
from lastiterate.shift.momentum import Hidden, Memory, memories

STEPS = 120
OPTIMIZERS = [li.SGD(), li.SGD(momentum=0.5), li.SGD(momentum=0.8, nesterov=True), li.SGD(momentum=0.5, dampening=0.4)]
CURVATURES = [(0.3, 0.1), (0.1, 0.05), (0.8, 0.3), (0.0, 0.1), (0.2, 0.0)]


def left_after_a_push(filtered: LinearFilter, released: tuple[float, ...], pulls: np.ndarray) -> np.ndarray:
    """What is released of p after each step, in units of the last noise, by the recursion as it is written."""
    steps, point = np.array(filtered.steps), np.array(filtered.point)
    p = np.zeros(len(pulls) + 8)  # from the 8th on
    for t, pull in enumerate(pulls, start=8):
        at = p[t - 1 : t - 1 - len(point) : -1] @ point
        step = float(t == 8) - pull * at
        p[t] = (step - p[t - 1 : t - len(steps) : -1] @ steps[1:]) / steps[0]
    found = [p[t : t - len(released) : -1] @ np.array(released) for t in range(8, len(p))]
    return np.abs(found) / abs(released[0] / steps[0])


def resonant(filtered: LinearFilter, released: tuple[float, ...], low: float, high: float) -> np.ndarray:
    """Pulls, each the end of the interval that leaves more some steps later."""
    pulls = np.full(STEPS, low)
    for t in range(1, STEPS):
        ends = []
        for pull in (low, high):
            pulls[t] = pull
            ends.append(left_after_a_push(filtered, released, pulls[: t + 4])[t:].max())
        pulls[t] = low if ends[0] >= ends[1] else high
    return pulls


@pytest.mark.parametrize("curvature", CURVATURES, ids=str)
@pytest.mark.parametrize("decay", [None, 0.6])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_no_more_is_left_of_a_push(optimizer: li.SGD, decay: float | None, curvature: tuple[float, float]) -> None:
    linear, (middle, half) = optimizer.linear, curvature
    filtered = linear if decay is None else linear.averaged(decay)
    source = np.random.default_rng(0)
    pulls = [resonant(filtered, linear.point, middle - half, middle + half)]
    pulls += [middle + half * source.uniform(-1, 1, STEPS) for _ in range(5)]
    pulls += [middle + half * source.choice([-1.0, 1.0], STEPS) for _ in range(5)]
    largest = np.max([left_after_a_push(filtered, linear.point, one) for one in pulls], axis=0)
    found = memories(Hidden(filtered, middle, half), linear.point)
    assert all((largest <= one.size * one.rate ** -np.arange(STEPS) * (1 + 1e-12) + 1e-14).all() for one in found)
    assert bool(found) == (middle > half)  # else a Hessian may be 0, and nothing is forgotten


@pytest.mark.parametrize("curvature", [(0.3, 0.1), (0.2, 0.0)], ids=str)
def test_plain_steps_are_forgotten_about_as_fast_as_they_contract(curvature: tuple[float, float]) -> None:
    middle, half = curvature
    found = memories(Hidden(li.SGD().linear, middle, half), (1.0,))
    assert 0.5 * (1 / (1 - middle + half) - 1) < max(one.rate for one in found) - 1 <= 1 / (1 - middle + half) - 1


@pytest.mark.parametrize(
    ("linear", "middle", "half"),
    [
        (li.SGD(momentum=0.9).linear, 0.1125, 0.0625),
        (li.SGD(momentum=0.5).linear, 0.0, 0.0),
        (li.SGD().linear.averaged(1.0), 0.3, 0.1),
        (li.SGD().linear, 1e-7, 0.0),
    ],
)
def test_nothing_is_claimed_of_a_filter_that_may_not_forget(linear: LinearFilter, middle: float, half: float) -> None:
    assert memories(Hidden(linear, middle, half), (1.0,)) == ()


def test_a_push_at_each_step_adds_up() -> None:
    memory = Memory(rate=1.25, size=3.0)
    needed = memory.needed(2.0, 1e-6)
    left = [2.0 * 3.0 * sum(1.25**-n for n in range(first, first + 2_000)) for first in (needed, needed - 3)]
    assert left[0] <= 1e-6 < left[1]


def test_an_infinite_push_is_never_forgotten() -> None:
    assert Memory(rate=1.25, size=3.0).needed(math.inf, 1e-6) == math.inf
    assert Memory(rate=1.25, size=3.0).needed(1e300, 1e-300) == math.inf
