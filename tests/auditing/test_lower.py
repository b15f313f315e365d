"""Lower bounds where they once were wrong: tails, many steps, what a run allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.chain import Chain, iid_hazard

GENERAL = li.losses.general(smoothness=0.1, strong_convexity=0.1, gradient_sensitivity=1.0)


@pytest.mark.parametrize(
    "batches",
    [
        li.FullBatch(records=10),
        li.Cyclic(records=10, batch_size=10),
        li.Shuffled(records=10, batch_size=10),
        li.Shuffled(records=10, batch_size=10, each_epoch=False),
        li.FixedSize(records=10, batch_size=10),
    ],
    ids=repr,
)
def test_one_mechanism_by_five_names(batches: object) -> None:
    """A batch of all records is a full batch; Ye2022's bound for passes needs two batches."""
    run = li.Run(GENERAL, batches, 1.0, li.OnIterate(std=0.1), 1000)  # type: ignore[arg-type]
    report = li.account(run, 1e-5)
    assert report.epsilon == pytest.approx(27.395467914, rel=1e-9)
    assert report.ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("radius", [2.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6])
def test_tails_on_both_sides_of_an_interval(radius: float, delta: float) -> None:
    """One Gaussian step with μ = 1.4, projected: the upper tail must not round to nothing."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.4)
    run = li.Run(loss, li.FullBatch(records=1), 1.0, li.OnIterate(std=1.0), 1, li.Ball(radius=radius))
    exact = li.notions.GaussianDP(1.4).epsilon(delta)
    assert exact * (1 - 1e-3) <= li.lower_bound(run, delta).epsilon <= exact


def test_a_transition_is_precise_in_both_tails() -> None:
    chain = Chain(lambda x: x, lambda x: x, lambda x: x, np.ones(1), iid_hazard(1.0, 1), -20.0, 20.0, cells=40)
    matrix = chain._matrix(lambda x: 0 * x, 1.0)
    assert matrix[0] == pytest.approx(matrix[0][::-1], rel=1e-12)
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    assert matrix[0][-1] > 0


@pytest.mark.parametrize("steps", [10**4, 10**6, 10**8])
@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
def test_many_random_steps_do_not_add_up_rounding(steps: int, mu: float, delta: float) -> None:
    """Half of the batches have the record: in the limit μ-GDP, and for a finite number hardly more."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=10.0)
    batches, noise = li.FixedSize(records=20, batch_size=10), li.OnIterate(std=math.sqrt(steps) / mu / 2)
    lower = li.lower_bound(li.Run(loss, batches, 1.0, noise, steps), delta).epsilon
    limit = li.notions.GaussianDP(mu).epsilon(delta)
    assert 0.8 * limit <= lower <= limit * (1 + 10 / math.sqrt(steps))


def test_poisson_batches_of_half_the_data() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.Poisson(1000, 0.5), 1.0, li.OnIterate(std=0.4), 10**4)
    report = li.account(run, 1e-12)
    assert 0.9 * report.epsilon <= report.lower_bound.epsilon <= report.epsilon


def test_two_wells_are_as_steep_as_the_loss_may_be() -> None:
    """Nothing is known of the smoothness, but the loss is almost convex: then there are no wells."""

    def lower(weak: float) -> li.auditing.LowerBound:
        loss = li.losses.general(weak_convexity=weak, clip=1.0)
        return li.lower_bound(
            li.Run(loss, li.FullBatch(records=10), 1.0, li.OnIterate(std=1.0), 200, weight_decay=0.1), 1e-5
        )

    assert lower(1e-9).instance.code in ("quadratic_losses", "quadratic_up_to_bound")
    assert lower(1.0).epsilon > lower(1e-9).epsilon


@pytest.mark.parametrize("batches", [li.FullBatch(records=10), li.Poisson(records=10, rate=0.5)], ids=repr)
def test_a_decay_that_moves_iterates_apart_has_no_instance(batches: object) -> None:
    run = li.Run(
        li.losses.logistic(feature_norm=1.0),
        batches,
        1.0,
        li.OnIterate(std=1.0),
        10**4,
        weight_decay=100.0,  # type: ignore[arg-type]
    )
    assert li.lower_bound(run, 1e-5).epsilon == 0.0


def test_large_pushes_are_no_trouble() -> None:
    for batches in (li.FixedSize(records=10, batch_size=10), li.Shuffled(records=10, batch_size=1)):
        run = li.Run(li.losses.logistic(feature_norm=1.0), batches, 1.0, li.OnIterate(std=1e-3), 10)
        assert li.lower_bound(run, 1e-5).epsilon > 20


def test_noise_far_too_small_is_still_answered() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.Poisson(10, 0.5), 1.0, li.OnIterate(std=4e-5), 10**6)
    report = li.account(run, 1e-6)
    assert report.lower_bound.epsilon <= report.epsilon < math.inf


@pytest.mark.parametrize(
    "batches", [li.Shuffled(100, 30, last="smaller"), li.Cyclic(100, 30, last="smaller")], ids=repr
)
@pytest.mark.parametrize("optimizer", [li.SGD(momentum=0.9), li.Adam()], ids=repr)
def test_smaller_last_batches_with_an_optimiser_have_no_instance_but_a_page(batches: Any, optimizer: Any) -> None:
    run = li.Run(li.losses.network(clip=1.0), batches, 0.1, li.OnGradientSum(1.0, 1.0), 8, optimizer=optimizer)
    report = li.account(run, 1e-5)
    assert report.lower_bound.epsilon <= report.epsilon
    assert "epsilon = " in str(report)


@pytest.mark.parametrize("beyond", [0, 3])
@pytest.mark.parametrize(
    "batches",
    [
        li.FullBatch(records=100),
        li.Cyclic(records=100, batch_size=20),
        li.Shuffled(records=100, batch_size=20),
        li.Shuffled(records=100, batch_size=20, each_epoch=False),
        li.FixedSize(records=100, batch_size=20),
        li.Poisson(records=100, rate=0.2),
    ],
    ids=repr,
)
def test_runs_that_forget_have_the_lower_bound_of_their_last_steps(batches: object, beyond: int) -> None:
    """However long they are, and also where the last epoch is not finished; never above the upper bound."""
    loss, noise = li.losses.logistic(feature_norm=1.0, l2=0.1, clip=1.0), li.OnMeanGradient(std=0.5)
    runs = [li.Run(loss, batches, 0.5, noise, steps + beyond) for steps in (2_000, 10**8, 10**11)]  # type: ignore[arg-type]
    shorter, *longer = (li.lower_bound(run, 1e-5).epsilon for run in runs)
    assert shorter > 0.5
    assert longer == pytest.approx([shorter] * 2, rel=1e-9)
    assert longer[1] <= li.account(runs[2], 1e-5).epsilon
