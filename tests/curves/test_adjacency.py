"""An adjacency by its name is the adjacency itself, wherever one is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lastiterate as li
from raising import raises

NETWORK = li.losses.network(clip=1.0)
TAKE_ONE: dict[str, Callable[[Any], Any]] = {
    "run": lambda one: li.Run(NETWORK, li.Poisson(100, 0.1), 0.1, li.OnGradientSum(1.0, 1.0), 5, adjacency=one),
    "budget": lambda one: li.Budget(1.0, 1e-5, one),
    "gaussian": lambda one: li.notions.GaussianDP(1.0, adjacency=one),
    "averaged": lambda one: li.notions.AveragedGaussianDP(mus=[1.0], weights=[1.0], adjacency=one),
    "hidden place": lambda one: li.notions.HiddenPlaceDP(mus=[1.0], pair_mus=[[0.0]], weights=[1.0], adjacency=one),
    "profile": lambda one: li.notions.Profile(epsilons=[0.0], deltas=[0.5], adjacency=one),
    "renyi": lambda one: li.notions.RenyiDP(rho=0.5, adjacency=one),
    "trade-off": lambda one: li.notions.TradeOff(type_i_errors=[0.0, 1.0], type_ii_errors=[1.0, 0.0], adjacency=one),
    "balls and bins": lambda one: li.notions.BallsAndBinsDP(1.0, 4, adjacency=one),
    "subsampled": lambda one: li.notions.subsampled_gaussian(
        mu=1.0, inclusion=0.1, sampling=li.notions.POISSON, adjacency=one
    ),
}


@pytest.mark.parametrize("name", TAKE_ONE)
@pytest.mark.parametrize("adjacency", [li.ZERO_OUT, li.REPLACE_ONE])
def test_an_adjacency_may_be_given_by_its_name(name: str, adjacency: li.notions.Adjacency) -> None:
    made = TAKE_ONE[name](adjacency.name.lower())
    assert made.adjacency is TAKE_ONE[name](adjacency).adjacency is adjacency
    with raises("must_be", "adjacency"):
        TAKE_ONE[name]("zero-out")
