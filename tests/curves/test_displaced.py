"""A guarantee of what is computed up to rounding, beside its formula in many digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.transformed import Displaced, as_computed


def theta(epsilon: float, mu: float) -> mpmath.mpf:
    e, r = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)


def displaced_delta(epsilon: float, mu: float, moved: float) -> mpmath.mpf:
    """The better of e^a·δ(ε − 2a) + (1 + e^{ε − a})·θ_a(m) with a = 16·m and a = 0, and 1."""
    best = mpmath.mpf(1)
    for a in (0.0, 16 * moved):
        if epsilon >= 2 * a:
            before = epsilon - 2 * a
            lost = (1 + mpmath.exp(a + before)) * theta(a, moved)
            best = min(best, mpmath.exp(a) * theta(before, mu) + lost)
    return best


@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.3, 2.0])
@pytest.mark.parametrize("moved", [1e-6, 1e-4, 1e-3])
def test_a_displaced_profile_is_its_formula_and_not_below(mu: float, moved: float) -> None:
    displaced = Displaced(li.notions.GaussianDP(mu), moved)
    with mpmath.workdps(60):
        for epsilon in (0.0, 16 * moved, 31.9 * moved, 32 * moved, 47.9 * moved, 0.2, 1.0, 6.0):
            exact = displaced_delta(epsilon, mu, moved)
            found = mpmath.mpf(float(displaced.delta(epsilon)))
            assert exact * (1 - mpmath.mpf("1e-13")) <= found <= exact * (1 + mpmath.mpf("1e-9"))


@pytest.mark.parametrize("moved", [1e-6, 1e-4])
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-9, 1e-30])
def test_a_displaced_epsilon_is_a_little_more(moved: float, delta: float) -> None:
    """The guarantee's own ε at almost all of δ·e^{−16·m}, and 32·m."""
    inner = li.notions.GaussianDP(0.7)
    found = float(Displaced(inner, moved).epsilon(delta))
    assert found == pytest.approx(float(inner.epsilon(delta * math.exp(-16 * moved - 1e-9))) + 32 * moved, rel=1e-10)
    with mpmath.workdps(60):
        assert displaced_delta(found, 0.7, moved) <= delta


def test_where_what_is_lost_does_not_fit_nothing_is_known() -> None:
    """At 16·m a normal displacement loses about 1e-60: below that δ no ε is enough."""
    displaced = Displaced(li.notions.GaussianDP(0.7), 1e-4)
    with mpmath.workdps(60):
        lost = float(theta(16e-4, 1e-4))
    needed = math.log(2 * lost / 5e-10)
    assert math.isinf(float(displaced.epsilon_at_log(np.array([needed - 5.0]))[0]))
    found = float(displaced.epsilon_at_log(np.array([needed + 40.0]))[0])
    assert math.isfinite(found)
    # The border itself: (1 + e^{a + ε})·θ_a = 5e-10·δ.
    asked = np.linspace(needed - 5.0, needed + 40.0, 901)
    border = asked[np.isfinite(displaced.epsilon_at_log(asked))]
    epsilon = float(displaced.inner.epsilon_at_log(np.array([border[0] - 16e-4 - 1e-9]))[0])
    assert border[0] == pytest.approx(math.log(lost / 5e-10) + math.log1p(math.exp(epsilon + 16e-4)), abs=0.11)


def test_no_displacement_is_no_loss_and_normal_ones_add_up() -> None:
    inner = li.notions.GaussianDP(0.7)
    assert as_computed(inner, 0.0) is inner
    moved = as_computed(inner, 1e-4)
    assert isinstance(moved, li.notions.GaussianDP)
    assert 0.7002 < moved.mu <= 0.7002 * (1 + 3e-15)
    assert moved.adjacency == inner.adjacency
    averaged = as_computed(AveragedGaussianDP(mus=[0.5, 1.0], weights=[0.25, 0.75 - 2.0**-32]), 1e-4)
    assert isinstance(averaged, AveragedGaussianDP)
    by_weight = dict(zip(np.asarray(averaged.weights).tolist(), np.asarray(averaged.mus).tolist(), strict=True))
    assert math.fsum(by_weight) == pytest.approx(1.0, abs=1e-15)
    for weight, exact in ((0.25, 0.5002), (0.75, 1.0002), (2.0**-32, 2e-4)):  # the last is what had cost nothing
        mu = by_weight[min(by_weight, key=lambda one, weight=weight: abs(one - weight))]
        assert exact < mu <= exact * (1 + 3e-15)
    other = as_computed(li.notions.Profile(epsilons=[1.0], deltas=[1e-3]), 1e-4)
    assert isinstance(other, Displaced)
    assert other.adjacency == other.inner.adjacency
    assert other.epsilon_estimate(-8.0) == other.inner.epsilon_estimate(-8.0)


@pytest.mark.parametrize("epsilon", [0.8, 1.2, 1.5])
def test_a_displaced_profile_is_rounded_up_by_its_slack(epsilon: float) -> None:
    """Of its logarithm, in its last digits."""
    displaced, at = Displaced(li.notions.GaussianDP(0.1), 1e-4), np.array([epsilon])
    moved = 16e-4
    exact = float(np.logaddexp(displaced.inner.log_delta(at) + moved, displaced._lost(at, moved))[0])
    assert exact < -25
    assert 0.7 <= (float(displaced._farther(at, moved)[0]) - exact) / (1e-15 * (1 - exact)) <= 1.3
