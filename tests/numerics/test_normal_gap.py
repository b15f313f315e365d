"""θ_t(r) against mpmath: to 1e-10 relative, with an error bound that holds and inverses on the stated side."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from lastiterate.numerics.normal_gap import (
    log_gap,
    log_gap_above,
    log_gap_below,
    log_gap_error,
    mills_descent,
    shift_below,
    threshold_above,
)


def exact_log_gap(threshold: float, shift: float) -> mp.mpf:
    with mp.workdps(360):  # the difference may lose 300 digits
        t, r = mp.mpf(threshold), mp.mpf(shift)
        upper = mp.erfc((t / r - r / 2) / mp.sqrt(2)) / 2
        lower = mp.erfc((t / r + r / 2) / mp.sqrt(2)) / 2
        return mp.log(upper - mp.exp(t) * lower)


def random_pairs(count: int) -> list[tuple[float, float]]:
    """r from 1e-4 to 1e3, t from 0 to 1e4, θ ≥ 1e-300."""
    draw = np.random.default_rng(7)
    pairs: list[tuple[float, float]] = []
    while len(pairs) < count:
        shift = 10 ** draw.uniform(-4, 3)
        threshold = float(draw.choice([0.0, 10 ** draw.uniform(-8, 4), shift * (shift / 2 + draw.uniform(-5, 37))]))
        if 0 <= threshold <= 1e4 and threshold / shift - shift / 2 < 36.9:
            pairs.append((threshold, float(shift)))
    return pairs


@pytest.mark.parametrize("count", [300, pytest.param(1500, marks=pytest.mark.study)])
def test_relative_error_below_1e_10_and_within_its_bound(count: int) -> None:
    for threshold, shift in random_pairs(count):
        error = abs(float(mp.mpf(float(log_gap(threshold, shift))) - exact_log_gap(threshold, shift)))
        assert error < 1e-12
        assert error <= float(log_gap_error(threshold, shift))


def test_logarithm_holds_far_beyond_the_range_of_floats() -> None:
    for threshold, shift in ((1e4, 1.0), (1e4, 20.0), (50.0, 0.1), (1.0, 1e-4)):
        error = abs(float(mp.mpf(float(log_gap(threshold, shift))) / exact_log_gap(threshold, shift) - 1))
        assert error < 1e-13


def test_rounding_goes_to_the_stated_side() -> None:
    for threshold, shift in random_pairs(300):
        exact = exact_log_gap(threshold, shift)
        assert mp.mpf(float(log_gap_below(threshold, shift))) <= exact <= mp.mpf(float(log_gap_above(threshold, shift)))


def test_rounding_goes_to_the_stated_side_near_half_the_square_of_a_huge_shift() -> None:
    """There t/r − r/2 is near 0, and known to as many ulps as r is large."""
    draw = np.random.default_rng(8)
    for _ in range(200):
        shift = 10 ** draw.uniform(4, 9)
        threshold = shift * (shift / 2 + draw.normal() * 10 ** draw.uniform(-9, 0.7))
        exact = exact_log_gap(threshold, shift)
        assert log_gap_below(threshold, shift) <= exact <= log_gap_above(threshold, shift)
    assert threshold_above(np.log(0.4), 1e17) > 1e17**2 / 2


def test_mills_descent_is_continuous_where_the_series_takes_over() -> None:
    with mp.workdps(40):
        for t in (11.9999, 12.0001, 40.0):
            x = mp.mpf(t)
            exact = 1 - x * mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))
            assert abs(float(mills_descent(np.array(t)) / exact - 1)) < 1e-13


@pytest.mark.parametrize("shift", [1e-4, 0.1, 1.0, 4.714, 200.0, 1e3])
@pytest.mark.parametrize("log_delta", [-690.0, -69.0, -11.5, -0.7])
def test_threshold_is_the_least_that_suffices(shift: float, log_delta: float) -> None:
    threshold = float(threshold_above(log_delta, shift))
    assert log_gap_above(threshold, shift) <= log_delta
    if threshold > 0:
        assert exact_log_gap(threshold * (1 - 1e-11), shift) > log_delta - 1e-9


@pytest.mark.parametrize("threshold", [0.0, 1e-3, 1.0, 8.0, 1e3])
@pytest.mark.parametrize("log_delta", [-600.0, -69.0, -11.5, -0.7])
def test_shift_is_the_greatest_allowed(threshold: float, log_delta: float) -> None:
    shift = float(shift_below(log_delta, threshold))
    assert exact_log_gap(threshold, shift) <= log_delta
    assert exact_log_gap(threshold, shift * (1 + 1e-9)) > log_delta - 1e-7


def test_arrays_are_answered_elementwise() -> None:
    shifts = np.array([0.5, 1.0, 3.0])
    together = threshold_above(np.log(1e-5), shifts)
    assert together.shape == (3,)
    assert np.allclose(together, [float(threshold_above(np.log(1e-5), s)) for s in shifts], rtol=1e-14)
