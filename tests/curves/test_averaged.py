"""Averages of Gaussian guarantees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lastiterate as li
from strategies import deltas, epsilons, mus


@given(mu=mus, epsilon=epsilons, delta=deltas)
def test_one_mu_is_gaussian(mu: float, epsilon: float, delta: float) -> None:
    one, plain = li.notions.AveragedGaussianDP(mus=[mu], weights=[1.0]), li.notions.GaussianDP(mu)
    assert one.delta(epsilon) == pytest.approx(plain.delta(epsilon), rel=1e-10)
    assert one.delta(epsilon) >= plain.delta(epsilon) * (1 - 1e-12)
    assert one.epsilon(delta) == pytest.approx(plain.epsilon(delta), rel=1e-9, abs=1e-12)


@given(first=mus, second=mus, share=st.floats(0.01, 0.99), epsilon=epsilons)
def test_delta_is_the_average(first: float, second: float, share: float, epsilon: float) -> None:
    both = li.notions.AveragedGaussianDP(mus=[first, second], weights=[share, 1 - share])
    exact = share * li.notions.GaussianDP(first).delta(epsilon) + (1 - share) * li.notions.GaussianDP(second).delta(
        epsilon
    )
    assert both.delta(epsilon) == pytest.approx(exact, rel=1e-9)
    worst = li.notions.GaussianDP(max(first, second))
    assert both.delta(epsilon) <= worst.delta(epsilon) * (1 + 1e-9)
    assert both.rdp(4.0) <= worst.rdp(4.0) * (1 + 1e-9)


def test_a_record_may_be_absent() -> None:
    half = li.notions.AveragedGaussianDP(mus=[0.0, 1.0], weights=[0.5, 0.5])
    assert half.delta(0.5) == pytest.approx(li.notions.GaussianDP(1.0).delta(0.5) / 2, rel=1e-10)
    assert li.notions.AveragedGaussianDP(mus=[0.0], weights=[1.0]).epsilon(1e-9) == 0.0
    assert li.notions.AveragedGaussianDP(mus=[0.0], weights=[1.0]).rdp(2.0) == 0.0


def test_the_renyi_divergence_bounds_the_profile() -> None:
    notion = li.notions.AveragedGaussianDP(mus=[0.3, 1.0, 2.0], weights=[0.5, 0.3, 0.2])
    orders = np.linspace(1.5, 40, 60)
    curve = li.notions.RenyiDP(orders=orders, divergences=notion.rdp(orders))
    assert curve.epsilon(1e-6) >= notion.epsilon(1e-6)


def test_it_composes() -> None:
    twice = li.notions.AveragedGaussianDP(mus=[1.0], weights=[1.0]).compose(2)
    exact = li.notions.GaussianDP(1.0).compose(2).epsilon(1e-5)
    assert exact <= twice.epsilon(1e-5) <= exact * 1.01
