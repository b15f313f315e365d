"""Every kind of noise: its standard deviation on the iterate, scaled, cut short, and never changed."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import lastiterate as li
from raising import raises

SIZES = np.array([0.5, 0.2, 0.1])
KINDS = {
    "iterate": (li.OnIterate(std=0.7), [0.7, 0.7, 0.7]),
    "iterate, listed": (li.OnIterate(std=(0.7, 0.6, 0.9)), [0.7, 0.6, 0.9]),
    "mean gradient": (li.OnMeanGradient(std=0.7), [0.35, 0.14, 0.07]),
    "gradient sum": (li.OnGradientSum(multiplier=0.7, clip=3.0), [0.5 * 2.1 / 8, 0.2 * 2.1 / 8, 0.1 * 2.1 / 8]),
    "gradient sum, listed": (
        li.OnGradientSum(multiplier=(1.0, 2.0, 3.0), clip=(3.0, 2.0, 5.0)),
        [0.5 * 3 / 8, 0.2 * 4 / 8, 0.1 * 15 / 8],
    ),
    "langevin": (li.Langevin(std=0.7), [0.7 * math.sqrt(2 * size) for size in SIZES]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_standard_deviation_on_the_iterate(kind: str) -> None:
    noise, expected = KINDS[kind]
    assert noise.on_iterate(SIZES, 8.0) == pytest.approx(expected, rel=1e-14)
    assert noise.scaled(2.0).on_iterate(SIZES, 8.0) == pytest.approx([2 * one for one in expected], rel=1e-14)
    assert noise.first(2).on_iterate(SIZES[:2], 8.0) == pytest.approx(expected[:2], rel=1e-14)
    assert type(noise.scaled(2.0)) is type(noise.first(2)) is type(noise)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_goes_down_the_mean_gradient_and_adds_its_noise(kind: str) -> None:
    """To the iterate, or to the gradient, which is subtracted; as large as it says on the iterate."""
    noise, expected = KINDS[kind]
    x, gradient_sum, normal = np.array([1.0, -2.0]), np.array([16.0, 4.0]), np.array([0.3, -1.7])
    sign = -1 if "gradient" in kind else 1
    for step, (size, std) in enumerate(zip(SIZES.tolist(), expected, strict=True)):
        found = noise.update(x, step, size, gradient_sum, 8.0, normal)
        assert found == pytest.approx(x - size * gradient_sum / 8 + sign * std * normal, rel=1e-12)


def test_which_noise_is_added_to_a_sum_and_which_to_a_potential() -> None:
    noises = [noise for noise, _ in KINDS.values()]
    assert {type(noise) for noise in noises if noise.on_sum} == {li.OnGradientSum}
    assert {type(noise) for noise in noises if noise.of_a_potential} == {li.Langevin}


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_a_value(kind: str) -> None:
    noise = KINDS[kind][0]
    with pytest.raises(FrozenInstanceError):
        setattr(noise, noise.size, 1.0)
    assert noise == noise.scaled(1.0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, (), (1.0, 0.0)])
def test_sizes_are_positive_numbers(wrong: object) -> None:
    for make in (li.OnIterate, li.OnMeanGradient, li.Langevin, lambda one: li.OnGradientSum(one, 1.0)):
        with pytest.raises(li.errors.InvalidInput):
            make(wrong)  # type: ignore[operator]
    with pytest.raises(li.errors.InvalidInput, match="clip"):
        li.OnGradientSum(1.0, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", [li.OnIterate(std=[0.1, 0.2]), li.OnGradientSum(multiplier=[1.0, 2.0], clip=1.0)])
def test_the_first_steps_are_a_number_of_them(noise: li.OnIterate | li.OnGradientSum) -> None:
    with raises("must_be", "steps", kind=li.errors.InvalidInput, allowed="an integer >= 1"):
        noise.first(float("nan"))  # type: ignore[arg-type]
