"""Paths of linear optimisers: replayed on the state itself, beside the figures that are known, and beside brute force."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.optimizers import LinearFilter
from lastiterate.shift.momentum import Asked, Hidden, TurnsOfRecord, best_memory_path, one_push, paid, square_of

MOST, KEPT = Fraction(0.9), Fraction(0.8)
PLAIN, MOMENTUM, LOOK = (1, -1), (1, -MOST), (1 + MOST, -MOST)
# The filter, its steps and its point as products of polynomials, then F, b, c of the state, and the row that is released.
STATES: dict[str, tuple[Any, ...]] = {
    "heavy ball": (li.SGD(momentum=0.9).linear, (PLAIN, MOMENTUM), (), [[1, MOST], [0, MOST]], [1, 1], [1, 0], [1, 0]),
    "Nesterov": (
        li.SGD(momentum=0.9, nesterov=True).linear,
        (PLAIN, MOMENTUM),
        (LOOK,),
        [[1, MOST], [0, MOST]],
        [1, 1],
        [1, MOST],
        [1, MOST],
    ),
    "dampened": (
        li.SGD(momentum=0.9, dampening=0.5).linear,
        (PLAIN, MOMENTUM, (2,)),
        (),
        [[1, MOST], [0, MOST]],
        [Fraction(0.5)] * 2,
        [1, 0],
        [1, 0],
    ),
    "moving average": (
        li.EMA(0.8).filtered(LinearFilter()),
        (PLAIN, (1, -KEPT)),
        ((1, -KEPT),),
        [[1, 0], [1 - KEPT, KEPT]],
        [1, 1 - KEPT],
        [1, 0],
        [0, 1],
    ),
    "mean": (li.AVERAGE().filtered(LinearFilter()), (PLAIN, PLAIN), (PLAIN,), [[1, 0], [1, 1]], [1, 1], [1, 0], [0, 1]),
    "mean with momentum": (
        li.AVERAGE().filtered(li.SGD(momentum=0.9).linear),
        (PLAIN, MOMENTUM, PLAIN),
        (PLAIN,),
        [[1, MOST, 0], [0, MOST, 0], [1, MOST, 1]],
        [1, 1, 1],
        [1, 0, 0],
        [0, 0, 1],
    ),
}
MIDDLE, HALF = 0.03, 0.02


def product(factors: Any) -> list[Fraction]:
    found = [Fraction(1)]
    for factor in factors:
        terms = [Fraction(0)] * (len(found) + len(factor) - 1)
        for i, one in enumerate(found):
            for j, other in enumerate(factor):
                terms[i + j] += one * Fraction(other)
        found = terms
    return found


def states_of(name: str, path: np.ndarray, pushes: np.ndarray) -> Iterator[tuple[list[Fraction], Fraction]]:
    """In fractions, θ by the matrices of the state, with the shifts that lead along this path; and what each step costs."""
    _, steps, point, *rows, _ = STATES[name]
    along, seen_along = product(steps), product(point)
    step, entry, sees = rows
    p, state = [Fraction(one) for one in path.tolist()], [Fraction(0)] * len(entry)
    for t in range(len(pushes)):
        moved = sum(c * p[t - i] for i, c in enumerate(along) if t >= i)
        seen = sum(c * p[t - 1 - i] for i, c in enumerate(seen_along) if t >= i + 1)
        assert seen == sum(one * other for one, other in zip(sees, state, strict=True))
        shift = Fraction(pushes[t]) - Fraction(MIDDLE) * seen - moved
        state = [
            sum(a * b for a, b in zip(row, state, strict=True)) + e * moved for row, e in zip(step, entry, strict=True)
        ]
        yield state, abs(shift) + Fraction(HALF) * abs(seen)


@pytest.mark.parametrize("name", STATES)
def test_payments_are_those_of_the_state_and_nothing_is_left(name: str) -> None:
    """θ_t = Fθ_{t−1} + b(−m·cᵀθ_{t−1} + push − u), all of it in fractions: payments are no less, and hardly more."""
    linear, released = STATES[name][0], STATES[name][-1]
    hidden = Hidden(linear, MIDDLE, HALF)
    whole, last = one_push(15, hidden.order, 15), one_push(6, linear.taps, 6)
    drawn = np.append(np.random.default_rng(1).normal(size=15 - hidden.order), np.zeros(hidden.order))
    for asked, path in (
        (whole, best_memory_path(hidden, whole)),
        (whole, drawn),
        (last, best_memory_path(hidden, last)),
    ):
        found = list(states_of(name, path, asked.pushes))
        for (_, exact), payment in zip(found, hidden.payments(path, asked.pushes).tolist(), strict=True):
            assert exact <= Fraction(payment) <= exact * (1 + Fraction(1, 10**9)) + Fraction(1, 10**11)
        end = found[-1][0]
        if asked is whole:
            assert not any(end)
        assert sum(one * other for one, other in zip(released, end, strict=True)) == 0


def test_the_figures_that_are_known() -> None:
    """Momentum 0.9, η·M = 0.01, twenty batches: 100 epochs, cleared before each turn; five epochs with constant pushes."""
    hidden = Hidden(li.SGD(momentum=0.9).linear, 0.005, 0.005)
    assert math.sqrt(1 + 99 * square_of(hidden, 20, 2)) == pytest.approx(3.59, abs=5e-3)
    for linear, figure in (
        (li.SGD(momentum=0.9).linear, 0.465),
        (li.EMA(0.9).filtered(LinearFilter()), 0.450),
        (li.AVERAGE().filtered(LinearFilter()), 0.383),
    ):
        known = Hidden(linear, 0.005, 0.005)
        pushes = (np.arange(100) % 20 == 19).astype(float)
        path = best_memory_path(known, Asked(pushes, linear.taps, np.arange(100)))
        assert math.sqrt(float(np.square(known.payments(path, pushes)).sum())) == pytest.approx(figure, abs=1e-3)


def test_the_cheapest_path_is_found() -> None:
    """By hand for plain steps without curvature, where payments are equal; else no neighbour of the path is cheaper."""
    assert square_of(Hidden(LinearFilter(), 0.0, 0.0), 8, 1) == pytest.approx(1 / 8, rel=1e-9)
    source = np.random.default_rng(3)
    for linear, period in (
        (li.SGD(momentum=0.7).linear, 12),
        (li.SGD(momentum=0.7).linear, 4),
        (li.EMA(0.9).filtered(LinearFilter()), 6),
    ):
        hidden, asked = Hidden(linear, 0.05, 0.03), one_push(12, 3, period)

        def price(path: np.ndarray, hidden: Hidden = hidden, asked: Asked = asked) -> float:
            return float(np.square(np.bincount(asked.together, hidden.payments(path, asked.pushes))).sum())

        path = best_memory_path(hidden, asked)
        for size in (1e-1, 1e-2, 1e-3):
            for _ in range(50):
                other = path + np.append(source.normal(size=9) * size, np.zeros(3))
                assert price(other) >= price(path) * (1 - 1e-5)


@pytest.mark.parametrize("begins", [0, 13, 40, 57])
@pytest.mark.parametrize("left", [0, 2])
def test_overlapping_payments_are_added_up_step_by_step(begins: int, left: int) -> None:
    """All turns on one line of steps, each with the path it is said to be paid along."""
    before, after = (
        Hidden(li.SGD(momentum=0.9).linear, 0.01, 0.01),
        Hidden(li.AVERAGE().filtered(li.SGD(momentum=0.9).linear), 0.01, 0.01),
    )
    record = TurnsOfRecord(before if begins else after, after, begins, 60, 5, left)
    for epochs in (1, 2, 3, 6):
        total = np.zeros(70)
        for index in range(1, record.turns):
            key = record._key(index, epochs)
            assert key is not None
            hidden, length = key
            first = record._time(index) - 1
            total[first : first + length] += paid(hidden, length, hidden.order, 5)
            inside = first >= begins
            assert hidden is (after if inside else record.before)
            assert first + length <= (60 - left - 1 if inside else begins)  # nothing is left when it has to be so
        expected = float(np.square(total).sum()) + record._last_square()
        assert record._square_over(epochs) == pytest.approx(expected, rel=1e-9)
    assert record.square() <= record.turns


def test_many_turns_take_no_longer_than_few() -> None:
    hidden = Hidden(li.SGD(momentum=0.9).linear, 0.005, 0.005)
    few, many = (TurnsOfRecord(hidden, hidden, 0, steps, 20, 0).square() for steps in (10**4, 10**8))
    assert many == pytest.approx((few - 1) * 1e4, rel=0.02)
