"""The best of a random number of trials: never below what is exactly true, and nearly met."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lastiterate as li
from lastiterate.curves.selected import selected_renyi
from lastiterate.curves.trials import Trials
from selections import delta_of_gaussian_trials, profile_of, worst_ranking

means = st.floats(1.05, 30.0)
laws = st.one_of(
    st.floats(0.1, 30.0).map(li.trials.Poisson),
    means.map(li.trials.Geometric),
    means.map(li.trials.Logarithmic),
    st.builds(li.trials.NegativeBinomial, means, st.floats(-0.8, 5.0)),
)
chances = st.lists(st.floats(0.001, 1.0), min_size=2, max_size=4)


def mechanism(first: list[float], second: list[float]) -> tuple[np.ndarray, np.ndarray]:
    size = min(len(first), len(second))
    p, q = np.array(first[:size]), np.array(second[:size])
    return p / p.sum(), q / q.sum()


@given(laws, chances, chances)
def test_no_ranking_of_outcomes_costs_more_than_is_said(
    trials: Trials, first: list[float], second: list[float]
) -> None:
    p, q = mechanism(first, second)
    epsilons = np.linspace(0.0, 3 * np.abs(np.log(p / q)).max(), 15)
    said = np.asarray(li.select(profile_of(p, q), trials=trials).delta(epsilons))
    assert (worst_ranking(trials, p, q, epsilons) <= said + 1e-14).all()


@settings(max_examples=15)
@given(laws, chances, chances)
def test_divergences_are_never_below_those_of_any_ranking(
    trials: Trials, first: list[float], second: list[float]
) -> None:
    """Through the conversion to δ, which is the weaker statement; at orders of every size."""
    p, q = mechanism(first, second)
    orders = np.array([1.1, 1.5, 2.0, 4.0, 16.0, 64.0])
    divergences = [max(_divergence(p, q, order), _divergence(q, p, order)) for order in orders]
    trial = li.notions.RenyiDP(orders=orders, divergences=divergences)
    epsilons = np.linspace(0.0, 3 * np.abs(np.log(p / q)).max(), 15)
    exact = worst_ranking(trials, p, q, epsilons)
    assert (exact <= np.asarray(selected_renyi(trial, trials).delta(epsilons)) + 1e-14).all()
    assert (exact <= np.asarray(li.select(trial, trials=trials).delta(epsilons)) + 1e-14).all()


def _divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return max(float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1)), 0.0)


@pytest.mark.parametrize(
    ("trials", "nearness"),
    [(li.trials.Geometric(10.0), 0.99), (li.trials.Logarithmic(10.0), 0.99), (li.trials.Poisson(10.0), 0.97)],
)
def test_gaussian_trials_have_a_ranking_that_costs_nearly_as_much(trials: Trials, nearness: float) -> None:
    epsilon = li.select(li.notions.GaussianDP(mu=0.5), trials=trials).epsilon(1e-5)
    assert (
        delta_of_gaussian_trials(trials, 0.5, epsilon)
        <= 1e-5
        < delta_of_gaussian_trials(trials, 0.5, nearness * epsilon)
    )


@settings(max_examples=30)
@given(laws, st.floats(0.05, 3.0))
def test_more_trials_and_more_telling_ones_cost_more(trials: Trials, mu: float) -> None:
    said = li.select(li.notions.GaussianDP(mu=mu), trials=trials).epsilon(1e-6)
    assert said <= li.select(li.notions.GaussianDP(mu=1.1 * mu), trials=trials).epsilon(1e-6)
    if trials.mean >= 1:
        assert said >= li.notions.GaussianDP(mu=mu).epsilon(1e-6) * (1 - 1e-6)
