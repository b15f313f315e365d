"""Σ w_k·N(μ_k, 1) against N(0, 1): above quadrature, and close to it, in both orders."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import lastiterate as li
from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, POISSON
from lastiterate.curves.hidden_participation import absent_against_present, present_against_absent, present_or_absent
from lastiterate.curves.subsampled import subsampled_gaussian

CASES = [
    (np.array([0.0, 1.0]), np.array([0.9, 0.1])),
    (np.array([0.5, 0.2, 2.0, 0.0]), np.array([0.3, 0.3, 0.1, 0.3])),
    (np.arange(13) * 0.3, binom.pmf(np.arange(13), 12, 0.2)),
    (np.array([1.5]), np.array([1.0])),
    (np.array([0.01, 0.3]), np.array([0.5, 0.5])),
]


def integral(mus: np.ndarray, weights: np.ndarray, epsilon: float, present: bool) -> float:
    """∫ (p − e^ε·q)₊, split where the ratio is e^{±ε}: it increases."""
    with mpmath.workdps(30):
        pairs = [(mpmath.mpf(float(w)), mpmath.mpf(float(m))) for w, m in zip(weights, mus, strict=True)]

        def log_ratio(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(mpmath.fsum(w * mpmath.exp(m * x - m * m / 2) for w, m in pairs))

        target, low, high = (epsilon if present else -epsilon), mpmath.mpf(-60), mpmath.mpf(60)
        if not log_ratio(low) < target < log_ratio(high):
            return 0.0
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if log_ratio(middle) < target else (low, middle)
        mixture = mpmath.fsum(w * mpmath.ncdf((m - low) if present else (low - m)) for w, m in pairs)
        normal = mpmath.ncdf(-low if present else low)
        factor = mpmath.exp(epsilon)
        return float(mixture - factor * normal if present else normal - factor * mixture)


def at(points: tuple[np.ndarray, np.ndarray], epsilon: float) -> float:
    return float(np.interp(np.exp(epsilon), np.exp(points[0]), points[1]))


@pytest.mark.parametrize(("mus", "weights"), CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.4, 1.3, 3.0])
def test_it_lies_above_the_exact_values_and_near_them(mus: np.ndarray, weights: np.ndarray, epsilon: float) -> None:
    exact = [integral(mus, weights, epsilon, present) for present in (True, False)]
    found = at(present_against_absent(mus, weights), epsilon), at(absent_against_present(mus, weights), epsilon)
    for one, two in zip(exact, found, strict=True):
        assert one <= two * (1 + 1e-13)
        assert two <= 1.01 * one + 1e-6 * max(exact) + 1e-18  # chords, and the end of the table
    both = present_or_absent(mus, weights).delta(epsilon)
    assert max(exact) <= both <= 1.02 * max(exact) + 1e-9


def test_one_poisson_step_is_what_composition_takes() -> None:
    found = present_or_absent(np.array([0.0, 1.2]), np.array([0.8, 0.2]))
    known = subsampled_gaussian(mu=1.2, inclusion=0.2, sampling=POISSON, adjacency=ADD_OR_REMOVE_ONE)
    for delta in (1e-3, 1e-6, 1e-9):
        assert known.epsilon(delta) * (1 - 1e-6) <= found.epsilon(delta) <= known.epsilon(delta) * 1.01


def test_what_is_lost_is_added_and_one_mu_is_gaussian() -> None:
    mus, weights = np.array([0.5, 1.0]), np.array([0.5, 0.5])
    assert present_or_absent(mus, weights * (1 - 1e-4), 1e-4).delta(1.0) > present_or_absent(mus, weights).delta(1.0)
    alone = present_or_absent(np.array([1.0]), np.array([1.0]))
    assert (
        li.notions.GaussianDP(1.0).epsilon(1e-6)
        <= alone.epsilon(1e-6)
        <= 1.005 * li.notions.GaussianDP(1.0).epsilon(1e-6)
    )
