"""Lattice sums: exact instances lie inside, also far in the tail."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from lastiterate.numerics.discretise import Ratio, from_above, from_below
from lastiterate.numerics.lattice import DirectSum, LatticeSum, Masses
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
    Shape,
)
from lastiterate.numerics.normal_gap import log_gap


def randomised_response_excess(steps: int, loss: float, threshold: float) -> mp.mpf:
    """k-fold randomised response, whose total loss is loss·(2·Binomial − k): summed exactly."""
    with mp.workdps(40):
        p = mp.exp(loss) / (1 + mp.exp(loss))
        total = mp.mpf(0)
        for j in range(steps + 1):
            x = mp.mpf(loss) * (2 * j - steps)
            if x > threshold:
                total += mp.binomial(steps, j) * p**j * (1 - p) ** (steps - j) * (1 - mp.exp(threshold - x))
        return total


@pytest.mark.parametrize("steps", [1, 10, 300])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_randomised_response_lies_in_the_bracket(steps: int, share: float) -> None:
    loss = 0.5
    p = math.exp(loss) / (1 + math.exp(loss))
    total = LatticeSum((Masses(-loss, loss, np.array([1 - p, 0.0, p])),), (steps,))
    threshold = share * steps * loss + 0.01
    tilted = total.tilt_for(threshold)
    exact = float(mp.log(randomised_response_excess(steps, loss, threshold)))
    lower, upper = tilted.log_lower(threshold), tilted.log_upper(threshold)
    assert lower <= exact <= upper
    assert upper - lower < 1e-8
    direct = DirectSum.of(total, -steps * loss - 1e-9, steps * loss + 1e-9).log_upper(threshold)
    assert exact <= direct <= exact + 1e-9
    assert DirectSum.of(total, -loss, threshold + 20 * loss).log_upper(threshold) >= exact


@pytest.mark.parametrize(("threshold", "width"), [(0.0, 1e-4), (1.0, 1e-4), (4.0, 1e-4), (12.0, 1e-3), (25.0, 2e-2)])
def test_composed_normals_lie_between_the_lattices(threshold: float, width: float) -> None:
    ratio, times = Ratio(MIXTURE_OVER_NORMAL, 0.5, 1.0), 16
    low, high = ratio.range(18.0)
    below = LatticeSum((from_below(ratio, 1e-3, low, high),), (times,)).tilt_for(threshold)
    above = LatticeSum((from_above(ratio, 1e-3, low, high),), (times,)).tilt_for(threshold)
    exact = float(log_gap(threshold, 2.0))
    assert below.log_lower(threshold) <= exact <= above.log_upper(threshold)
    assert above.log_upper(threshold) - below.log_lower(threshold) < width


@pytest.mark.parametrize("shape", [MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, MIXTURE_OVER_MIRROR, SYMMETRISED])
@pytest.mark.parametrize(("mode", "weight"), [(1.0, 0.01), (0.3, 0.5), (4.0, 0.1)])
def test_one_step_is_dominated_from_above_and_from_below(shape: Shape, mode: float, weight: float) -> None:
    """P(L > t) − e^t·Q(L > t), from the masses of the cells themselves, against both lattices."""
    ratio = Ratio(shape, mode, weight)
    low, high = ratio.range(9.0)
    above, below = (make(ratio, 1e-3, low, high) for make in (from_above, from_below))
    for threshold in np.linspace(0.0, 0.9 * high, 7):
        p, q = ratio.cells(np.array([threshold]))
        exact = p[1] - math.exp(threshold) * q[1]
        upper, lower = (m.masses @ np.maximum(-np.expm1(threshold - m.points), 0.0) for m in (above, below))
        assert lower <= exact * (1 + 1e-10) + 1e-15
        assert exact <= (upper + above.infinite) * (1 + 1e-10) + 1e-15


@pytest.mark.parametrize("shape", [MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, MIXTURE_OVER_MIRROR, SYMMETRISED])
def test_cells_are_probabilities_whose_ratio_lies_in_the_cell(shape: Shape) -> None:
    ratio = Ratio(shape, 1.3, 0.07)
    edges = np.linspace(*ratio.range(5.0), 50)[1:-1]
    p, q = ratio.cells(edges)
    assert math.isclose(p.sum() + ratio.atom, 1.0, rel_tol=1e-12)
    assert math.isclose(q.sum() + ratio.atom, 1.0, rel_tol=1e-12)
    inside = (p[1:-1] > 1e-12) & (edges[:-1] * edges[1:] > 0)
    log_ratio = np.log(p[1:-1][inside] / q[1:-1][inside])
    assert (log_ratio >= edges[:-1][inside] - 1e-9).all()
    assert (log_ratio <= edges[1:][inside] + 1e-9).all()


def test_mass_at_infinity_is_counted_above_only() -> None:
    total = LatticeSum((Masses(0.0, 0.1, np.array([0.5, 0.4]), 0.1),), (3,))
    tilted = total.tilt_for(0.05)
    assert math.exp(tilted.log_upper(0.05)) >= 1 - 0.9**3
    assert math.exp(tilted.log_lower(0.05)) < 1 - 0.9**3


@pytest.mark.parametrize("t", [-1.0, -0.05, 0.02, 0.4, 2.0])
def test_symmetrised_ratio_is_the_law_of_bok2024_proposition_d4(t: float) -> None:
    """F_Y(t) as printed there, with ε± = log((p − 1 + e^{±t})/p); Lemma D.2 as corrected (errata E4.5)."""
    mu, p = 1.2, 0.3
    ratio = Ratio(SYMMETRISED, mu, p)
    inner = math.log((p - 1 + math.exp(abs(t))) / p)
    positive = p * ndtr(inner / mu - mu / 2) + (1 - p) * ndtr(inner / mu + mu / 2)
    printed = positive if t > 0 else ndtr(-inner / mu - mu / 2)
    below = ratio.cells(np.array([t]))[0][0] + (ratio.atom if t > 0 else 0.0)
    assert math.isclose(below, printed, rel_tol=1e-12)
