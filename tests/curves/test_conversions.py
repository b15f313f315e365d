"""The arrows between notions beside their formulas, in 50 digits, and beside the definitions they come from."""

from __future__ import annotations

import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest

from lastiterate.curves.notion import (
    concentrated_to_log_delta,
    polygon_to_delta,
    profile_to_tradeoff,
    renyi_to_epsilon,
    renyi_to_log_delta,
    tradeoff_to_delta,
)

ORDERS = (1.01, 1.5, 2.0, 8.0, 300.0)
DIVERGENCES = (0.0, 1e-6, 0.3, 5.0, 400.0)


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with mpmath.workdps(50):
        yield


def balle(a: mpmath.mpf, rho: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """log of e^{(α−1)(ρ−ε)}·(1 − 1/α)^{α−1}/α."""
    return (a - 1) * (rho - epsilon) + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)


def asoodeh(a: mpmath.mpf, rho: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """log of (e^{(α−1)ρ} − 1)/(α(e^{(α−1)ε} − 1))."""
    if epsilon == 0 or rho == 0:
        return mpmath.inf if rho else -mpmath.inf if epsilon else mpmath.inf
    return mpmath.log(mpmath.expm1((a - 1) * rho)) - mpmath.log(mpmath.expm1((a - 1) * epsilon)) - mpmath.log(a)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_renyi_to_delta_is_the_better_of_two_formulas(order: float, divergence: float) -> None:
    for epsilon in (0.0, 1e-4, 0.1, 1.0, 20.0, 900.0):
        a, rho, e = mpmath.mpf(order), mpmath.mpf(divergence), mpmath.mpf(epsilon)
        exact = min(balle(a, rho, e), asoodeh(a, rho, e), mpmath.mpf(0))
        found = float(renyi_to_log_delta(order, divergence, epsilon))
        if mpmath.isinf(exact):
            assert found == -math.inf
        else:
            assert found == pytest.approx(float(exact), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_renyi_to_epsilon_is_its_inverse(order: float, divergence: float) -> None:
    """The least ε at which one of the two formulas is at most δ."""
    for log_delta in (-0.1, -5.0, -30.0, -700.0):
        found = float(renyi_to_epsilon(order, divergence, log_delta))
        if divergence == 0:
            assert found == 0
            continue
        at = float(renyi_to_log_delta(order, divergence, found))
        assert at <= log_delta + 1e-8 * (1 + abs(log_delta))
        if found > 1e-9:
            below = float(renyi_to_log_delta(order, divergence, found * (1 - 1e-5)))
            assert below > log_delta - 1e-9 * abs(log_delta)


def test_renyi_conversions_are_vectorised_and_never_negative() -> None:
    found = renyi_to_epsilon(np.array([2.0, 8.0]), np.array([0.1, 0.4]), np.log(0.9))
    assert found.tolist() == [float(renyi_to_epsilon(a, r, math.log(0.9))) for a, r in ((2.0, 0.1), (8.0, 0.4))]
    assert (found >= 0).all()
    assert renyi_to_log_delta(2.0, 5.0, 0.0) == 0


@pytest.mark.parametrize("rho", [1e-4, 0.1, 2.0, 50.0])
def test_concentrated_to_delta_is_the_integral(rho: float) -> None:
    """∫_ε^∞ e^{ε−x}·e^{−(x−ρ)²/4ρ} dx, which bounds E(1 − e^{ε−L})₊ from P(L > x) ≤ e^{−(x−ρ)²/4ρ}."""
    r = mpmath.mpf(rho)
    for epsilon in (rho, rho + 0.3 * math.sqrt(rho), rho + 4 * math.sqrt(rho), rho + 30 * math.sqrt(rho)):
        e = mpmath.mpf(epsilon)
        scale = min(1 / (1 + (e - r) / (2 * r)), mpmath.sqrt(r))
        exact = mpmath.quad(
            lambda x, e=e: mpmath.exp(e - x - (x - r) ** 2 / (4 * r)),
            [e + scale * at for at in (0, 1, 3, 8, 20, 60, 120)],
        )
        # The formula is the integral, cut at e^{−(ε−ρ)²/4ρ}.
        cut = mpmath.exp(-((e - r) ** 2) / (4 * r))
        assert float(concentrated_to_log_delta(rho, epsilon)) == pytest.approx(
            float(mpmath.log(min(exact, cut))), abs=1e-9
        )
    assert concentrated_to_log_delta(rho, rho * 0.99) == 0
    assert (concentrated_to_log_delta(rho, np.array([0.0, rho * 3])) <= 0).all()


EPSILONS, DELTAS = np.array([0.0, 0.5, 2.0]), np.array([0.3, 0.1, 1e-3])


def test_profile_to_tradeoff_is_the_highest_line() -> None:
    alphas = np.array([0.0, 1e-3, 0.05, 0.3, 0.7, 1.0])
    found = profile_to_tradeoff(EPSILONS, DELTAS, alphas)
    for alpha, one in zip(alphas.tolist(), found.tolist(), strict=True):
        lines = [0.0]
        for epsilon, delta in zip(EPSILONS.tolist(), DELTAS.tolist(), strict=True):
            lines += [1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha)]
        assert one == pytest.approx(max(lines), rel=1e-14)
    assert found[0] == pytest.approx(1 - 1e-3)
    assert found[-1] == 0


def test_tradeoff_to_delta_is_the_supremum_over_what_points_promise() -> None:
    """Between two points f is its value at the right one; before the first it is that of the first, after the last 0."""
    alphas, betas = np.array([0.1, 0.4, 0.8]), np.array([0.7, 0.35, 0.1])
    fine = np.linspace(0.0, 1.0, 100_001)
    steps = np.append(betas, 0.0)[np.searchsorted(alphas, fine)]
    for epsilon in (0.0, 0.3, 1.0, 3.0, 800.0):
        exact = float(np.max(1 - steps - np.where(fine > 0, math.exp(min(epsilon, 700.0)) * fine, 0.0)))
        found = float(tradeoff_to_delta(alphas, betas, np.array([epsilon]))[0])
        assert found >= exact - 1e-12
        assert found <= min(exact + 2e-5 * math.exp(min(epsilon, 5.0)), 1.0)


def test_polygon_to_delta_is_at_a_vertex() -> None:
    alphas, betas = np.array([0.0, 0.2, 1.0]), np.array([0.9, 0.3, 0.0])
    for epsilon in (0.0, 0.5, 2.0):
        exact = max(0.0, *(1 - b - math.exp(epsilon) * a for a, b in zip(alphas, betas, strict=True)))
        assert polygon_to_delta(alphas, betas, np.array([epsilon]))[0] == pytest.approx(exact, rel=1e-14)
    assert polygon_to_delta(alphas, betas, np.array([2000.0]))[0] == pytest.approx(0.1)
    assert polygon_to_delta(np.array([0.0]), np.array([1.2]), np.array([0.0]))[0] == 0
    assert polygon_to_delta(np.array([0.0]), np.array([-0.2]), np.array([0.0]))[0] == 1


def test_after_the_last_point_a_tradeoff_promises_nothing() -> None:
    """f = 0 right after 0.1: the supremum is there, at 1 − 0.1."""
    found = tradeoff_to_delta(np.array([0.1]), np.array([0.9]), np.array([0.0, 1.0]))
    assert found == pytest.approx([0.9, 1 - 0.1 * math.e], rel=1e-14)
