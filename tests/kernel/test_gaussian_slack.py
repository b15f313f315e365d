"""How much δ is rounded up: by what its steps can lose, on average over many μ, so that their own rounding is not seen."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from lastiterate.kernel.gaussian import log_average, log_delta

ULP = 2.0**-52
COUNT = 1500


def exactly(near: float, mu: float) -> tuple[float, mpmath.mpf, mpmath.mpf, mpmath.mpf]:
    """ε for which a is about `near`; Mills' ratios of a and b; log δ."""
    epsilon = mu * (near + mu / 2)
    a, b = (mpmath.mpf(epsilon) / mpmath.mpf(mu) + sign * mpmath.mpf(mu) / 2 for sign in (-1, 1))
    mills = [mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(t**2 / 2) * mpmath.erfc(t / mpmath.sqrt(2)) for t in (a, b)]
    log = mpmath.log(mills[0] - mills[1]) - a**2 / 2 - mpmath.log(2 * mpmath.pi) / 2
    return epsilon, mills[0], mills[1], log


@pytest.mark.parametrize(
    ("nears", "mus", "off"),
    [
        ((0.0, 0.0), (30.0, 60.0), 0.02),
        ((0.5, 3.0), (1e-4, 1e-3), 0.02),
        ((8.0, 12.0), (1.0, 2.0), 0.05),
        ((-6.0, -4.0), (12.0, 20.0), 0.05),
    ],
    ids=["where a is 0", "a difference of near numbers", "a far tail", "nearly 1"],
)
def test_delta_is_rounded_up_by_what_is_said(nears: tuple[float, float], mus: tuple[float, float], off: float) -> None:
    """Eight ulps of each of Mills' ratios, sixteen of the whole, and four for each b·(1 + |a|)."""
    source = np.random.default_rng(51)
    ratios = []
    with mpmath.workdps(40):
        for _ in range(COUNT):
            near, mu = source.uniform(*nears), source.uniform(*mus)
            epsilon, first, second, log = exactly(near, mu)
            found = float(log_delta(epsilon, np.array([mu]))[0])
            b = near + mu
            said = 8 * ULP * (first + second) / (first - second) + ULP * (16 + 4 * b * (1 + abs(near)))
            ratios.append(float((mpmath.mpf(found) - log) / said))
    assert min(ratios) > 0
    assert np.mean(ratios) == pytest.approx(1.0, abs=off)


def test_the_simple_bound_is_rounded_up_by_what_is_said() -> None:
    """μ/√(2π) for tiny μ at ε = 0: four ulps, and two of its logarithm.

    These are 40 to 56 ulps of 1, of which a number near 20 has 16: over such a range their rounding is 0 on average.
    """
    mus = np.exp(-np.linspace(18.0, 26.0, COUNT))
    found, half = log_delta(0.0, mus), 0.5 * math.log(2 * math.pi)
    slack, said = found - (np.log(mus) - half), ULP * (4 + 2 * np.abs(np.log(mus)))
    assert np.mean(slack) / np.mean(said) == pytest.approx(1.0, abs=0.004)
    with mpmath.workdps(40):
        exact = [mpmath.log(float(mu)) - mpmath.log(2 * mpmath.pi) / 2 for mu in mus]
    assert all(float(one) >= least for one, least in zip(found, exact, strict=True))


def test_an_average_over_one_is_rounded_up_by_nine_ulps_and_two_of_its_logarithm() -> None:
    mus = np.random.default_rng(53).uniform(1.0, 3.0, COUNT)
    ratios = []
    for mu in mus.tolist():
        alone = float(log_delta(mu * mu / 2, np.array([mu]))[0])
        slack = log_average(mu * mu / 2, np.array([mu]), np.ones(1)) - alone
        ratios.append(slack / (ULP * (9 + 2 * abs(alone))))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.01)


def test_delta_and_an_average_are_at_most_1() -> None:
    assert log_delta(0.0, np.array([40.0]))[0] == 0.0
    assert log_average(0.0, np.full(3, 40.0), np.array([0.5, 0.25, 0.25])) == 0.0
    half = log_average(0.0, np.full(1, 40.0), np.array([0.5]))
    assert math.log(0.5) < half < math.log(0.5) * (1 - 1e-14)
