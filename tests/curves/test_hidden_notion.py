"""A hidden place: the bound of any choice, the choice that is found, and both against mixtures that attain the pairs."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lastiterate as li
from lastiterate.curves.hidden_place import HardestFirst, HiddenPlaceDP, log_gap_anywhere
from lastiterate.curves.transformed import as_computed
from lastiterate.kernel.hidden import HiddenPlaces
from strategies import epsilons

LEVELS = np.array([-30.0, -2.0, -0.3, -1e-9, 0.0, 1e-9, 0.4, 3.0, 40.0])


def exact_gap(level: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        t, r = mpmath.mpf(level), mpmath.mpf(mu)
        if not mu:
            return max(1 - mpmath.exp(t), mpmath.mpf(0))
        tails = [mpmath.erfc((t / r + sign * r / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)]
        return tails[0] - mpmath.exp(t) * tails[1]


def exact_delta(epsilon: float, places: HiddenPlaceDP, shares: np.ndarray) -> mpmath.mpf:
    """The sum over W, with y = share·e^ε, as it is written."""
    with mpmath.workdps(60):
        count, total = len(shares), mpmath.mpf(0)
        t, w = [mpmath.mpf(x) for x in shares], [mpmath.mpf(x) for x in places.weights]
        spare = sum(w[k] * (1 - t[k]) for k in range(count) if t[k] < 1)
        used = [mpmath.mpf(0)] * count
        for k in range(count):
            part = [min(t[k], 1) if j == k else mpmath.mpf(0) for j in range(count)]  # W_kj/e^ε
            if t[k] > 1:
                for j in range(count):
                    if t[j] < 1:
                        part[j] += (t[k] - 1) * w[j] * (1 - t[j]) / spare
            level = epsilon + mpmath.log(t[k])
            for j in range(count):
                mu = places.mus[k] if j == k else places.pair_mus[k, j]
                total += w[k] * part[j] / t[k] * exact_gap(level, mu) if part[j] else 0
                used[j] += w[k] * part[j]
        assert all(used[j] <= w[j] * (1 + mpmath.mpf(10) ** -40) for j in range(count))
        return total


def random_places(source: np.random.Generator, count: int) -> HiddenPlaceDP:
    mus = np.sort(10 ** source.uniform(-1.5, 0.5, count))
    mus[0] *= source.integers(2)
    pairs = np.hypot(mus[:, None], mus) * source.uniform(0.8, 1.1)
    weights = source.uniform(0.2, 1, count)
    return HiddenPlaceDP(mus=mus, pair_mus=pairs, weights=weights / weights.sum())


def test_gaps_at_any_level_are_rounded_up_and_by_little() -> None:
    for mu in (0.0, 1e-4, 0.3, 1.0, 6.0):
        for level, log in zip(
            LEVELS.tolist(), log_gap_anywhere(LEVELS, np.full(len(LEVELS), mu)).tolist(), strict=True
        ):
            exact = exact_gap(level, mu)
            if exact == 0:
                assert log == -math.inf
            else:
                assert mpmath.log(exact) <= log <= mpmath.log(exact) + 1e-9 + 1e-13 * abs(log)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.7, 2.0, 5.0])
def test_any_choice_is_worth_what_the_sum_over_w_says(epsilon: float) -> None:
    """In the library and in the kernel, for shares that are found and for those that are not: rounded up, and by little."""
    source = np.random.default_rng(80)
    for count in (2, 3, 6, 9):
        places = random_places(source, count)
        for shares in (places.shares(epsilon), random_shares(source, places)):
            exact = float(mpmath.log(exact_delta(epsilon, places, shares)))
            order = np.argsort(-places.mus, kind="stable")
            ours = HardestFirst(places.mus[order], places.pair_mus[np.ix_(order, order)], places.weights[order])
            kernel = HiddenPlaces(shares, places.pair_mus).log_delta(epsilon, places.mus, places.weights)
            for log in (ours.log_delta(epsilon, shares[order]), kernel):
                assert exact <= log <= exact + 1e-9


def random_shares(source: np.random.Generator, places: HiddenPlaceDP) -> np.ndarray:
    """Any, as long as no more is taken than given."""
    shares = source.uniform(0.01, 1, len(places.mus))
    taker = source.integers(len(shares))
    given_away = float(places.weights @ (1 - shares)) - places.weights[taker] * (1 - shares[taker])
    shares[taker] = 1 + 0.9 * given_away / places.weights[taker]
    return shares


@pytest.mark.parametrize("more", [2e-12, 1e-6, 1.0])
def test_more_than_is_given_cannot_be_taken(more: float) -> None:
    places = HiddenPlaceDP(mus=[0.1, 1.0], pair_mus=[[0, 1.1], [1.1, 0]], weights=[0.5, 0.5])
    hardest_first = HardestFirst(places.mus[::-1], places.pair_mus, places.weights)
    for shares, proves in (([1.5 - 2e-12, 0.5], True), ([1.5 + more, 0.5], False)):
        ours = hardest_first.log_delta(1.0, np.array(shares))
        kernel = HiddenPlaces(np.array(shares), places.pair_mus).log_delta(1.0, places.mus[::-1], places.weights)
        assert (ours < 0, kernel < 0) == (proves, proves)


def test_nothing_given_is_all_that_may_be_seen() -> None:
    """A place that gives all its share is in the open: its weight is added to δ."""
    shares = np.array([2.0 - 1e-11, 0.0])
    places = HardestFirst(np.array([1.0, 0.1]), np.array([[0, 1.1], [1.1, 0]]), np.full(2, 0.5))
    kernel = HiddenPlaces(shares, places.pair_mus).log_delta(1.0, places.mus, places.weights)
    assert places.log_delta(1.0, shares) >= math.log(0.5)
    assert kernel >= math.log(0.5)


@given(st.integers(0, 10**6), epsilons)
def test_it_is_never_worse_than_the_average(seed: int, epsilon: float) -> None:
    places = random_places(np.random.default_rng(seed), 5)
    assert places.delta(epsilon) <= places.average.delta(epsilon)
    assert places.shares(epsilon) @ places.weights <= 1 + 1e-15


def test_it_falls_with_epsilon_and_epsilon_is_its_inverse() -> None:
    source = np.random.default_rng(81)
    for _ in range(10):
        places = random_places(source, 12)
        grid = np.linspace(0.0, 6.0, 40)
        assert (np.diff(places.delta(grid)) <= 0).all()
        for delta in (1e-2, 1e-5, 1e-9):
            epsilon = places.epsilon(delta)
            assert places.delta(epsilon) <= delta * (1 + 1e-14)  # e^x is rounded up once more
            assert epsilon < 1e-6 or places.delta(epsilon * (1 - 1e-6)) > delta


def test_many_places_are_compared_in_groups_to_the_safe_side() -> None:
    """Each group of others counts as its worst."""
    mus = np.linspace(0.2, 1.0, 150)
    pairs = np.hypot(mus[:, None], mus)
    many = HiddenPlaceDP(mus=mus, pair_mus=pairs, weights=np.full(150, 1 / 150))
    shares = many.shares(1.0)
    exact = HiddenPlaces(shares, pairs).log_delta(1.0, many.mus, many.weights)
    assert exact <= math.log(many.delta(1.0)) <= exact + 0.1


def test_what_attains_it() -> None:
    """Two places on a line whose pairs are as far apart as the bound allows: N(a) and N(b) against N(c) and N(d)."""
    places = HiddenPlaceDP(mus=[0.1, 1.0], pair_mus=[[0, 1.1], [1.1, 0]], weights=[0.5, 0.5])
    x = np.linspace(-12, 12, 40_001)
    p = np.exp(-((x - 0.0) ** 2) / 2) + np.exp(-((x - 1.0) ** 2) / 2)
    q = np.exp(-((x + 0.1) ** 2) / 2) + np.exp(-((x - 0.0) ** 2) / 2)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        exact = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), x) / (2 * math.sqrt(math.tau))
        assert exact <= places.delta(epsilon) * (1 + 1e-7)
        assert exact >= 0.7 * places.delta(epsilon)


def test_a_displacement_is_added_to_every_pair() -> None:
    places = random_places(np.random.default_rng(82), 4)
    moved = as_computed(places, 1e-3)
    assert isinstance(moved, HiddenPlaceDP)
    assert (moved.mus >= places.mus + 2e-3).all()
    assert (moved.pair_mus >= places.pair_mus + 2e-3).all()
    assert moved.epsilon(1e-5) > places.epsilon(1e-5)


def test_what_else_it_answers() -> None:
    places = random_places(np.random.default_rng(83), 6)
    assert places.rdp(3.0) == places.average.rdp(3.0)
    assert places.tradeoff(0.1) >= places.average.tradeoff(0.1)
    assert places.tradeoff(0.1) <= 0.9
    twice = places.compose(2)
    assert places.epsilon(1e-6) < twice.epsilon(1e-6) < 2.5 * places.epsilon(1e-6)
    one = li.notions.HiddenPlaceDP(mus=[0.5], pair_mus=[[0.0]], weights=[1.0])
    assert one.epsilon(1e-5) == pytest.approx(li.notions.GaussianDP(0.5).epsilon(1e-5), rel=1e-9)
    assert li.notions.HiddenPlaceDP(mus=[0.0, 0.0], pair_mus=np.zeros((2, 2)), weights=[0.5, 0.5]).epsilon(1e-9) == 0.0


@pytest.mark.parametrize("easy", [0.0, 1e-6, 1e-3])
def test_a_place_that_costs_next_to_nothing_hides_the_other(easy: float) -> None:
    """An unfinished epoch of two batches: no choice on a fine grid is better than the one that is found."""
    places = HiddenPlaceDP(mus=[0.2, easy], pair_mus=[[0.0, 0.2], [0.2, 0.0]], weights=[0.5, 0.5])
    found, choices = places.epsilon(1e-8), np.linspace(1e-3, 1 - 1e-3, 1000)
    order = HardestFirst(places.mus, places.pair_mus, places.weights)
    choices = np.append(choices, 1 - np.exp(-found) * np.linspace(0.99, 1.01, 1001))  # where the easy place is free
    tried = [order.log_delta(found, np.array([1 + (1 - 1e-9) * x, 1 - x])) for x in choices.tolist()]
    assert abs(min(tried) - math.log(1e-8)) <= 1e-3
    assert found < 0.63 < places.average.epsilon(1e-8)
