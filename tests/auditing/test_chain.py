"""Exact chains against closed forms, and every theorem against exact chains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.tightness.against_chain import compared

import lastiterate as li
from lastiterate.auditing.chain import Chain, cyclic_hazard, iid_hazard, shuffled_hazard
from lastiterate.auditing.instances import random_instance
from lastiterate.auditing.sums import Pushed, RandomSum
from lastiterate.testing.exact_laws import EPSILONS, ROUNDING


def linear(factor: float, push: float, hazard: np.ndarray, width: float = 60.0, per_epoch: int = 1) -> Chain:
    return Chain(
        lambda x: factor * x,
        lambda x: factor * x + push,
        lambda x: factor * x,
        np.ones(len(hazard)),
        hazard,
        -width / 2,
        width / 2,
        per_epoch=per_epoch,
        cells=1500,
    )


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.0])
def test_a_linear_chain_is_a_gaussian_mechanism(factor: float) -> None:
    steps, push = 12, 0.4
    gap = push * sum(factor**j for j in range(steps))
    exact = li.notions.GaussianDP(gap / math.sqrt(sum(factor ** (2 * j) for j in range(steps))))
    chain = linear(factor, push, iid_hazard(1.0, steps))
    epsilons = np.array([0.0, 0.5, 1.0, 2.0])
    assert chain.delta(epsilons) == pytest.approx(exact.delta(epsilons), abs=2e-4)
    deltas, error = chain.delta_with_error(epsilons)
    assert (np.abs(deltas - exact.delta(epsilons)) <= 3 * error + 1e-12).all()


def test_one_sampled_step_is_the_subsampled_gaussian() -> None:
    chain = linear(1.0, 0.8, iid_hazard(0.2, 1), width=40.0)
    one = li.notions.subsampled_gaussian(
        mu=0.8, inclusion=0.2, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    assert chain.delta(np.array([0.1])) == pytest.approx(one.delta(0.1), rel=1e-3)


def test_the_two_ways_to_compute_a_linear_chain_agree() -> None:
    by_grid = linear(0.9, 0.5, iid_hazard(0.1, 60)).epsilon(1e-6)
    weights = 0.9 ** np.arange(60.0)[:, None]
    pushes = RandomSum(weights, np.full(weights.shape, 0.1), math.sqrt(float(np.square(weights).sum())))
    assert Pushed(pushes, 0.5, 0.0).epsilon(1e-6) == pytest.approx(by_grid, rel=1e-3)


def test_a_power_of_the_kernel_is_as_good_as_its_steps() -> None:
    hazard = iid_hazard(0.2, 100)
    for cells in (60, 600):
        chain = Chain(lambda x: x, lambda x: x + 0.3, lambda x: x, np.ones(100), hazard, -1.5, 1.5, cells=cells)
        assert chain._after_many() == pytest.approx(chain._by_steps(), abs=1e-12 if cells == 60 else 1e-5)
        assert chain.laws[0].sum() == pytest.approx(1.0, abs=1e-9)


def test_in_a_new_order_the_record_has_one_turn_an_epoch() -> None:
    """Two batches: the average of both fixed orders, for one epoch."""
    shuffled = linear(0.7, 0.9, shuffled_hazard(2, 2), per_epoch=2).laws[0]
    orders = [linear(0.7, 0.9, cyclic_hazard(2, place, 2), per_epoch=2).laws[0] for place in (0, 1)]
    assert shuffled == pytest.approx(sum(orders) / 2, abs=1e-12)


@pytest.mark.parametrize("seed", range(10_000, 10_036))
def test_no_theorem_is_below_an_exact_chain(seed: int) -> None:
    assert [told for *_, told in compared(seed) if told] == []


def test_instances_are_of_every_kind_and_have_the_epsilons_that_matter() -> None:
    source = np.random.default_rng(1)
    kinds = {type(random_instance(source).process.batches) for _ in range(60)}
    assert kinds == {li.FullBatch, li.Cyclic, li.Shuffled, li.Poisson, li.FixedSize}
    assert EPSILONS[0] == 0 < ROUNDING
