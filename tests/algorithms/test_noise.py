"""Every kind of noise: its standard deviation on the iterate, scaled, cut short, and never changed."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import lastiterate as li

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
def test_noise_is_a_value(kind: str) -> None:
    noise = KINDS[kind][0]
    with pytest.raises(FrozenInstanceError):
        setattr(noise, noise.size, 1.0)
    assert noise == noise.scaled(1.0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, (), (1.0, 0.0)])
def test_sizes_are_positive_numbers(wrong: object) -> None:
    for make in (li.OnIterate, li.OnMeanGradient, li.Langevin, lambda one: li.OnGradientSum(one, 1.0)):
        with pytest.raises(li.InvalidInput):
            make(wrong)  # type: ignore[operator]
    with pytest.raises(li.InvalidInput, match="clip"):
        li.OnGradientSum(1.0, wrong)  # type: ignore[arg-type]
