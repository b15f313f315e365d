"""Kernels: coefficients by brute force, Theorem 1 on random kernels, and the implications between the conditions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import lastiterate as li
from raising import raises


def random_kernel(source: np.random.Generator, rows: int, columns: int) -> li.mechanisms.FiniteKernel:
    """Some entries 0, some rows alike."""
    matrix = source.dirichlet(np.full(columns, source.choice([0.2, 1.0, 5.0])), size=rows)
    matrix = np.where(source.random(matrix.shape) < source.choice([0.0, 0.3]), 0.0, matrix) + 1e-12
    matrix = 0.5 * matrix + 0.5 * source.dirichlet(np.ones(columns)) if source.random() < 0.5 else matrix
    return li.mechanisms.FiniteKernel(matrix / matrix.sum(axis=1, keepdims=True))


def hockey_stick(one: np.ndarray, two: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())


@pytest.mark.parametrize("seed", range(20))
def test_coefficients_are_what_their_definitions_say(seed: int) -> None:
    source = np.random.default_rng(seed)
    kernel = random_kernel(source, 5, 4)
    rows = kernel.matrix
    pairs = list(itertools.permutations(range(5), 2))
    for epsilon in (0.0, 0.3, 1.0):
        brute = max(hockey_stick(rows[x], rows[y], epsilon) for x, y in pairs)
        assert kernel.dobrushin_at(epsilon) == pytest.approx(brute, rel=1e-9, abs=1e-15)
    assert kernel.dobrushin == pytest.approx(max(0.5 * np.abs(rows[x] - rows[y]).sum() for x, y in pairs), rel=1e-9)
    common = sum(min(rows[x][y] for x in range(5)) for y in range(4))
    assert kernel.doeblin == pytest.approx(1 - common, rel=1e-9)
    witness = kernel.doeblin_witness
    assert witness is not None
    assert witness.sum() == pytest.approx(1.0)
    assert (rows >= (1 - kernel.doeblin) * witness - 1e-12).all()
    ratios = [rows[x][z] / rows[y][z] for x, y in pairs for z in range(4)]
    assert kernel.ultra_mixing == pytest.approx(1 - min(ratios), rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_the_conditions_imply_each_other_the_right_way_round(seed: int) -> None:
    """Ultra-mixing ⇒ Doeblin ⇒ Dobrushin ⇒ (γ, ε)-Dobrushin; Lemma 9 has the last one reversed (errata E3.3)."""
    kernel = random_kernel(np.random.default_rng(seed), 6, 5)
    assert kernel.ultra_mixing >= kernel.doeblin * (1 - 1e-9)
    assert kernel.doeblin >= kernel.dobrushin * (1 - 1e-9)
    assert kernel.dobrushin >= kernel.dobrushin_at(0.5) * (1 - 1e-9)


def test_lemma_9_as_printed_is_false() -> None:
    """Errata E3.3: (0, 0.5)-Dobrushin, and TV is 0.2."""
    kernel = li.mechanisms.FiniteKernel([[0.6, 0.4], [0.4, 0.6]])
    assert kernel.dobrushin_at(0.5) == 0.0
    assert kernel.dobrushin == pytest.approx(0.2)


def violations(seed: int, count: int) -> int:
    """Random pairs of laws through random kernels: the hockey-stick divergence after is never above the bound."""
    source = np.random.default_rng(seed)
    wrong = 0
    for _ in range(count):
        kernel = random_kernel(source, 4, 4)
        one, two = source.dirichlet(np.ones(4) * source.choice([0.3, 2.0]), size=2)
        epsilon = float(source.uniform(0.01, 2))
        delta = max(hockey_stick(one, two, epsilon), hockey_stick(two, one, epsilon))
        amplified = kernel.amplify((epsilon, delta))
        after = one @ kernel.matrix, two @ kernel.matrix
        for target in (epsilon, 0.7 * epsilon, 0.3 * epsilon, 1.3 * epsilon):
            exact = max(hockey_stick(*after, target), hockey_stick(*after[::-1], target))
            wrong += exact > float(amplified.delta(target)) + 1e-12
    return wrong


@pytest.mark.parametrize("seed", range(12))
def test_whole_profiles_stay_above_what_becomes_of_two_laws(seed: int) -> None:
    source = np.random.default_rng(seed)
    kernel = random_kernel(source, 5, 4)
    one, two = source.dirichlet(np.ones(5), size=2)

    def exact(pair: tuple[np.ndarray, np.ndarray], epsilons: np.ndarray) -> np.ndarray:
        worse = [max(hockey_stick(*pair, e), hockey_stick(*pair[::-1], e)) for e in np.atleast_1d(epsilons).tolist()]
        return np.minimum(np.array(worse), 1.0).reshape(np.shape(epsilons))

    before = li.notions.Profile(function=lambda epsilons: exact((one, two), epsilons))
    epsilons = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])
    after = exact((one @ kernel.matrix, two @ kernel.matrix), epsilons)
    assert (kernel.amplify(before).delta(epsilons) >= after - 1e-12).all()


@pytest.mark.parametrize("states", [4, 40])
def test_the_ends_of_the_curve_alone_are_a_bound(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for thousands of states: chords in e^ε between total variation and what is never met."""
    fine, coarse = (random_kernel(np.random.default_rng(states), states, states) for _ in range(2))
    epsilons = np.array([0.0, 0.1, 0.7, 3.0, 50.0])
    exact = fine.mixing.curve(epsilons)
    monkeypatch.setattr("lastiterate.mechanisms.kernels._WORK", 0)
    assert (coarse.mixing.curve(epsilons) >= exact * (1 - 1e-9)).all()
    assert coarse.mixing.curve(epsilons)[[0, -1]] == pytest.approx(exact[[0, -1]], rel=1e-9)


