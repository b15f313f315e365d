"""Windows, blocks and tables where a formula ends: nothing left, nothing known, nothing more to gain."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import mpmath
import numpy as np
import pytest

import lastiterate as li
from lastiterate.mixing.contraction import contracted, curved_contraction, linear_contraction
from lastiterate.mixing.recursion import Block, for_ever
from lastiterate.mixing.window import _SHARES, Tail, WindowTail, joined
from lastiterate.numerics.bracketed import Bracketed, exactly
from lastiterate.numerics.normal_gap import log_gap_above


def test_a_profile_is_never_rounded_to_nothing() -> None:
    """Products below the range of floats would be 0, and claim perfect privacy."""
    epsilons = np.linspace(0.0, 2.0, 5)
    block = Block(epsilons, np.zeros(5), np.array([0.0, 50.0]), np.array([1e-200, 0.0]))
    assert (block.after(np.full(5, 1e-200)) == 1e-250).all()
    assert (block.after(np.zeros(5)) == 1e-250).all()


def test_the_recursion_takes_chords_of_what_two_states_reveal() -> None:
    """Convex in e^ε; beyond its last point it is what it is there."""
    known = np.log([1.0, 2.0, 4.0])
    block = Block(np.linspace(0.0, 2.0, 5), np.zeros(5), known, np.array([0.5, 0.3, 0.1]))
    found = block._apart_at(np.append(np.log([1.0, 1.5, 3.0, 4.0, 9.0]), [1e3, np.inf]))
    assert found == pytest.approx([0.5, 0.4, 0.2, 0.1, 0.1, 0.1, 0.1], rel=1e-12)


def test_the_bound_for_ever_stops_when_nothing_is_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[np.ndarray] = []
    after = Block.after

    def counted(block: Block, before: np.ndarray) -> np.ndarray:
        made.append(before)
        return after(block, before)

    monkeypatch.setattr(Block, "after", counted)
    epsilons = np.linspace(0.0, 2.0, 5)
    block = Block(epsilons, np.full(5, 0.5), np.array([0.0, 50.0]), np.array([0.5, 0.5]))
    for_ever(block, np.ones(5), 50)
    assert len(made) < 5


def notion_without_estimate(mu: float) -> li.notions.Profile:
    return li.notions.Profile(function=li.notions.GaussianDP(mu).delta)


@pytest.mark.parametrize("tail_mu", [0.5, 0.1, 0.02])
def test_the_share_that_is_best_by_its_estimate_is_the_best(tail_mu: float) -> None:
    given = WindowTail(Tail(np.array([tail_mu]), np.ones(1)), li.notions.GaussianDP(1.0))
    found = given.split_for(math.log(1e-6))
    every = {share: given._with_share(math.log(1e-6), share)[0].value for share in _SHARES}
    assert min(epsilon.value for epsilon, _ in found.values()) == pytest.approx(min(every.values()), rel=1e-9)


@pytest.mark.parametrize(("tail_mu", "window_mu", "third"), [(0.5, 1.0, 0.9), (0.02, 1.0, 0.0045)])
def test_the_third_share_lies_beyond_the_better_of_two(tail_mu: float, window_mu: float, third: float) -> None:
    given = WindowTail(Tail(np.array([tail_mu]), np.ones(1)), notion_without_estimate(window_mu))
    found = given.split_for(math.log(1e-6))
    assert list(found) == pytest.approx([0.03, 0.2, third], rel=1e-12)
    assert (found[0.2][0].value < found[0.03][0].value) == (third > 0.2)


class Split(Tail):
    """A tail that remembers which ε it was asked for."""

    seen: ClassVar[list[float]] = []

    def log_delta(self, epsilons: np.ndarray) -> np.ndarray:
        Split.seen[:] = epsilons.tolist()
        return super().log_delta(epsilons)


class Asked:
    """In place of a window's table: remembers which log δ and which ε it was asked for."""

    def __init__(self) -> None:
        self.logs: list[float] = []
        self.epsilons: list[float] = []

    def log_delta(self, epsilons: np.ndarray) -> np.ndarray:
        self.epsilons = epsilons.tolist()
        return -epsilons

    def epsilon(self, log_delta: float) -> Bracketed:
        self.logs.append(log_delta)
        return exactly(1.0)


