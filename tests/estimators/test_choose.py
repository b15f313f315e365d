"""The plan is chosen from public numbers by a formula that a simulation of its problem confirms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.training.choose import Problem, Wishes, chosen_plan, prices, spectrum

LOSS = li.losses.logistic(feature_norm=1.0, clip=0.5)
PROBLEM = Problem(records=5000, features=30, columns=1, loss=LOSS, feature_norm=1.0, curvature=0.1, score=4.0)


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


def test_the_error_is_what_a_simulation_finds() -> None:
    """Noisy descent on the quadratic that stands for the data, many times."""
    mu = float(shift_below(math.log(1e-5), 0.3))
    predicted = chosen_plan(PROBLEM, 0.3, 1e-5, Wishes(batches=4, epochs=10, step_size=2.0, l2=0.01)).error
    curvatures, multiplicity = spectrum(PROBLEM)
    h = np.repeat(curvatures, multiplicity.astype(int))
    noise = 1.0 * 4 / (5000 * mu) * math.sqrt(_price(4, 10, 1 - 2.0 * 0.01))
    source, wanted = np.random.default_rng(0), np.full(len(h), PROBLEM.score)
    x = np.zeros((4000, len(h)))
    for _ in range(40):
        x = x - 2.0 * (h * (x - wanted) + 0.01 * x + noise * source.normal(size=x.shape))
    assert predicted == pytest.approx(float(np.mean(np.sum(h * (x - wanted) ** 2, axis=1))) / 2, rel=0.02)


def test_less_privacy_and_more_records_mean_less_error() -> None:
    errors = [chosen_plan(PROBLEM, epsilon, 1e-5).error for epsilon in (0.1, 1.0, 10.0)]
    assert errors == sorted(errors, reverse=True)
    more = Problem(50_000, 30, 1, LOSS, 1.0, 0.1, 4.0)
    assert chosen_plan(more, 1.0, 1e-5).error < errors[1]


def test_wishes_are_kept() -> None:
    plan = chosen_plan(PROBLEM, 1.0, 1e-5, Wishes(batches=3, epochs=7, step_size=0.5, l2=0.1))
    assert (plan.batches, plan.epochs, plan.step_size, plan.l2) == (3, 7, 0.5, 0.1)
    assert chosen_plan(PROBLEM, 1.0, 1e-5, Wishes(epochs=7)).epochs == 7


def test_no_other_plan_within_reach_is_better() -> None:
    best = chosen_plan(PROBLEM, 1.0, 1e-5)
    for batches in (1, 10):
        for epochs in (5, 50):
            assert best.error <= chosen_plan(PROBLEM, 1.0, 1e-5, Wishes(batches, epochs)).error