def test_no_random_kernel_violates_theorem_1() -> None:
    assert violations(1, 400) == 0


@pytest.mark.study
def test_twenty_thousand_random_kernels() -> None:
    assert violations(2, 20_000) == 0


def test_the_curve_is_exact() -> None:
    """Errata E3.8: clause 2 is attained, by a mechanism that shows x with probability δ and the best mixture otherwise."""
    kernel = li.mechanisms.FiniteKernel([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]])
    epsilon, delta = 0.4, 0.05
    lifted = math.log1p(math.expm1(epsilon) / delta)
    x, y = max(
        itertools.permutations(range(3), 2), key=lambda pair: hockey_stick(*(kernel.matrix[i] for i in pair), lifted)
    )
    common = (1 - delta) / math.exp(epsilon)
    one, two = np.zeros(3), np.zeros(3)
    third = 3 - x - y
    one[third], two[third] = 1 - delta, common
    one[x], two[y] = delta, 1 - common
    assert hockey_stick(one, two, epsilon) == pytest.approx(delta)
    exact = hockey_stick(one @ kernel.matrix, two @ kernel.matrix, epsilon)
    assert float(kernel.amplify((epsilon, delta)).delta(epsilon)) == pytest.approx(exact, rel=1e-2)
    assert exact <= float(kernel.amplify((epsilon, delta)).delta(epsilon))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.0), (2.0, 0.2)])
def test_no_clause_of_theorem_1_is_better(epsilon: float, delta: float) -> None:
    kernel = li.mechanisms.FiniteKernel([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.3, 0.4, 0.3]])
    amplified = kernel.amplify((epsilon, delta))
    assert amplified.delta(epsilon) <= kernel.dobrushin * delta * (1 + 1e-9)
    for gamma, clause in ((kernel.doeblin, "doeblin"), (kernel.ultra_mixing, "ultra")):
        reached = math.log1p(gamma * math.expm1(epsilon))
        left = math.exp(reached - epsilon)
        bound = gamma * (1 - left * (1 - delta)) if clause == "doeblin" else gamma * delta * left
        assert amplified.delta(reached) <= bound * (1 + 1e-9) + 1e-15
    assert isinstance(amplified.clause(epsilon), li.mechanisms.Clause)
    assert "exact curve" in li.mechanisms.Clause.CURVE.value


def test_whole_profiles_and_powers() -> None:
    kernel = li.mechanisms.FiniteKernel([[0.7, 0.3], [0.2, 0.8]])
    before = li.notions.GaussianDP(1.0)
    once, often = kernel.amplify(before), (kernel**10).amplify(before)
    epsilons = np.array([0.0, 0.5, 1.0])
    assert (once.delta(epsilons) < before.delta(epsilons)).all()
    assert (often.delta(epsilons) <= once.delta(epsilons)).all()
    assert (kernel @ kernel).matrix == pytest.approx((kernel**2).matrix)
    assert once.epsilon(1e-3) < before.epsilon(1e-3)
    assert 0.5**200 <= (kernel**200).dobrushin < 1e-9