@pytest.mark.parametrize("log_delta", [-3.0, -14.0, -200.0])
def test_window_and_tail_together_get_no_more_than_delta(log_delta: float) -> None:
    """share·δ + e^a·δ' ≤ δ in many digits, by more than doubles can hide, and less by next to nothing."""
    tail, asked = Tail(np.array([0.3]), np.ones(1)), Asked()
    given = WindowTail(tail, li.notions.GaussianDP(1.0))
    given.__dict__["_tabled"] = asked
    for (share, (epsilon, split)), left in zip(given.split_for(log_delta).items(), asked.logs, strict=True):
        assert split + 1.0 < epsilon.value <= (split + 1.0) * (1 + 1e-11)
        with mpmath.workdps(40):
            window = mpmath.mpf(left) + mpmath.mpf(split) - mpmath.mpf(log_delta)  # its part of δ, as a logarithm
            slack = mpmath.log(1 - mpmath.mpf(share)) - window
        assert 0.9e-12 * (1 + split) <= slack <= 1.1e-12 * (1 + split)
        assert float(tail.log_delta(np.array([split]))[0]) <= log_delta + math.log(share) - 5e-13


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.3])
def test_window_and_tail_together_get_no_more_than_epsilon(epsilon: float) -> None:
    """In exact arithmetic: what is left to the window is rounded down, by next to nothing."""
    asked = Asked()
    given = WindowTail(Split(np.array([0.3]), np.ones(1)), li.notions.GaussianDP(1.0))
    given.__dict__["_tabled"] = asked
    given.log_delta(np.array([epsilon]))
    assert len(asked.epsilons) == len(Split.seen)
    for split, left in zip(Split.seen, asked.epsilons, strict=True):
        exact = Fraction(epsilon) - Fraction(split)
        assert Fraction(left) <= exact <= Fraction(left) + Fraction(epsilon) / 10**15


def test_what_the_tail_takes_is_less_than_the_whole() -> None:
    given = WindowTail(Tail(np.array([0.3]), np.ones(1)), li.notions.GaussianDP(1.0))
    log_delta = math.log(1e-6)
    assert 0 < given.tail.epsilon(np.array([log_delta]))[0] < given.epsilon(1e-6)
    assert given.epsilon_estimate(log_delta) == pytest.approx(given.epsilon(1e-6), rel=0.05)


def test_a_tail_and_what_is_joined_are_no_more_than_one_and_rounded_up() -> None:
    assert Tail(np.array([50.0, 60.0]), np.ones(2)).log_delta(np.zeros(1))[0] == 0
    for log_tail, split, log_window in ((-700.0, 0.0, -720.0), (-300.0, 400.0, -690.0), (-0.5, 0.0, -50.0)):
        exact = mpmath.log(mpmath.exp(log_tail) + mpmath.exp(split + log_window))
        found = float(joined(np.array([log_tail]), np.array([split]), np.array([log_window]))[0])
        slack = 1e-14 * (1 - float(exact) + split)
        assert 0.8 * slack <= found - exact <= 1.2 * slack


def test_a_tail_at_no_distance_adds_nothing() -> None:
    epsilons = np.array([0.0, 0.4, 2.0])
    alone, beside = Tail(np.array([0.3]), np.ones(1)), Tail(np.array([0.0, 0.3]), np.ones(2))
    assert beside.log_delta(epsilons) == pytest.approx(alone.log_delta(epsilons), rel=1e-13)


def test_a_tail_that_never_falls_has_no_epsilon() -> None:
    """Distances beyond anything: ∞, and the window is not asked."""
    tail = Tail(np.array([1e9]), np.ones(1))
    assert tail.epsilon(np.array([-5.0]))[0] == math.inf
    given, asked = WindowTail(tail, li.notions.GaussianDP(1.0)), Asked()
    given.__dict__["_tabled"] = asked
    assert given.epsilon(1e-5) == math.inf
    assert asked.logs == []


@pytest.mark.parametrize(("mu", "epsilon"), [(0.5, 0.0), (2.0, 0.1), (1.0, 30.0)])
def test_a_tail_is_rounded_up_by_its_slack(mu: float, epsilon: float) -> None:
    one = float(log_gap_above(np.array([epsilon]), mu)[0])
    found = float(Tail(np.array([mu]), np.ones(1)).log_delta(np.array([epsilon]))[0])
    assert 0.95 <= (found - one) / (1e-14 * (1 - one)) <= 1.05


def test_contraction_of_nothing_and_to_certainty() -> None:
    """No distance stays none whatever ε, and no bound is more than 1."""
    assert contracted(np.zeros(2), np.array([0.0, 1.0]), 2.0).tolist() == [0.0, 0.0]
    assert contracted(np.ones(1), np.zeros(1), 100.0)[0] == 1
    assert linear_contraction(np.zeros(1), 100.0, 1.0, 5)[0] == 1
    assert linear_contraction(np.zeros(1), 100.0, 1e-3, 10**6)[0] == 1
    assert curved_contraction(np.zeros(1), 100.0, 1.0, 5)[0] == 1


def test_contraction_of_many_steps_is_the_fixed_point() -> None:
    """From a hundred steps on the bound no longer depends on their number; at a hundred it still does."""
    epsilons = np.array([0.1])
    hundred, more, most = (curved_contraction(epsilons, 20.0, 1e-3, steps)[0] for steps in (100, 101, 10**9))
    assert hundred < 0.9 * more
    assert more == most
    once = (1 - 1e-3) * contracted(np.array([more]), epsilons, 20.0) + 1e-3 * contracted(np.ones(1), epsilons, 20.0)
    assert once[0] == pytest.approx(more, rel=1e-8)
    assert once[0] <= more
