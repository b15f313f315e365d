"""Guarantees as their privacy-loss distributions: never below ours, alone and composed, and near."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest

import lastiterate as li
from lastiterate.adapters.dp_accounting import notion_of, privacy_loss_distribution

Relation = dp.NeighboringRelation
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=1000),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.02),
    steps=50,
)
DELTAS = [0.3, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12]
POISSON = li.Run(
    loss=li.losses.network(clip=1.0),
    batches=li.Poisson(records=10_000, rate=0.01),
    step_size=0.1,
    noise=li.OnGradientSum(multiplier=1.0, clip=1.0),
    steps=1000,
    adjacency=li.ADD_OR_REMOVE_ONE,
)
SHUFFLED = li.Run(RUN.loss, li.Shuffled(records=1000, batch_size=100), 0.5, li.OnMeanGradient(std=0.1), steps=100)
GUARANTEES: dict[str, Any] = {
    "perfect": li.notions.GaussianDP(0.0),
    "gaussian 0.1": li.notions.GaussianDP(0.1),
    "gaussian 1": li.notions.GaussianDP(1.0),
    "gaussian 3": li.notions.GaussianDP(3.0),
    "pure": li.notions.Profile(epsilons=[1.0], deltas=[0.0]),
    "approximate": li.notions.Profile(epsilons=[0.7], deltas=[1e-6]),
    "laplace": notion_of(dp.LaplaceDpEvent(1.0), Relation.REPLACE_ONE),
    "subsampled": li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01),
    "composed": li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(1000),
    "run": li.account(RUN, 1e-5),
}


@pytest.mark.parametrize(
    ("name", "interval"), [*((name, 1e-3) for name in GUARANTEES), ("gaussian 1", 1e-4), ("pure", 1e-4), ("run", 1e-2)]
)
def test_exported_distributions_are_never_below_ours_and_near(name: str, interval: float) -> None:
    guarantee = GUARANTEES[name]
    notion = guarantee.notion if isinstance(guarantee, li.results.Report) else guarantee
    exported = privacy_loss_distribution(guarantee, interval)
    epsilons = np.append(np.linspace(0.0, 6.0, 13), interval * np.arange(1, 40, 7))
    assert (exported.get_delta_for_epsilon(np.sort(epsilons)) >= notion.delta(np.sort(epsilons))).all()
    for delta in DELTAS:
        ours, theirs = notion.epsilon(delta), exported.get_epsilon_for_delta(delta)
        assert theirs >= ours
        if np.isfinite(ours) and delta >= 1e-9:
            assert theirs <= ours * (1 + 1e-3) + 2 * interval


@pytest.mark.parametrize("run", [POISSON, SHUFFLED], ids=["poisson", "shuffled"])
def test_a_few_dots_of_a_slow_profile_are_never_below_it_and_near(run: li.Run) -> None:
    report = li.account(run, 1e-5)
    exported = privacy_loss_distribution(report, 1e-3)
    assert exported.get_epsilon_for_delta(1e-5) <= report.epsilon * (1 + 1e-4) + 1e-3
    for delta in (1e-2, 1e-5, 1e-8, 1e-12):
        ours = min(one.epsilon(delta) for one in report.guarantees)
        assert ours <= exported.get_epsilon_for_delta(delta) <= ours * (1 + 1e-3) + 1e-3


def test_what_rounding_adds_is_exported() -> None:
    """Its profile is not convex, so that the chain may be sharper than the profile, but not than a run without rounding."""
    rounded = li.account(replace(POISSON, arithmetic=li.training.Arithmetic(1.00001, 2.0**-15)), 1e-5)
    exported = privacy_loss_distribution(rounded, 1e-3).get_epsilon_for_delta(1e-5)
    assert li.account(POISSON, 1e-5).epsilon < exported <= rounded.epsilon * (1 + 1e-4) + 1e-3


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_composed_distributions_are_never_below_the_exact_composition(mu: float) -> None:
    exported = privacy_loss_distribution(li.notions.GaussianDP(mu), 1e-3)
    for times in (2, 10):
        exact = li.notions.GaussianDP(mu).compose(times)
        composed = exported.self_compose(times)
        for delta in (1e-2, 1e-5, 1e-8):
            assert exact.epsilon(delta) <= composed.get_epsilon_for_delta(delta) <= exact.epsilon(delta) * 1.001 + 1e-3


def test_exported_distributions_compose_with_theirs() -> None:
    exported = privacy_loss_distribution(li.notions.GaussianDP(1.0, li.ZERO_OUT), 1e-3)
    theirs = dp.pld.privacy_loss_distribution.from_gaussian_mechanism(0.5, value_discretization_interval=1e-3)
    both = exported.compose(theirs).get_epsilon_for_delta(1e-5)
    exact = li.notions.GaussianDP(5**0.5).epsilon(1e-5)
    assert exact <= both <= exact * 1.0001


def test_every_grid_point_of_a_gaussian_is_above() -> None:
    """Where the dots lie, the chain has no slack but that for rounding."""
    guarantee = li.notions.GaussianDP(1.5)
    exported = privacy_loss_distribution(guarantee, 1e-3)
    epsilons = 1e-3 * np.arange(0, 9000, 13)
    deltas = np.asarray(guarantee.delta(epsilons))
    assert (exported.get_delta_for_epsilon(epsilons) >= deltas).all()
    for epsilon, delta in zip(epsilons[1::60], deltas[1::60], strict=True):
        assert exported.get_epsilon_for_delta(delta) >= epsilon * (1 - 1e-13)