def test_a_chain_of_more_than_a_thousand_states() -> None:
    """A lazy walk on a ring, sparse: mixing over time."""
    size = 1200
    places = np.arange(size)
    rows = np.tile(places, 3)
    columns = np.concatenate([places, (places + 1) % size, (places - 1) % size])
    walk = li.mechanisms.FiniteKernel(
        csr_array((np.repeat([0.5, 0.25, 0.25], size), (rows, columns)), shape=(size, size))
    )
    later = walk**1_000_000
    assert later.amplify((1.0, 0.01)).delta(0.9) < 1e-6
    assert walk.doeblin == 1.0
    assert later.doeblin < 0.8
    assert later.ultra_mixing < 1.0


def test_gaussian_kernels() -> None:
    kernel = li.mechanisms.GaussianKernel(noise=1.0, diameter=2.0)
    amplified = kernel.amplify((1.0, 0.01))
    assert 0 < float(amplified.delta(1.0)) < 0.01
    assert float(amplified.delta(1.0)) == pytest.approx(
        0.01 * float(li.notions.GaussianDP(2.0).delta(math.log1p(math.expm1(1.0) / 0.01))), rel=1e-6
    )
    flatter = li.mechanisms.LipschitzGaussianKernel(noise=1.0, diameter=2.0, lipschitz=0.5)
    assert float(flatter.amplify((1.0, 0.01)).delta(1.0)) < float(amplified.delta(1.0))


def test_kernels_run() -> None:
    kernel = li.mechanisms.FiniteKernel([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5]])
    drawn = kernel.sample(np.zeros(20_000, int), seed=1)
    assert not drawn.private
    states = drawn.value
    assert np.bincount(states, minlength=3) / 20_000 == pytest.approx([0.7, 0.3, 0.0], abs=0.015)
    assert kernel.sample([0, 1]).private
    assert kernel.sample([]).value.shape == (0,)
    noisy = (
        li.mechanisms.LipschitzGaussianKernel(noise=2.0, diameter=1.0, lipschitz=0.5, map=lambda x: x / 2)
        .sample(np.ones(20_000))
        .value
    )
    assert noisy.mean() == pytest.approx(0.5, abs=0.08)
    assert noisy.std() == pytest.approx(2.0, abs=0.06)


def test_nothing_is_claimed_from_rounding_or_beyond_the_range_of_floats() -> None:
    """Zeros in a kernel, huge ε, entries of any size: δ never falls below what it is."""
    kernel = li.mechanisms.FiniteKernel([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    assert (kernel.amplify((1.0, 0.01)).delta(np.array([1.0, 700.0, 701.0, 800.0, 1e4])) >= 0.005).all()
    assert kernel.amplify((1.0, 0.01)).epsilon(0.004) == math.inf
    assert kernel.amplify(li.notions.GaussianDP(40.0)).delta(750.0) > 0.4
    assert li.mechanisms.FiniteKernel([[1.0, 0.0], [1.0, 7e-26]]).amplify((0.0, 1.0)).delta(0.0) >= 7e-26
    steep = li.mechanisms.FiniteKernel([[1 - 1e-310, 1e-310], [1e-310, 1 - 1e-310]])
    assert steep.amplify((650.0, 0.5)).delta(699.9) > 0.4
    assert steep.dobrushin_at(800.0) > 0.9


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[0.5, 0.4]], "Row 0 sums to 0.9"),
        ([[1.5, -0.5]], "matrix"),
        ([[math.nan, 1.0]], "matrix"),
        ([0.5, 0.5], "rows and columns"),
        ([[]], "rows and columns"),
        ("abc", "matrix"),
    ],
)
def test_bad_matrices(matrix: object, said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.mechanisms.FiniteKernel(matrix)


def test_what_does_not_fit_together() -> None:
    wide = li.mechanisms.FiniteKernel([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])
    for wrong in (lambda: wide @ wide, lambda: wide**2, lambda: wide.sample([5]), lambda: wide.amplify("good")):
        with pytest.raises(li.errors.InvalidInput):
            wrong()
    with raises("must_be", "map", kind=li.errors.InvalidInput):
        li.mechanisms.LipschitzGaussianKernel(noise=1.0, diameter=1.0).sample([0.0])
