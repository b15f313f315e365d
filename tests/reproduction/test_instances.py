"""The instances of the papers, against what is known of them and against the theorems that they are about."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.quadratic import exact_mu
from lastiterate.reproduction.instances import (
    clipped_softmax_step,
    clipped_step,
    cyclic_mu,
    linear_loss_on_an_interval,
    one_sampled_step,
    two_wells,
)
from processes import process


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(("push", "rate"), [(0.5, 0.1), (2.5, 0.25)])
def test_the_worst_split_of_one_step_is_the_sampled_gaussian_mechanism(
    epsilon: float, push: float, rate: float
) -> None:
    exact = li.notions.subsampled_gaussian(
        mu=push, inclusion=rate, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    delta = float(exact.delta(epsilon))
    found = max(one_sampled_step(push, rate, split).epsilon(delta) for split in (0.0, 0.25, 0.5, 0.75, 1.0))
    assert epsilon * (1 - 2e-3) <= found <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("factor", "per_epoch", "epochs"), [(0.9, 4, 3), (0.99, 10, 50), (0.5, 1, 8)])
def test_cyclic_quadratics(factor: float, per_epoch: int, epochs: int) -> None:
    loss = li.losses.general(smoothness=1.0, strong_convexity=1 - factor, gradient_sensitivity=0.3 * 10)
    run = li.Run(loss, li.Cyclic(10 * per_epoch, 10), 1.0, li.OnIterate(std=1.0), per_epoch * epochs)
    assert exact_mu(run, 1 - factor) == pytest.approx(cyclic_mu(0.3, factor, per_epoch, epochs), rel=1e-12)
    assert li.lower_bound(run, 1e-5).epsilon >= li.notions.GaussianDP(
        cyclic_mu(0.3, factor, per_epoch, epochs)
    ).epsilon(1e-5) * (1 - 1e-9)


def test_a_linear_loss_on_an_interval_costs_more_with_room_and_stops_with_time() -> None:
    narrow, wide = (linear_loss_on_an_interval(0.1, width, 400).least_epsilon(1e-6) for width in (3.0, 10.0))
    longer = linear_loss_on_an_interval(0.1, 10.0, 4000).least_epsilon(1e-6)
    assert narrow < wide <= longer * (1 + 1e-3)
    upper = process(li.FullBatch(records=10), 4000, sensitivity=0.1, diameter=10.0)
    bound = min(
        one.epsilon(1e-6) for one in (t.apply(upper) for t in li.theorems.ALL) if isinstance(one, li.theorems.Guarantee)
    )
    assert longer <= bound
    assert longer == pytest.approx(linear_loss_on_an_interval(0.1, 10.0, 8000).least_epsilon(1e-6), rel=1e-3)


def test_two_wells() -> None:
    """Errata E0.1: λ = 0.99, ηC = 2, ν = 1, p = 0.1, T = 200 keeps two data sets 0.688 apart."""
    delta, error = two_wells(0.99, 2.0, 0.1, 200).delta_with_error(np.zeros(1))
    assert delta[0] == pytest.approx(0.688, abs=5e-4)
    assert error[0] < 5e-4


@pytest.mark.parametrize("product", [0.1, 1.0, 2.9])
def test_the_clipped_step_attains_its_constant(product: float) -> None:
    norms = [float(np.linalg.norm(clipped_step(product, angle), 2)) for angle in np.linspace(0, math.pi, 2001)]
    assert max(norms) == pytest.approx(2 / math.sqrt(4 - product), rel=1e-5)


def test_the_derivative_of_a_clipped_softmax_step_is_that_of_the_step() -> None:
    """By differences of the step itself, in the weights along x: ten classes, ‖x‖ = 8, clip 5, η = 0.05, λ = 0.002."""
    weights = np.array([-18.9422, 0.0, *[-2.789] * 8]) / 8

    def step(w: np.ndarray) -> np.ndarray:
        shares = np.exp(8 * w - (8 * w).max())
        gradient = 8 * (shares / shares.sum() - np.eye(10)[0])
        gradient *= min(1.0, 5 / float(np.linalg.norm(gradient)))
        return (1 - 0.05 * 0.002) * w - 0.05 * gradient

    moves = 1e-6 * np.eye(10)
    by_differences = np.stack([(step(weights + move) - step(weights - move)) / 2e-6 for move in moves], axis=1)
    derivative = clipped_softmax_step(8 * weights, 8.0, 5.0, 0.05, 0.002)
    assert derivative == pytest.approx(by_differences, abs=1e-7)
    assert np.linalg.norm(derivative, 2) == pytest.approx(1.0275, abs=1e-4)
