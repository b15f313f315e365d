"""Both orders of a pair: two steps on a grid in the plane, against what is said of their composition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.auditing.chain import Chain, iid_hazard
from lastiterate.auditing.grid_steps import worse_order
from lastiterate.theorems.block_mixing import blocks_of
from lastiterate.theorems.window_tail import window_of
from processes import process

EPSILONS = np.array([0.0, 0.1, 0.3, 0.7, 1.2, 2.0])
EDGES = np.linspace(-9.0, 11.0, 801)


def normal(mean: float) -> np.ndarray:
    """The probabilities of cells; above the mean by upper tails, which keep their digits."""
    away = EDGES - mean
    return np.where(away[1:] > 0, -np.diff(ndtr(-away)), np.diff(ndtr(away)))


def mixture(rate: float, mean: float) -> np.ndarray:
    return (1 - rate) * normal(0.0) + rate * normal(mean)


def one_way(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """E_ε(P‖Q) of cells: never above that of the laws themselves."""
    return np.array([np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for epsilon in EPSILONS])


def plane(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.outer(one, two).ravel()


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("mu", [0.7, 2.0])
def test_two_poisson_steps_in_either_order_are_covered_and_met(rate: float, mu: float) -> None:
    """Removing costs more than adding; what is said is the worse of them, and no more."""
    with_record, without = mixture(rate, mu), normal(0.0)
    removed = one_way(plane(with_record, with_record), plane(without, without))
    added = one_way(plane(without, without), plane(with_record, with_record))
    said = li.notions.subsampled_gaussian(mu=mu, inclusion=rate).compose(2).delta(EPSILONS)
    assert (removed[1:] > added[1:] * 1.001).all()
    assert said == pytest.approx(np.maximum(added, removed), rel=3e-3)
    assert (said >= np.maximum(added, removed)).all()


def adaptive(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The first step in the first order; the second in whichever is worse, given what the first has shown."""
    (p, q), found = pairs[0], []
    for epsilon in EPSILONS:
        factor = math.exp(epsilon)
        of_each = [np.maximum(np.outer(p, one) - factor * np.outer(q, two), 0.0).sum(axis=1) for one, two in pairs]
        found.append(np.max(of_each, axis=0).sum())
    return np.array(found)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("mu", [0.7, 2.0])
def test_two_steps_of_fixed_size_may_be_in_different_orders(rate: float, mu: float) -> None:
    """Records whose pushes depend on the iterate: in the second step the record pushes, or its neighbour does.

    No single order of the pair covers that: two steps in the usual one are a few hundredths less.
    """
    pushed, still = mixture(rate, mu), normal(0.0)
    pairs = [(pushed, still), (still, pushed)]
    said = li.notions.subsampled_gaussian(
        mu=mu, inclusion=rate, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    told = np.asarray(said.compose(2).delta(EPSILONS))
    for (p1, q1), (p2, q2) in itertools.product(pairs, repeat=2):
        assert (told >= one_way(plane(p1, p2), plane(q1, q2))).all()
    exact = adaptive(pairs)
    assert exact[0] > 1.01 * one_way(plane(pushed, pushed), plane(still, still))[0]
    assert (told >= exact).all()
    assert (told <= 1.06 * exact).all()


def test_the_worse_order_is_found_whichever_comes_first() -> None:
    pushed, still = mixture(0.1, 3.0), normal(0.0)
    forwards, backwards = one_way(pushed, still), one_way(still, pushed)
    assert (forwards[1:] > 1.5 * backwards[1:]).all()
    assert worse_order(pushed, still, EPSILONS) == pytest.approx(forwards, rel=1e-12)
    assert worse_order(still, pushed, EPSILONS) == pytest.approx(forwards, rel=1e-12)


@pytest.mark.parametrize("record_pushes", [True, False])
@pytest.mark.parametrize("diameter", [1.0, math.inf])
def test_windows_and_blocks_cover_both_orders(record_pushes: bool, diameter: float) -> None:
    """A record that pushes one way beside one that does not push: the second law is the worse one, or the first is."""
    steps, push, rate, width = 6, 1.0, 0.3, min(diameter, 60.0)
    up, down = (push, 0.0) if record_pushes else (0.0, push)
    chain = Chain(
        lambda x: 0.7 * x,
        lambda x: 0.7 * x + up,
        lambda x: 0.7 * x + down,
        np.ones(steps),
        iid_hazard(rate, steps),
        -width / 2,
        width / 2,
        cells=240,
    )
    exact, error = chain.delta_with_error(EPSILONS)
    one, two = chain.laws
    towards = np.array([np.maximum(one - math.exp(e) * two, 0).sum() for e in EPSILONS])
    assert (towards[1] > 0.99 * exact[1]) == record_pushes
    given = process(li.FixedSize(records=10, batch_size=3), steps, push, lipschitz=0.7, diameter=diameter)
    for length in (1, 2, 6):
        assert (window_of(given, length).delta(EPSILONS) >= exact - error - 1e-13).all()
        if math.isfinite(diameter):
            assert (blocks_of(given, length).delta(EPSILONS) >= exact - error - 1e-13).all()
