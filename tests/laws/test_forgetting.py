"""What is claimed of a model that has forgotten lies above exact laws of both runs: quadratics, and chains that bend."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.chain import Chain
from lastiterate.auditing.quadratic import steps_of
from lastiterate.forgetting.requests import Requests, forgetting_process
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee
from raising import raises


def proved(
    run: li.Run, removals: tuple[int, ...], further: tuple[int, ...], releases: tuple[int, ...] = ()
) -> Guarantee:
    return SHIFT_ENGINE.apply(forgetting_process(run, Requests(removals, further, releases)))


def mu_of(guarantee: Guarantee) -> float:
    assert isinstance(guarantee.notion, li.notions.GaussianDP)
    return guarantee.notion.mu


def exact_mu(run: li.Run, further: tuple[int, ...], hessian: float, gone: list[tuple[int, int]]) -> float:
    """Two Gaussians, by the update as it is written; each record has a place in an epoch, and a request that removes it."""
    steps = steps_of(run.continued(sum(further)), hessian)
    last = np.cumsum((run.steps, *further))  # after so many steps the first, the second, … request has come
    mean = variance = 0.0
    for step, (factor, push, noise) in enumerate(zip(steps.factor, steps.push, steps.noise, strict=True)):
        present = sum(step % run.batches.per_epoch == place and step < last[request] for place, request in gone)
        mean, variance = factor * mean + present * push, factor**2 * variance + noise**2
    return mean / math.sqrt(variance)


def quadratic_run(
    batches: li.FullBatch | li.Cyclic, steps: int, adjacency: object = li.REPLACE_ONE, **more: object
) -> li.Run:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.2, gradient_sensitivity=2.0, gradient_norm=1.0)
    given = {"step_size": 0.3, "noise": li.OnMeanGradient(std=0.4), **more}
    return li.Run(loss=loss, batches=batches, steps=steps, adjacency=adjacency, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.ZERO_OUT])
@pytest.mark.parametrize(("removals", "further"), [((1,), (0,)), ((1,), (7,)), ((3,), (5,)), ((1, 2, 1), (4, 0, 6))])
def test_full_batches_are_exact(adjacency: object, removals: tuple[int, ...], further: tuple[int, ...]) -> None:
    """Up to what a data set without the records is less curved than one with them."""
    run = quadratic_run(li.FullBatch(records=1000), 25, adjacency)
    gone = [(0, request) for request, count in enumerate(removals) for _ in range(count)]
    claimed, exact = mu_of(proved(run, removals, further)), exact_mu(run, further, 0.2, gone)
    assert exact <= claimed <= exact * (1 + (1e-9 if run.adjacency.replaces else 5e-3))


def test_schedules_are_continued_with_their_last_numbers_and_stay_above() -> None:
    sizes = np.linspace(0.5, 0.1, 25)
    run = quadratic_run(li.FullBatch(records=20), 25, step_size=sizes.tolist())
    assert run.continued(3).step_size == (*sizes, 0.1, 0.1, 0.1)
    for removals, further in (((1,), (9,)), ((1, 1), (3, 5))):
        gone = [(0, request) for request in range(len(removals))]
        assert exact_mu(run, further, 0.2, gone) <= mu_of(proved(run, removals, further)) * (1 + 1e-12)


@pytest.mark.parametrize("epochs", [(4, 0), (4, 1), (3, 3)])
def test_one_record_of_a_pass_is_covered_at_every_place_and_not_by_far(epochs: tuple[int, int]) -> None:
    run = quadratic_run(li.Cyclic(records=40, batch_size=8), 5 * epochs[0])
    claimed = mu_of(proved(run, (1,), (5 * epochs[1],)))
    exact = [exact_mu(run, (5 * epochs[1],), hessian, [(place, 0)]) for place in range(5) for hessian in (0.2, 1.0)]
    assert max(exact) <= claimed * (1 + 1e-12)
    assert max(exact) > 0.75 * claimed


def test_several_records_of_a_pass_are_covered_wherever_they_are() -> None:
    """All places of three records, at once and one after the other, also where the last batch is smaller."""
    for batches in (li.Cyclic(records=40, batch_size=10), li.Cyclic(records=38, batch_size=10, last="smaller")):
        run = quadratic_run(batches, 12)
        for removals, further in (((3,), (4,)), ((3,), (0,)), ((1, 1, 1), (4, 0, 8)), ((2, 1), (8, 4))):
            requests = [request for request, count in enumerate(removals) for _ in range(count)]
            claimed = mu_of(proved(run, removals, further))
            for places in product(range(4), repeat=3):
                gone = list(zip(places, requests, strict=True))
                assert exact_mu(run, further, 0.2, gone) <= claimed * (1 + 1e-12)


def test_a_claim_for_several_records_is_not_that_for_one_when_an_epoch_is_cut() -> None:
    """Where pushes grow within an epoch that a request cuts, counting the records of each step would say too little."""
    run = quadratic_run(li.Cyclic(records=40, batch_size=10), 10)
    with raises("epochs_not_whole", "steps", kind=li.errors.Unavailable, per_epoch=4):
        proved(run, (2,), (4,))
    with raises("epochs_not_whole", "steps", kind=li.errors.Unavailable):
        proved(run.first(8), (1, 1), (4, 3))


def test_what_was_released_in_training_is_not_taken_back() -> None:
    run = quadratic_run(li.FullBatch(records=20), 25)
    alone = [mu_of(proved(run, (1,), (count,))) for count in (0, 5, 10, 20, 40)]
    assert alone == sorted(alone, reverse=True)
    assert alone[-1] < alone[0] / 10
    at_the_end = mu_of(proved(run, (1,), (1000,), (25,)))
    assert at_the_end == pytest.approx(alone[0], rel=1e-9)
    before = mu_of(proved(run.first(10), (1,), (0,)))
    assert mu_of(proved(run, (1,), (1000,), (10,))) == pytest.approx(before, rel=1e-9)


def test_records_that_contribute_nothing_take_their_curvature_with_them() -> None:
    """Half of all records gone: the others are half as curved, and forget more slowly than all of them would."""
    run = quadratic_run(li.FullBatch(records=4), 25, li.ZERO_OUT)
    process = forgetting_process(run, Requests((2,), (5,)))
    assert process.lipschitz[-1] == pytest.approx(1 - 0.3 * 0.2 / 2)
    assert forgetting_process(run, Requests((1,), (5,))).lipschitz[-1] == pytest.approx(1 - 0.3 * 0.2 * 3 / 4)
    separate = Requests((1, 1), (5, 5), separate=True)
    assert forgetting_process(run, separate).lipschitz[-1] == pytest.approx(1 - 0.3 * 0.2 / 2)


@pytest.mark.parametrize(("wave", "radius"), [(2.0, 1.5), (0.7, 3.0), (5.0, 0.6)])
def test_chains_that_bend_on_an_interval_stay_below(wave: float, radius: float) -> None:
    """The record pushes by up to 0.3, another way at each point; without it a step is the gradient of a convex function."""
    training, push = 12, 0.3

    def without(x: np.ndarray) -> np.ndarray:
        return np.asarray(x - 0.5 * np.tanh(x) - 0.4 * np.tanh(x - 1))

    def record(x: np.ndarray) -> np.ndarray:
        return without(x) + push * np.sin(wave * x + 1)

    loss = li.losses.general(smoothness=0.9, gradient_sensitivity=push)
    run = li.Run(
        loss=loss,
        batches=li.FullBatch(records=1),
        step_size=1.0,
        noise=li.OnIterate(std=1.0),
        steps=training,
        domain=li.Ball(radius=radius),
    )
    epsilons = np.array([0.0, 0.05, 0.2, 0.5])
    for further in (0, 1, 3, 8):
        hazard = np.repeat([1.0, 0.0], [training, further])
        noise = np.ones(training + further)
        chain = Chain(without, record, without, noise, hazard, -radius, radius, cells=200)
        exact, error = chain.delta_with_error(epsilons)
        assert (exact - error <= forgotten_delta(run, further, epsilons)).all()


def forgotten_delta(run: li.Run, further: int, epsilons: np.ndarray) -> np.ndarray:
    return np.asarray(proved(run, (1,), (further,)).notion.delta(epsilons))
