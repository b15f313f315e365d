"""What a record meets between its turns is looked up, not computed again and again."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lastiterate.kernel import merged_steps as kernel_turns
from lastiterate.kernel.merged_steps import RecordSteps, latest_turns
from processes import steps_of, stored_once


def steps_for(count: int, constant: bool) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(count)
    size = 1 if constant else count
    values = source.uniform(0.6, 1.0, size), source.uniform(0.5, 2.0, size)
    return tuple(np.array(np.broadcast_to(one, count)) for one in values)  # type: ignore[return-value]


def plainly(lipschitz: np.ndarray, noise: np.ndarray, start: int, end: int) -> tuple[float, float]:
    """Factor and noise of a stretch."""
    squares = [(noise[at] * math.prod(lipschitz[at + 1 : end])) ** 2 for at in range(start, end)]
    return math.prod(lipschitz[start:end]), math.sqrt(math.fsum(squares))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("every", "count"), [(2, 7), (4, 4), (4, 5), (4, 11), (6, 6), (9, 4)])
def test_the_table_of_turns_holds_each_stretch_once(every: int, count: int, constant: bool) -> None:
    lipschitz, noise = steps_for(count, constant)
    steps = steps_of(np.ones(count), noise, lipschitz)
    turns = RecordSteps(stored_once(steps) if constant else steps, every)
    factors, noises = turns._windows
    if every > count:
        assert (factors.tolist(), noises.tolist()) == ([1.0], [1.0])  # there are none
        return
    assert len(factors) == len(noises) == (1 if constant else count - every + 2)
    for place in range(len(factors)):
        assert (factors[place], noises[place]) == pytest.approx(
            plainly(lipschitz, noise, place, place + every - 1), rel=1e-12
        )


def test_irregular_turns_look_up_what_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Usual stretches; what is longer or shorter is computed, and nothing else is."""
    asked: list[int] = []
    whole = kernel_turns.whole

    def counted(lipschitz: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
        asked.append(len(lipschitz))
        return whole(lipschitz, noise)

    monkeypatch.setattr(kernel_turns, "whole", counted)
    lipschitz, noise = steps_for(20, constant=False)
    turns = RecordSteps(steps_of(np.ones(20), noise, lipschitz), 4)
    for places, computed in (([0, 4, 8, 17], [8, 2]), ([1, 3, 7, 8, 16], [1, 7]), ([5, 9], [10]), ([19], [])):
        asked.clear()
        found = turns.at(np.array(places))
        assert asked == computed
        stretches = [(turn + 1, end) for turn, end in zip(places, [*places[1:], 20], strict=True) if end > turn + 1]
        merged = found.sensitivity == 0
        assert found.lipschitz[merged] == pytest.approx([plainly(lipschitz, noise, *one)[0] for one in stretches])
        assert found.noise[merged] == pytest.approx([plainly(lipschitz, noise, *one)[1] for one in stretches])


def test_a_record_that_has_every_turn_meets_the_steps_themselves() -> None:
    """Not a copy: equal steps stay stored once."""
    steps = stored_once(steps_of(np.ones(6), 1.0, 0.9))
    found = RecordSteps(steps, 1).regular(2)
    assert len(found) == 4
    assert found.alike
    assert np.shares_memory(found.lipschitz, steps.lipschitz)
    assert np.shares_memory(found.sensitivity, steps.sensitivity)


def test_a_turn_that_is_carried_is_rounded_up_by_more_than_it_can_lose() -> None:
    """Each of the factors is rounded once, by half of 2⁻⁵² at most; where nothing is rounded, twice that is added."""
    for length in (1, 2, 40):
        level = steps_of(np.append(1.0, np.zeros(length - 1)), 1.0, 1.0)
        assert latest_turns(level, np.array([length - 1]))[0] == 1 + length * 2.0**-52
    for length in (1, 2, 40):
        steps = steps_of(np.append(1.0, np.zeros(length - 1)), 1.0, np.full(length, 1 + 2.0**-52))
        found = Fraction(float(latest_turns(steps, np.array([length - 1]))[0]))
        exact = Fraction(1 + 2.0**-52) ** (length - 1)
        assert exact * (1 + Fraction(length, 2**53)) <= found <= exact * (1 + Fraction(3 * length, 2**52))
