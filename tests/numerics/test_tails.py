"""Chernoff's bounds against exact tails."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from lastiterate.numerics import tails
from lastiterate.numerics.tails import CoinSum, binomial_levels, binomial_range


@pytest.mark.parametrize("count", [0, 1, 5, 999, 59_999])
@pytest.mark.parametrize("rate", [1e-6, 0.001, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("probability", [1e-3, 1e-12, 1e-30])
def test_a_binomial_variable_leaves_its_range_as_rarely_as_said(count: int, rate: float, probability: float) -> None:
    least, most = binomial_range(count, rate, math.log(probability))
    assert 0 <= least <= most <= count
    outside = binom.cdf(least - 1, count, rate) + binom.sf(most, count, rate)
    assert outside <= probability * (1 + 1e-6)


def test_the_range_is_not_much_wider_than_needed() -> None:
    least, most = binomial_range(59_999, 0.025, math.log(1e-30))
    assert binom.sf(most - 20, 59_999, 0.025) > 1e-31
    assert binom.cdf(least + 20, 59_999, 0.025) > 1e-31


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_a_sum_of_equal_coins_is_binomial(rate: float) -> None:
    coins = CoinSum(np.array([2.0]), np.array([500.0]), rate)
    for probability in (1e-2, 1e-6, 1e-15):
        exceeded = coins.exceeded(math.log(probability))
        assert binom.sf(math.floor(exceeded / 2 + 1e-9), 500, rate) <= probability
        assert exceeded <= 1000 * (1 + 1e-9)


def test_weighted_coins_by_simulation() -> None:
    weights = 0.99 ** np.arange(800)
    coins = CoinSum(weights, np.ones(800), 0.05)
    sums = (np.random.default_rng(1).random((20_000, 800)) < 0.05) @ weights
    for probability in (0.1, 0.01, 0.001):
        assert (sums > coins.exceeded(math.log(probability))).mean() <= probability
    assert coins.exceeded(math.log(1e-6)) < 0.3 * weights.sum()


@pytest.mark.parametrize("count", [10**3, 10**6, 10**8, 10**10, 10**14])
@pytest.mark.parametrize("rate", [0.5, 0.01, 1e-6])
def test_a_divergence_is_rounded_down_however_many_coins_there_are(count: int, rate: float) -> None:
    source = np.random.default_rng(3)
    for _ in range(40):
        number = min(max(round(count * rate + source.normal() * 10 * math.sqrt(count * rate)), 0), count)
        with mpmath.workdps(50):
            share, q = mpmath.mpf(number) / count, mpmath.mpf(rate)
            exact = sum(
                (p * mpmath.log(p / r) for p, r in ((share, q), (1 - share, 1 - q)) if p),
                mpmath.mpf(0),
            )
        found = tails._divergence(number, count, rate)
        assert found <= exact
        assert found >= float(exact) - 32 * 2.0**-52 * (1 + float(exact))


def test_coins_that_weigh_less_by_chance_by_enumeration() -> None:
    """Eight coins at rate 0.3, each of weight 1 or 0.4: the exact law of their sum, convolved."""
    step = {0.0: 0.7, 1.0: 0.3 * 0.2, 0.4: 0.3 * 0.8}
    law = {0.0: 1.0}
    for _ in range(8):
        after: dict[float, float] = {}
        for total, chance in law.items():
            for more, one in step.items():
                key = round(total + more, 9)
                after[key] = after.get(key, 0.0) + chance * one
        law = after
    coins = CoinSum(np.array([1.0]), np.array([8.0]), 0.3, ((1.0, 0.2), (0.4, 0.8)))
    plain = CoinSum(np.array([1.0]), np.array([8.0]), 0.3)
    for probability in (0.1, 1e-3, 1e-5):
        exceeded = coins.exceeded(math.log(probability))
        assert sum(chance for total, chance in law.items() if total > exceeded) <= probability
        assert exceeded <= plain.exceeded(math.log(probability))


@pytest.mark.parametrize(("count", "rate"), [(0, 0.3), (7, 0.4), (50, 1.0), (10**12, 0.5)])
def test_groups_of_numbers_where_there_are_few_or_too_many(count: int, rate: float) -> None:
    low, high = binomial_range(count, rate, math.log(1e-9))
    groups = binomial_levels(count, rate, low, high)
    assert groups[0][0] == low
    assert math.fsum(one for _, one in groups) == pytest.approx(1.0, abs=1e-15)
    assert len(groups) == 1 or count == 7
