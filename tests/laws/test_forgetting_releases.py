"""Models released before, between and after requests: claims lie above exact joint laws, and above chains from any start."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.chain import Chain
from lastiterate.auditing.quadratic import steps_of
from lastiterate.forgetting.requests import Requests, adaptive_process, forgetting_process
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee


def quadratic_run(**more: object) -> li.Run:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.2, gradient_sensitivity=2.0, gradient_norm=1.0)
    given = {"batches": li.FullBatch(records=10), "steps": 8, "step_size": 0.3, "noise": li.OnMeanGradient(std=0.4)}
    return li.Run(loss=loss, **{**given, **more})  # type: ignore[arg-type]


def mu_of(guarantee: Guarantee) -> float:
    assert isinstance(guarantee.notion, li.notions.GaussianDP)
    return guarantee.notion.mu


def exact_joint_mu(run: li.Run, requests: Requests) -> float:
    """Of all released iterates together: two Gaussians in as many dimensions, from their means and their covariance."""
    steps = steps_of(run.continued(sum(requests.steps)), 0.2)
    last, whole = run.steps + sum(requests.steps[:-1]), run.steps + sum(requests.steps)
    gone = np.repeat(np.cumsum((0, *requests.removals)), (run.steps, *requests.steps))
    if requests.separate:
        gone = np.where(np.arange(whole) < last, 0, requests.records)
    seen = [*(place for place in requests.releases if place < len(gone)), len(gone)]
    mean, noise = 0.0, np.zeros(len(gone))  # of the iterate: its mean, and how much of each step's noise is in it
    means, rows = [], []
    for step, (factor, push, std) in enumerate(zip(steps.factor, steps.push, steps.noise, strict=True)):
        mean, noise = factor * mean + (requests.records - gone[step]) * push, factor * noise
        noise[step] = std
        if step + 1 in seen:
            means.append(mean)
            rows.append(noise.copy())
    covariance = np.array(rows) @ np.array(rows).T
    return math.sqrt(np.array(means) @ np.linalg.solve(covariance, np.array(means)))


RELEASED = {
    "the trained model": Requests((1,), (6,), (8,)),
    "inside training": Requests((2,), (6,), (3, 5)),
    "while it forgets": Requests((1,), (6,), (10, 12)),
    "after each request": Requests((1, 2, 1), (4, 3, 5), (12, 15)),
    "all of them": Requests((1, 1), (4, 4), (2, 8, 10, 12, 14)),
    "after each request, of the last alone": Requests((3, 2, 1), (4, 3, 5), (12, 15), separate=True),
    "the last alone": Requests((3, 2), (4, 5), (), separate=True),
}


@pytest.mark.parametrize("name", RELEASED)
def test_joint_claims_are_exact_for_full_batches(name: str) -> None:
    run, requests = quadratic_run(), RELEASED[name]
    claimed = mu_of(SHIFT_ENGINE.apply(forgetting_process(run, requests)))
    exact = exact_joint_mu(run, requests)
    assert exact <= claimed * (1 + 1e-12)
    assert claimed == pytest.approx(exact, rel=1e-9)


def test_later_models_cost_nothing_and_earlier_ones_are_not_taken_back() -> None:
    """The model after the first request and all later ones together say as much of its record as that model alone."""
    run = quadratic_run()
    alone = mu_of(SHIFT_ENGINE.apply(forgetting_process(run, Requests((1,), (4,), ()))))
    assert mu_of(SHIFT_ENGINE.apply(forgetting_process(run, Requests((1,), (9,), (12, 14, 16))))) == pytest.approx(
        alone, rel=1e-12
    )
    for more in (0, 3, 300):  # the second record was in the model that the first request released
        released = exact_joint_mu(run, Requests((1, 1), (4, more), (12,)))
        assert mu_of(SHIFT_ENGINE.apply(forgetting_process(run, Requests((1, 1), (4, more), (12,))))) >= released * (
            1 - 1e-12
        )
        assert released > 2 * alone


def test_given_everything_before_it_is_exact_for_a_chain_far_from_the_boundary() -> None:
    """From the two ends of the domain, steps x ← 0.94·x: noise of 0.12 does not lead back to a boundary at 50."""
    run = quadratic_run(domain=li.Ball(radius=50.0))
    for further in (40, 80):
        steps = steps_of(run.continued(further), 0.2).factor[-further:], run.process.noise[0]
        carried, total = float(np.prod(steps[0])), sum(float(steps[0][0]) ** (2 * j) for j in range(further))
        exact = 100.0 * carried / (steps[1] * math.sqrt(total))
        assert mu_of(SHIFT_ENGINE.apply(adaptive_process(run, Requests((1,), (further,))))) == pytest.approx(
            exact, rel=1e-9
        )


@pytest.mark.parametrize("radius", [0.5, 1.5, 4.0])
def test_given_everything_before_chains_that_bend_stay_below(radius: float) -> None:
    """The model at the request is at one end of the interval, that of the run without the record at the other."""
    run = li.Run(
        loss=li.losses.general(smoothness=0.9, strong_convexity=0.0, gradient_sensitivity=0.3),
        batches=li.FullBatch(records=1),
        step_size=1.0,
        noise=li.OnIterate(std=1.0),
        steps=3,
        domain=li.Ball(radius=radius),
    )

    def without(x: np.ndarray) -> np.ndarray:
        return np.asarray(x - 0.5 * np.tanh(x) - 0.4 * np.tanh(x - 1))

    def to(end: float) -> object:
        return lambda x: np.full_like(x, end)

    epsilons = np.array([0.0, 0.1, 0.5, 1.0])
    for further in (1, 2, 5, 12):
        hazard = np.repeat([1.0, 0.0], [1, further])
        ends = to(radius + 40), to(-radius - 40)
        chain = Chain(without, *ends, np.ones(1 + further), hazard, -radius, radius, cells=160)  # type: ignore[arg-type]
        exact, error = chain.delta_with_error(epsilons)
        claimed = np.asarray(
            SHIFT_ENGINE.apply(adaptive_process(run, Requests((1,), (further,)))).notion.delta(epsilons)
        )
        assert (exact - error <= claimed).all()
        assert further > 1 or exact[0] > 0.3 * claimed[0]


def test_given_everything_before_no_request_depends_on_what_training_was_like() -> None:
    run = quadratic_run(domain=li.Ball(radius=2.0))
    found = [
        mu_of(SHIFT_ENGINE.apply(adaptive_process(one, Requests((1,), (30,)))))
        for one in (run, run.first(1), run.continued(400))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0] == pytest.approx(found[2], rel=1e-12)
    later = mu_of(SHIFT_ENGINE.apply(adaptive_process(run, Requests((1, 3, 1), (7, 2, 30)))))
    assert later == pytest.approx(found[0], rel=1e-12)


def test_given_everything_before_rounding_counts_on_both_sides() -> None:
    run = quadratic_run(domain=li.Ball(radius=2.0))
    stray = replace(run, arithmetic=li.training.Arithmetic(1.0, 1e-4))
    without, stayed = (
        SHIFT_ENGINE.apply(adaptive_process(one, Requests((1,), (60,)))).notion.delta(0.01) for one in (run, stray)
    )
    assert stayed > without


@pytest.mark.parametrize(
    "batches",
    [
        li.Cyclic(records=40, batch_size=10),
        li.Shuffled(records=40, batch_size=10),
        li.FixedSize(records=40, batch_size=10),
        li.Poisson(records=40, rate=0.25),
        li.BallsAndBins(records=40, batches=4),
    ],
)
def test_given_everything_before_any_batches_are_as_good_as_their_lipschitz_constant(batches: object) -> None:
    """Nothing pushes: both runs take the same steps."""
    run = quadratic_run(batches=batches, domain=li.Ball(radius=2.0))
    factor, noise = run.process.contraction, float(run.process.noise[0])
    exact = 4 * factor**12 / (noise * math.sqrt(sum(factor ** (2 * j) for j in range(12))))
    assert mu_of(SHIFT_ENGINE.apply(adaptive_process(run, Requests((1,), (12,))))) == pytest.approx(exact, rel=1e-6)
