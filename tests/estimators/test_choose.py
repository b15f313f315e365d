"""The plan is chosen from public numbers by formulas that simulations of its problem confirm."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from lastiterate.training.plans import Problem, Wishes, chosen_plan
from lastiterate.training.plans.composed import MOMENTUM, full_batches, sampled_batches
from lastiterate.training.plans.passes import hidden_passes, prices
from lastiterate.training.plans.plan import Way
from lastiterate.training.plans.problem import Guess, spectrum

GUESS = Guess(curvature=0.1, score=4.0, spread=1.8, longest_step=600.0)
PROBLEM = Problem(
    records=5000,
    features=30,
    columns=1,
    mu=0.3,
    replaces=True,
    guess=GUESS,
    clip=0.3,
    change=1.0,
    smoothness=0.25,
)


@pytest.mark.parametrize("epochs", [1, 7, 40])
@pytest.mark.parametrize("batches", [1, 4, 20])
@pytest.mark.parametrize("contraction", [1.0, 0.999, 0.9])
def test_the_price_is_that_of_cyclic_batches(batches: int, epochs: int, contraction: float) -> None:
    """Against the shift engine."""
    loss = li.losses.general(smoothness=1 - contraction, strong_convexity=1 - contraction, gradient_sensitivity=1.0)
    if contraction == 1.0:
        loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0)
    run = li.Run(loss, li.Cyclic(batches, 1), 1.0, li.OnIterate(std=3.0), li.epochs(epochs))
    report = li.account(run, 1e-5)
    assert report.mu == pytest.approx(math.sqrt(_price(batches, epochs, contraction)) / 3.0, rel=1e-9)


def _price(batches: int, epochs: int, contraction: float) -> float:
    return float(prices(np.array([batches]), np.array([epochs]), np.array([contraction]))[0])


def _directions() -> np.ndarray:
    curvatures, multiplicity = spectrum(PROBLEM)
    return np.repeat(curvatures, multiplicity.astype(int))


def test_the_error_of_hidden_passes_is_what_a_simulation_finds() -> None:
    """Noisy descent on the quadratic that stands for the data, many times."""
    plan = hidden_passes(PROBLEM, Wishes(batches=4, epochs=10, step_size=2.0, l2=0.01))
    assert plan is not None
    h, source = _directions(), np.random.default_rng(0)
    noise = 1.0 * 4 / (5000 * PROBLEM.mu) * math.sqrt(_price(4, 10, 1 - 2.0 * 0.01))
    x = np.zeros((4000, len(h)))
    for _ in range(40):
        x = x - 2.0 * (h * (x - GUESS.score) + 0.01 * x + noise * source.normal(size=x.shape))
    found = float(np.mean(np.sum(h * (x - GUESS.score) ** 2, axis=1))) / 2
    assert plan.error <= found * 1.02  # the last turn costs a little less than the closed form, by what is prepaid
    assert plan.error == pytest.approx(found, rel=0.1)


def test_the_error_of_full_batches_is_what_a_simulation_finds() -> None:
    """With momentum, and the mean of the second half of the iterates."""
    plan = full_batches(PROBLEM, Wishes(epochs=40, step_size=0.7))
    assert plan is not None
    h, source = _directions(), np.random.default_rng(0)
    noise = 2 * PROBLEM.clip * math.sqrt(40) / (PROBLEM.mu * 5000)
    x, velocity, mean = (np.zeros((4000, len(h))) for _ in range(3))
    for step in range(40):
        velocity = MOMENTUM * velocity + h * (x - GUESS.score) + noise * source.normal(size=x.shape)
        x = x - 0.7 * velocity
        mean += x / 20 * (step >= 20)
    found = float(np.mean(np.sum(h * (mean - GUESS.score) ** 2, axis=1))) / 2
    assert plan.error == pytest.approx(found, rel=0.03)
    assert plan.averaged == 20


def test_the_noise_of_a_weight_does_not_depend_on_the_number_of_steps() -> None:
    """So that more full batches cost nothing but time."""
    plans = [full_batches(PROBLEM, Wishes(epochs=count)) for count in (50, 100, 200)]
    assert len({round(plan.step_size * plan.steps, 9) for plan in plans if plan is not None}) == 1


def test_the_noise_of_random_batches_is_nearly_what_is_calibrated() -> None:
    problem = replace(PROBLEM, replaces=False, records=10_000)
    plan = sampled_batches(problem, Wishes(epochs=10))
    assert plan is not None
    assumed = 1 / math.sqrt(math.log1p(problem.mu**2 * plan.batches / 10))
    noise = li.OnGradientSum(multiplier=1.0, clip=0.3)
    batches = li.Poisson(10_000, 1 / plan.batches)
    run = li.Run(li.losses.network(clip=0.3), batches, 1.0, noise, li.epochs(10), adjacency=li.ZERO_OUT)
    found = li.calibrate(run, epsilon=li.notions.GaussianDP(problem.mu).epsilon(1e-5), delta=1e-5).noise
    assert found.multiplier == pytest.approx(assumed, rel=0.15)


def test_less_privacy_and_more_records_mean_less_error() -> None:
    errors = [chosen_plan(replace(PROBLEM, mu=mu)).error for mu in (0.03, 0.3, 3.0)]
    assert errors == sorted(errors, reverse=True)
    assert chosen_plan(replace(PROBLEM, records=50_000)).error < errors[1]


def test_wishes_are_kept() -> None:
    plan = chosen_plan(PROBLEM, Wishes(batches=3, epochs=7, step_size=0.5, l2=0.1))
    assert (plan.way, plan.batches, plan.epochs, plan.step_size, plan.l2) == (Way.PASSES, 3, 7, 0.5, 0.1)
    assert chosen_plan(PROBLEM, Wishes(epochs=7)).epochs == 7
    assert chosen_plan(PROBLEM, Wishes(batches=1)).way is Way.FULL
    assert chosen_plan(PROBLEM, Wishes(passes=10)).epochs <= 10


def test_full_batches_are_taken_if_they_can_be_paid_for_and_the_plan_says_why() -> None:
    plan = chosen_plan(PROBLEM)
    assert (plan.way, plan.epochs, plan.momentum, plan.averaged) == (Way.FULL, 250, MOMENTUM, 125)
    assert [way for way, _ in plan.others] == [Way.PASSES]
    assert "Expected excess loss" in str(plan)
    few = chosen_plan(replace(PROBLEM, records=50_000), Wishes(passes=3))
    assert few.way is not Way.FULL
