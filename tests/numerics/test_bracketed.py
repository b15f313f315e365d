"""Numbers between bounds: comparisons give what the numbers themselves would give, and compute few of them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.minimum import Ladder
from lastiterate.curves.notion import Notion
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.mixing.window import Tail, WindowTail
from lastiterate.numerics.bracketed import Bracketed, exactly, least, place_of_least
from lastiterate.numerics.discretise import Ratio
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
    Shape,
)
from lastiterate.numerics.ratio_sum import RatioSum


def never() -> float:
    raise AssertionError("computed")


def wide(value: float, computed: list[float]) -> Bracketed:
    def compute() -> float:
        computed.append(value)
        return value

    return Bracketed(value - 0.15, value + 0.15, compute)


def test_bounds_that_decide_leave_nothing_to_compute() -> None:
    assert Bracketed(1.0, 2.0, never) < Bracketed(2.5, 3.0, never)
    assert not Bracketed(2.0, 3.0, never) < Bracketed(1.0, 2.0, never)
    assert place_of_least({3: Bracketed(1.0, 2.0, never), 1: Bracketed(2.5, 3.0, never)}) == 3
    assert least([Bracketed(2.5, 3.0, never), exactly(2.0)]).value == 2.0


@pytest.mark.parametrize(("one", "two"), [(1.0, 1.1), (1.1, 1.0), (1.0, 1.0), (1.0, math.inf), (math.inf, math.inf)])
def test_bounds_that_overlap_are_decided_by_the_numbers(one: float, two: float) -> None:
    assert (wide(one, []) < wide(two, [])) == (one < two)
    assert least([wide(one, []), wide(two, [])]).value == min(one, two)
    assert place_of_least({5: wide(one, []), 4: wide(two, [])}) == min((one, 5), (two, 4))[1]


def test_each_number_is_computed_once_and_only_if_it_may_be_the_least() -> None:
    computed: list[float] = []
    found = least([wide(one, computed) for one in (3.0, 1.1, 1.0, 2.0)])
    assert computed == []
    assert found.value == found.value == 1.0
    assert sorted(computed) == [1.0, 1.1]


def test_a_function_of_a_number_has_its_bounds() -> None:
    found = Bracketed(1.0, 2.0, lambda: 1.5).through(lambda one: 2 * one)
    assert (found.low, found.value, found.high) == (2.0, 3.0, 4.0)


@pytest.mark.parametrize("shape", [MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, MIXTURE_OVER_MIRROR, SYMMETRISED])
@pytest.mark.parametrize(("mode", "weight", "count"), [(1.0, 0.05, 200), (0.4, 0.3, 8), (2.0, 0.2, 3), (6.0, 0.4, 2)])
@pytest.mark.parametrize("log_excess", [-25.0, -9.0, -2.0])
def test_a_rough_contour_brackets_the_threshold(
    shape: Shape, mode: float, weight: float, count: int, log_excess: float
) -> None:
    total = RatioSum(((Ratio(shape, mode, weight), count),))
    found = total.threshold_bracketed(log_excess)
    assert found.low <= found.value <= found.high
    assert found.value == RatioSum(total.ratios).threshold_upper(log_excess)


class Computed(SubsampledGaussians):
    """A composition without quick bounds: every ε that a search asks for is computed."""

    epsilon_bracketed = Notion.epsilon_bracketed


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("mu", [0.3, 1.5])
def test_a_search_by_brackets_ends_where_a_search_by_numbers_does(mu: float, delta: float) -> None:
    step = li.notions.subsampled_gaussian(
        mu=mu, inclusion=0.2, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    ).steps[0][0]

    def window(kind: type[SubsampledGaussians], length: int) -> WindowTail:
        left = 0.9**length if length < 12 else 0.0
        return WindowTail(Tail(np.array([left]), np.ones(1)), kind(((step, length),), li.REPLACE_ONE))

    by_brackets, by_numbers = (
        Ladder((1, 2, 3, 4, 6, 8, 12), partial(window, kind)) for kind in (SubsampledGaussians, Computed)
    )
    assert by_brackets.best_rung(math.log(delta)) == by_numbers.best_rung(math.log(delta))
    assert by_brackets.epsilon(delta) == by_numbers.epsilon(delta)
