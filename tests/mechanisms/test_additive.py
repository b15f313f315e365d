"""Noise after noise: exact profiles and couplings against quadrature and samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import lastiterate as li
from raising import raises

SCALES = [(1.0, 1.0), (1.0, 0.999999), (2.0, 0.5), (0.3, 1.7)]


def test_variances_add() -> None:
    mechanism = li.mechanisms.GaussianAfterGaussian(sensitivity=1.0, first=3.0, second=4.0)
    assert mechanism.guarantee.mu == pytest.approx(0.2)
    flat = li.mechanisms.LipschitzThenGaussian(sensitivity=1.0, first=3.0, second=4.0, lipschitz=0.5)
    assert flat.guarantee.mu == pytest.approx(1 / math.hypot(3.0, 8.0))


@pytest.mark.parametrize(("first", "second"), SCALES)
def test_the_density_is_that_of_a_sum_of_two(first: float, second: float) -> None:
    mechanism = li.mechanisms.LaplaceAfterLaplace(sensitivity=1.0, first=first, second=second)

    def laplace(x: float, scale: float) -> float:
        return math.exp(-abs(x) / scale) / (2 * scale)

    for x in (0.0, 0.4, -2.0, 5.0):
        exact = quad(lambda t, x=x: laplace(t, first) * laplace(x - t, second), -60, 60, points=[0.0, x], limit=400)[0]
        assert float(mechanism.density(x)) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(("first", "second"), SCALES)
@pytest.mark.parametrize("sensitivity", [0.3, 2.0])
def test_the_profile_is_exact(first: float, second: float, sensitivity: float) -> None:
    mechanism = li.mechanisms.LaplaceAfterLaplace(sensitivity=sensitivity, first=first, second=second)
    x = np.linspace(-80, 80, 800_001)
    one, two = mechanism.density(x), mechanism.density(x - sensitivity)
    for share in (0.0, 0.2, 0.5, 0.9, 0.99):
        epsilon = share * mechanism.pure_epsilon
        exact = float(np.maximum(one - math.exp(epsilon) * two, 0).sum()) * (x[1] - x[0])
        found = float(mechanism.guarantee.delta(epsilon))
        assert found == pytest.approx(exact, rel=1e-5, abs=1e-12)
        assert found <= float(mechanism.renyi.delta(epsilon)) * (1 + 1e-9)


def test_nothing_is_gained_in_pure_epsilon_and_much_at_every_delta() -> None:
    """Lemma 3, and what it leaves out."""
    mechanism = li.mechanisms.LaplaceAfterLaplace(sensitivity=1.0, first=1.0, second=1.0)
    assert mechanism.pure_epsilon == pytest.approx(1.0)
    assert float(mechanism.guarantee.delta(mechanism.pure_epsilon)) == 0.0
    assert 0 < float(mechanism.guarantee.delta(0.999)) < 1e-6
    alone = 1 - math.exp((0.5 - 1.0) / 2)  # of Laplace noise alone at ε = 0.5
    assert float(mechanism.guarantee.delta(0.5)) < alone / 2


def test_the_split_is_the_best_for_each_order() -> None:
    """λ1 = λ2: in the middle, by symmetry and log-convexity."""
    mechanism = li.mechanisms.LaplaceAfterLaplace(sensitivity=1.0, first=1.0, second=1.0)

    def alone(order: float, distance: float) -> float:
        share = order * math.exp(distance * (order - 1)) + (order - 1) * math.exp(-distance * order)
        return math.log(share / (2 * order - 1)) / (order - 1)

    order = mechanism.renyi.orders[40]
    assert mechanism.renyi.rdp(order) == pytest.approx(2 * alone(order, 0.5), rel=1e-9)
    assert mechanism.renyi.rdp(order) < alone(order, 1.0)


def test_releases_have_the_noise_that_is_said() -> None:
    zeros = np.zeros(40_000)
    gaussian = li.mechanisms.GaussianAfterGaussian(1.0, 3.0, 4.0).release(zeros)
    assert gaussian.private
    assert gaussian.value.std() == pytest.approx(5.0, rel=0.03)
    laplace = [li.mechanisms.LaplaceAfterLaplace(1.0, 1.0, 2.0).release(0.0, seed=seed) for seed in range(4000)]
    assert not laplace[0].private
    assert np.var([one.value for one in laplace]) == pytest.approx(2 * (1 + 4), rel=0.15)
    lipschitz = li.mechanisms.LipschitzThenGaussian(1.0, 3.0, 4.0, lipschitz=0.5, map=lambda x: x / 2).release(zeros)
    assert lipschitz.value.std() == pytest.approx(math.hypot(1.5, 4.0), rel=0.03)


@pytest.mark.parametrize("sensitivity", [1e-12, 1e-8, 1.9e-7, 1e-4])
def test_small_sensitivities_are_not_lost_in_rounding(sensitivity: float) -> None:
    """D_α is α/2·Δ² times the Fisher information of the noise, to second order; for equal scales 1 that is 1/2."""
    curve = li.mechanisms.LaplaceAfterLaplace(sensitivity, 1.0, 1.0).renyi
    for order in curve.orders[::20]:
        if order * sensitivity < 0.01:
            exact = order / 2 * sensitivity**2 / 2
            assert exact * (1 - 1e-3) <= float(curve.rdp(order)) <= 2.1 * exact


def test_near_the_pure_limit_nothing_is_lost_in_rounding() -> None:
    """Exact to sixty digits: 2.5e-16."""
    mechanism = li.mechanisms.LaplaceAfterLaplace(9.008269643402365e-05, 1.0, 0.005135060392144216)
    assert 2.5e-16 <= float(mechanism.guarantee.delta(9.008269643344766e-05)) < 1e-12


def test_tiny_is_not_nothing() -> None:
    assert li.mechanisms.GaussianAfterGaussian(1e300, 1e308, 1.7e308).guarantee.mu > 0
    assert li.mechanisms.OrnsteinUhlenbeck(1.0, 1.0, 1.0).guarantee(400.0).mu > 0
    assert li.mechanisms.Brownian(1e-162).guarantee(1e-300).mu >= 1e-162 / math.sqrt(2e-300) * (1 - 1e-9)


def test_bad_values() -> None:
    with raises("must_be", "value", kind=li.errors.InvalidInput, allowed="one number"):
        li.mechanisms.LaplaceAfterLaplace(1.0, 1.0, 1.0).release([1.0, 2.0])
    with raises("must_be", "first", kind=li.errors.InvalidInput):
        li.mechanisms.GaussianAfterGaussian(1.0, 0.0, 1.0)
    with raises("must_be", "value", kind=li.errors.InvalidInput):
        li.mechanisms.GaussianAfterGaussian(1.0, 1.0, 1.0).release([math.nan])
    with raises("must_be", "map", kind=li.errors.InvalidInput):
        li.mechanisms.LipschitzThenGaussian(1.0, 1.0, 1.0).release([0.0])
    with raises("must_be", "seed", kind=li.errors.InvalidInput):
        li.mechanisms.GaussianAfterGaussian(1.0, 1.0, 1.0).release([0.0], seed=-1)
