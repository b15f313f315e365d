"""Diffusions: semigroups, exact guarantees, and the error that Theorem 8 promises (errata E3.2, E3.7)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

import lastiterate as li

OU = li.mechanisms.OrnsteinUhlenbeck(theta=0.7, rho=1.3, sensitivity=0.5)
BROWNIAN = li.mechanisms.Brownian(sensitivity=0.5)


@pytest.mark.parametrize("diffusion", [OU, BROWNIAN], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("time", [1e-3, 0.4, 3.0])
def test_the_guarantee_is_that_of_the_gaussian_mechanism_it_is(
    diffusion: li.mechanisms.OrnsteinUhlenbeck, time: float
) -> None:
    """shrink·Δ over the noise: Corollary 7, exactly."""
    exact = diffusion.shrink(time) * diffusion.sensitivity / math.sqrt(diffusion.variance(time))
    assert diffusion.guarantee(time).mu == pytest.approx(exact, rel=1e-10)
    assert diffusion.guarantee(time).mu >= exact
    assert diffusion.guarantee(time).rdp(3.0) == pytest.approx(3 * diffusion.intrinsic_sensitivity(time), rel=1e-9)


@pytest.mark.parametrize("diffusion", [OU, BROWNIAN], ids=lambda one: type(one).__name__)
def test_continued_is_released_later(diffusion: li.mechanisms.OrnsteinUhlenbeck) -> None:
    """P_s after P_t is P_{s+t}: mean and variance, and a two-sample test."""
    t, s = 0.4, 1.1
    assert diffusion.shrink(s) * diffusion.shrink(t) == pytest.approx(diffusion.shrink(s + t))
    both = diffusion.shrink(s) ** 2 * diffusion.variance(t) + diffusion.variance(s)
    assert both == pytest.approx(diffusion.variance(s + t))
    value = np.full(20_000, 2.0)
    later = diffusion.continued(diffusion.release(value, t, seed=1), s, seed=2)
    assert ks_2samp(later.value, diffusion.release(value, s + t, seed=3).value).pvalue > 1e-3
    assert not later.private
    assert diffusion.continued(diffusion.release(value, t), s).private


def test_a_seed_anywhere_is_not_private() -> None:
    assert not OU.continued(OU.release([1.0], 1.0, seed=5), 1.0).private


@pytest.mark.parametrize(("dimension", "rdp", "norm"), [(1, 0.1, 1.0), (20, 0.5, 2.0), (100, 0.01, 1.0)])
def test_theorem_8(dimension: int, rdp: float, norm: float) -> None:
    """(α, α·rdp) at time 1; the ratio (1 + x)⁻¹ or less, met by samples."""
    chosen = li.mechanisms.OrnsteinUhlenbeck.for_target(rdp=rdp, sensitivity=1.0, norm=norm, dimension=dimension)
    assert chosen.intrinsic_sensitivity(1.0) == pytest.approx(rdp, rel=1e-12)
    excess = dimension / (2 * rdp * norm**2)
    plain, ours = chosen.gaussian_error(1.0, dimension), chosen.mean_squared_error(1.0, norm, dimension)
    assert plain == pytest.approx(dimension / (2 * rdp), rel=1e-9)
    assert ours / plain <= 1 / (1 + excess) * (1 + 1e-9)
    assert ours == pytest.approx(chosen.shrunk_gaussian_error(1.0, norm, dimension), rel=1e-6)
    value = np.zeros((4000, dimension))
    value[:, 0] = norm
    errors = np.square(chosen.release(value, 1.0, seed=8).value - value).sum(axis=1)
    assert errors.mean() == pytest.approx(ours, abs=4 * errors.std() / math.sqrt(len(errors)))


def test_the_condition_of_theorem_8_and_where_it_fails() -> None:
    """θR² ≤ 4dρ²: below the Gaussian mechanism's error at all times; its "in particular" need not be (errata E3.7)."""
    inside = li.mechanisms.OrnsteinUhlenbeck(theta=1.0, rho=1.0, sensitivity=1.0)
    for time in np.geomspace(1e-3, 10, 40).tolist():
        assert inside.mean_squared_error(time, 2.0, 1) <= inside.gaussian_error(time, 1) * (1 + 1e-9)
    outside = li.mechanisms.OrnsteinUhlenbeck.for_target(rdp=0.05, sensitivity=1.0, norm=1.0, dimension=1)  # x = 10
    assert outside.theta * 1.0 > 4 * outside.rho**2
    worst = max(
        outside.mean_squared_error(time, 1.0, 1) / outside.gaussian_error(time, 1)
        for time in np.geomspace(1e-3, 1, 200).tolist()
    )
    assert worst == pytest.approx(1.53, abs=0.02)


@pytest.mark.parametrize("time", [0.1, 1.0, 5.0])
def test_a_kappa_of_ones_own(time: float) -> None:
    brownian = li.mechanisms.Diffusion(kappa=lambda t: 0.25 / (4 * t**2))
    lower, upper = brownian.bracket(time)
    assert lower <= BROWNIAN.intrinsic_sensitivity(time) <= upper <= lower * (1 + 1e-4)

    def kappa(t: np.ndarray) -> np.ndarray:
        grown = np.exp(-0.7 * t) / -np.expm1(-1.4 * t)  # e^{θt}/(e^{2θt} − 1)
        return (1.3 * 0.7 * 0.5 / 1.3**2 * grown) ** 2

    lower, upper = li.mechanisms.Diffusion(kappa=kappa).bracket(time)
    assert lower <= OU.intrinsic_sensitivity(time) <= upper <= lower * (1 + 1e-3)
    assert li.mechanisms.Diffusion(kappa=kappa).guarantee(time).rdp(2.0) >= 2 * OU.intrinsic_sensitivity(time)


def test_a_sum_over_cells_is_rounded_to_its_side() -> None:
    """Where κ ends within the first cell, its width is the whole sum."""
    seen: list[np.ndarray] = []

    def kappa(times: np.ndarray) -> np.ndarray:
        seen.append(times)
        return np.where(times > times[0], 0.0, 1.0)

    lower, upper = li.mechanisms.Diffusion(kappa=kappa).bracket(1.0)
    assert lower == 0
    assert upper >= (seen[0][1] - seen[0][0]) * (1 + 0.9e-9)


@pytest.mark.parametrize(
    "kappa", [lambda t: 1 / t, lambda t: -1 / t**2, lambda t: np.full_like(t, np.nan), lambda t: 1.0]
)
def test_a_kappa_that_is_not_one(kappa: object) -> None:
    with pytest.raises(li.errors.InvalidInput, match="kappa"):
        li.mechanisms.Diffusion(kappa=kappa).guarantee(1.0)  # type: ignore[arg-type]


def test_bad_times_and_values() -> None:
    for wrong in (
        lambda: OU.release([1.0], 0.0),
        lambda: OU.guarantee(-1.0),
        lambda: BROWNIAN.release([math.inf], 1.0),
        lambda: OU.continued(np.ones(2), 1.0),  # type: ignore[arg-type]
        lambda: li.mechanisms.OrnsteinUhlenbeck(theta=0.0, rho=1.0, sensitivity=1.0),
        lambda: OU.mean_squared_error(1.0, 1.0, 0),
    ):
        with pytest.raises(li.errors.InvalidInput):
            wrong()
