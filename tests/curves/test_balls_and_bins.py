"""Balls and bins as a loss distribution: against the Gaussian mechanism, quadrature, chance, and itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.curves.compose import PrivacyLoss
from lastiterate.curves.hidden_participation import present_or_absent
from lastiterate.numerics.discretise import loss_from_above, loss_from_below, opposite_from_above
from lastiterate.numerics.lattice import LatticeSum
from lastiterate.numerics.lognormal_mean import lognormal_sum
from lastiterate.numerics.positive_sum import Side
from raising import raises

BINS = li.notions.BallsAndBinsDP
EPSILONS = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
X, STEP = np.linspace(-12.0, 14.0, 200_001, retstep=True)


def excess(level: np.ndarray, mu: float, share: float) -> np.ndarray:
    """E(share·Y − level)₊ for Y = e^{μx − μ²/2}: Black and Scholes."""
    positive = np.maximum(level, 1e-300)
    far = np.log(share / positive) / mu
    return np.where(level <= 0, share - level, share * ndtr(far + mu / 2) - positive * ndtr(far - mu / 2))


def by_quadrature(mu: float, batches: int, epsilon: float, count: int = 100_001) -> tuple[float, float]:
    """E(Λ − e^ε)₊ and E(1 − e^ε·Λ)₊ under Q, all but one of the variables on a grid."""
    points, step = np.linspace(-9.0, 9.0 + mu, count, retstep=True)
    ratio = np.exp(mu * points - mu**2 / 2) / batches
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi) * step
    others, weights = (ratio, density) if batches == 2 else (ratio[:, None] + ratio, np.outer(density, density))
    call, other_call = (
        float((weights * excess(math.exp(level) - others, mu, 1 / batches)).sum()) for level in (epsilon, -epsilon)
    )
    return call, math.exp(epsilon) * other_call + 1 - math.exp(epsilon)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
def test_one_bin_is_the_gaussian_mechanism(mu: float) -> None:
    """On the grid and the lattice, which it would not need."""
    above, below = (lognormal_sum(mu, 1, 1e-20, 1024, side) for side in (Side.ABOVE, Side.BELOW))
    gaussian = li.notions.GaussianDP(mu)
    for masses in (loss_from_above(above, 1.0), opposite_from_above(above, 1.0)):
        found = PrivacyLoss.of_sum(LatticeSum((masses,), (1,)), li.ADD_OR_REMOVE_ONE)
        for delta in (1e-3, 1e-6, 1e-12):
            assert 1 <= found.epsilon(delta) / gaussian.epsilon(delta) <= 1 + 1e-4
    lower = LatticeSum((loss_from_below(below, 1.0),), (1,))
    for delta in (1e-3, 1e-6, 1e-12):
        exact = gaussian.epsilon(delta)
        assert -0.05 <= lower.tilt_for(exact).log_lower(exact) - math.log(delta) <= 0
    assert 1 <= BINS(mu, 1).epsilon(1e-5) / gaussian.epsilon(1e-5) <= 1 + 1e-12


@pytest.mark.parametrize(("batches", "count"), [(2, 100_001), (3, 1_201)])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_few_bins_in_both_orders_are_what_quadrature_says(mu: float, batches: int, count: int) -> None:
    """What quadrature changes by on half as many points bounds its error."""
    found = BINS(mu, batches)
    for epsilon in (0.1, 1.0, 3.0):
        exact, rough = (by_quadrature(mu, batches, epsilon, points) for points in (count, count // 2 + 1))
        for order, truth, before in zip(found._orders, exact, rough, strict=True):
            said, error = float(order.delta(epsilon)), abs(truth - before) + 1e-13
            assert truth - error <= said <= truth * (1 + 3e-4) + error
            assert float(found.delta(epsilon)) >= said


def test_the_setting_of_the_literature_is_met() -> None:
    lower, upper = BINS(1.0, 20, 2).bracket(1e-5)
    assert 2.016 <= float(lower) <= float(upper) <= 2.053  # type: ignore[arg-type]
    assert float(upper) / float(lower) <= 1 + 1e-3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mu", "batches", "epochs"),
    [(0.05, 1, 5), (0.05, 300, 100), (0.5, 7, 30), (1.0, 1000, 10), (3.0, 20, 1)],
)
def test_brackets_are_brackets_and_between_what_is_known(mu: float, batches: int, epochs: int) -> None:
    """Poisson sampling with the same rate reveals more; so do fewer batches, more epochs, and a place that is not hidden."""
    given = BINS(mu, batches, epochs)
    deltas = np.array([1e-3, 1e-6, 1e-12])
    lower, upper = (np.asarray(end) for end in given.bracket(deltas))
    assert ((lower > 0) & (lower <= upper) & (upper <= lower * 1.1)).all()
    assert (upper <= np.asarray(li.notions.GaussianDP(mu * math.sqrt(epochs)).epsilon(deltas)) * (1 + 1e-9)).all()
    assert (lower <= np.asarray(BINS(mu, max(batches // 2, 1), epochs).epsilon(deltas))).all()
    assert (lower <= np.asarray(BINS(mu * 1.01, batches, epochs).epsilon(deltas))).all()
    assert (upper < np.asarray(given.compose(2).epsilon(deltas))).all()


@pytest.mark.parametrize(("mu", "batches"), [(1.0, 20), (0.2, 5), (2.0, 30)])
def test_finer_grids_say_the_same(mu: float, batches: int) -> None:
    """From above on ever more cells: lower, and not below what is said from below."""
    found = [
        PrivacyLoss.of_sum(
            LatticeSum((loss_from_above(lognormal_sum(mu, batches, 1e-20, cells, Side.ABOVE), batches),), (3,)),
            li.ZERO_OUT,
        ).epsilon(1e-6)
        for cells in (256, 1024, 4096)
    ]
    assert found[0] >= found[1] * (1 - 1e-7) >= found[2] * (1 - 2e-7)
    assert found[2] >= float(BINS(mu, batches, 3).bracket(1e-6)[0])  # type: ignore[arg-type]
    assert found[1] <= found[2] * (1 + 1e-4)


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
@pytest.mark.parametrize("epochs", [1, 2])
def test_chance_agrees(epochs: int, epsilon: float) -> None:
    """E_P(1 − e^ε/Λ)₊ over 400,000 draws, six standard deviations."""
    source, mu, batches, count = np.random.default_rng(7), 1.0, 20, 400_000
    total = np.zeros(count)
    for _ in range(epochs):
        x = source.standard_normal((count, batches))
        x[:, 0] += mu
        total += np.log(np.exp(mu * x - mu**2 / 2).mean(axis=1))
    drawn = np.maximum(-np.expm1(epsilon - total), 0.0)
    said, error = float(BINS(mu, batches, epochs).delta(epsilon)), 6 * float(drawn.std()) / math.sqrt(count)
    assert abs(said - float(drawn.mean())) <= error


def test_laws_on_a_grid_are_in_convex_order() -> None:
    """Σ max(value − y, 0) from below and above, for two variables by quadrature, and their means."""
    mu = 0.8
    laws = [lognormal_sum(mu, 2, 1e-20, 256, side) for side in (Side.BELOW, Side.ABOVE)]
    for level in (0.2, 1.0, 2.0, 5.0, 40.0):
        call = 2 * by_quadrature(mu, 2, math.log(level / 2))[0]
        below, above = (float(law.masses @ np.maximum(law.grid.points - level, 0.0)) for law in laws)
        assert below <= call * (1 + 1e-9) <= above * (1 + 2e-9)
        assert below >= 0.97 * call
        assert above <= call * (1 + 1e-3)
    assert float(laws[1].masses @ laws[1].grid.points) == pytest.approx(2.0, rel=1e-9)
    assert float(laws[0].masses.sum()) <= 1 <= float(laws[1].masses.sum()) <= 1 + 1e-9


def test_a_hidden_place_is_the_mixture_in_both_orders() -> None:
    source = np.random.default_rng(1)
    for _ in range(5):
        mus, weights = 10 ** source.uniform(-1, 0.5, 4), source.dirichlet(np.ones(4))
        said = np.asarray(present_or_absent(mus, weights, adjacency=li.ZERO_OUT).delta(EPSILONS))
        ratio = np.exp(mus[:, None] * X - mus[:, None] ** 2 / 2).T @ weights
        density = np.exp(-(X**2) / 2) / math.sqrt(2 * math.pi) * STEP
        for epsilon, delta in zip(EPSILONS.tolist(), said.tolist(), strict=True):
            present = float((density * np.maximum(ratio - math.exp(epsilon), 0.0)).sum())
            absent = float((density * np.maximum(1 - math.exp(epsilon) * ratio, 0.0)).sum())
            assert max(present, absent) * (1 - 1e-7) <= delta <= max(present, absent) * 1.03 + 1e-15
    with raises("present_or_absent_adjacency", "adjacency", kind=li.errors.InvalidInput):
        present_or_absent(mus, weights, adjacency=li.REPLACE_ONE)


def test_extremes_are_answered() -> None:
    assert BINS(0.0, 10).epsilon(1e-5) == 0
    assert BINS(1e-9, 10).epsilon(1e-5) <= 1e-5
    assert BINS(20.0, 10).epsilon(1e-5) == pytest.approx(li.notions.GaussianDP(20.0).epsilon(1e-5), rel=1e-9)
    assert BINS(0.5, 10**9).epsilon(1e-5) <= BINS(0.5, 10**6).epsilon(1e-5) * (1 + 1e-9)
    with raises("must_be", "batches", kind=li.errors.InvalidInput):
        BINS(1.0, 0)


@pytest.mark.parametrize(("mu", "batches"), [(4.4, 2), (6.0, 2), (7.5, 5), (8.0, 20)])
def test_large_mu_are_between_their_bins_and_the_gaussian_mechanism(mu: float, batches: int) -> None:
    """Where the ratio runs below an ulp of 1; P is at least a part 1/batches of its first bin."""
    lower, upper = BINS(mu, batches).bracket(1e-5)
    gaussian = li.notions.GaussianDP(mu)
    assert gaussian.epsilon(1e-5 * batches) - math.log(batches) - 1e-9 <= upper <= gaussian.epsilon(1e-5)
    assert 0.99 * upper <= lower <= upper
    assert BINS(mu, batches).compose(3).epsilon(1e-5) <= li.notions.GaussianDP(mu * 3**0.5).epsilon(1e-5)
