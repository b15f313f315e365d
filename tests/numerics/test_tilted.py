"""Moment generating functions of normal-mixture ratios: certified errors hold, and so do the bounds on their decay."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from lastiterate.numerics.contour import log_decay
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
    Family,
    Shape,
)
from lastiterate.numerics.tilted import Tilted, tilted

SHAPES = [MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, MIXTURE_OVER_MIRROR, SYMMETRISED]
SETTINGS = [(1.0, 0.01, 0.7, 6.0), (1.0, 0.01, 6.0, 25.0), (0.3, 0.2, 12.0, 30.0), (3.0, 0.05, 0.8, 4.0)]


def family(shape: Shape, mode: float, weight: float, count: float = 1e4) -> Family:
    return Family(shape, np.array([mode]), np.array([weight]), np.array([count]))


def exact_mgf(shape: Shape, mode: float, weight: float, s: complex) -> mp.mpc:
    m, q = mp.mpf(mode), mp.mpf(weight)

    def u(x: mp.mpf, sign: int) -> mp.mpf:
        return 1 - q + q * mp.exp(sign * m * x - m * m / 2)

    def integrand(x: mp.mpf) -> mp.mpc:
        if shape is MIXTURE_OVER_NORMAL:
            return mp.npdf(x) * u(x, 1) ** (1 + s)
        if shape is NORMAL_OVER_MIXTURE:
            return mp.npdf(x) * u(x, 1) ** (-s)
        if shape is MIXTURE_OVER_MIRROR:
            return mp.npdf(x) * u(x, 1) ** (1 + s) * u(x, -1) ** (-s)
        return mp.npdf(x) * (u(x, 1) ** (1 + s) + u(x, 1) ** (-s))

    right = 14 + float((1 + abs(complex(s).real) * 2) * mode)
    if shape is not SYMMETRISED:
        return mp.quad(integrand, mp.linspace(-14 - right / 2, right, 60))
    atom = 1 - q * mp.ncdf(m / 2) - (2 - q) * mp.ncdf(-m / 2)
    return atom + mp.quad(integrand, mp.linspace(m / 2, right, 50))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mode", "weight", "abscissa", "frequency"), SETTINGS)
def test_values_lie_within_their_certified_errors(
    shape: Shape, mode: float, weight: float, abscissa: float, frequency: float
) -> None:
    tilt = tilted(family(shape, mode, weight), abscissa, frequency, -38.0)
    with mp.workdps(25):
        at_real = exact_mgf(shape, mode, weight, mp.mpf(abscissa))
        at_complex = exact_mgf(shape, mode, weight, mp.mpc(abscissa, frequency))
        real_error = float(abs(mp.log(at_real) - mp.mpf(float(tilt.log_mgf[0]))))
        assert real_error <= float(tilt.log_mgf_error[0])
        for computed in (tilt.on_grid(frequency / 8, 8)[-1, 0], tilt.on_octaves(frequency / 4, 1, 3)[-1, 0]):
            error = float(abs(at_complex / at_real - 1 - mp.mpc(complex(computed))))
            assert error <= float(tilt.ratio_error(np.full(8, frequency))[-1, 0])
    assert tilt.log_mgf_error[0] < 1e-12


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mode", "weight", "abscissa", "frequency"), SETTINGS)
def test_decay_bound_lies_above_the_measured_modulus(
    shape: Shape, mode: float, weight: float, abscissa: float, frequency: float
) -> None:
    frequencies = frequency * np.geomspace(0.01, 30.0, 25)
    tilt = tilted(family(shape, mode, weight), abscissa, float(frequencies[-1]), -30.0)
    bounds = log_decay(tilt, frequencies)[:, 0]
    assert (np.diff(bounds) <= 1e-12).all()
    for omega, bound in zip(frequencies, bounds, strict=True):
        assert math.log(abs(1 + complex(tilt.on_grid(float(omega), 1)[0, 0]))) <= bound + 1e-12


def test_a_family_answers_for_each_of_its_ratios() -> None:
    together = Family(MIXTURE_OVER_NORMAL, np.array([0.5, 1.0]), np.array([0.1, 0.01]), np.array([10.0, 1000.0]))
    joint = tilted(together, 2.0, 10.0, -34.0)
    for i, (mode, weight) in enumerate(((0.5, 0.1), (1.0, 0.01))):
        alone: Tilted = tilted(family(MIXTURE_OVER_NORMAL, mode, weight), 2.0, 10.0, -34.0)
        assert math.isclose(joint.log_mgf[i], alone.log_mgf[0], rel_tol=1e-11)
        assert abs(joint.on_grid(5.0, 2)[1, i] - alone.on_grid(5.0, 2)[1, 0]) < 1e-13
