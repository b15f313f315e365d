"""The noise has the law that is accounted for: refuted at level 1e-9, with the power that each test states."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import gamma, norm

from chances import (
    LEVEL,
    POWER,
    as_likely,
    of_these_cells,
    of_this_spread,
    power_of_cells,
    power_of_counts,
    power_of_shift,
    power_of_spread,
)
from lastiterate.numerics.exact_noise import laplace
from lastiterate.numerics.randomness import Source
from lastiterate.training.objectives import leaves, leaves_with_normal_noise

MANY = 1_000_000
Draw = Callable[[Source], np.ndarray]
NORMALS: dict[str, Draw] = {
    "hidden": lambda source: leaves_with_normal_noise(np.zeros(MANY), 1.0, source, 32),
    "released": lambda source: leaves_with_normal_noise(np.zeros(MANY), 1.0, source),
}
sources = pytest.mark.parametrize("seed", [None, 7])
normals = pytest.mark.parametrize("kind", NORMALS)


@cache
def drawn(kind: str, seed: int | None) -> np.ndarray:
    """A million numbers, drawn once for all tests."""
    return NORMALS[kind](Source(seed))


def in_even_cells(values: np.ndarray, cells: int) -> np.ndarray:
    """How many of these numbers between 0 and 1 fall into each of so many cells."""
    return np.bincount(np.minimum((values * cells).astype(int), cells - 1), minlength=cells)


@sources
@normals
def test_normals_have_their_standard_deviation(kind: str, seed: int | None) -> None:
    """The sum of squares is a χ²: a standard deviation that is off by 1% is refused with a power above 0.999."""
    assert min(power_of_spread(MANY, 0.99), power_of_spread(MANY, 1.01)) > POWER
    assert of_this_spread(float(np.square(drawn(kind, seed)).sum()), MANY)


@sources
@normals
def test_normals_have_their_mean(kind: str, seed: int | None) -> None:
    """The sum is normal: a mean of 1% of the standard deviation is refused with a power above 0.999."""
    most = norm.isf(LEVEL / 2) * MANY**0.5
    assert norm.sf((most - 0.01 * MANY) / MANY**0.5) > POWER
    assert abs(float(drawn(kind, seed).sum())) <= most


@sources
@normals
def test_normals_are_normal_everywhere(kind: str, seed: int | None) -> None:
    """In 200 cells that are equally likely: a standard deviation off by 2% is refused with a power above 0.999."""
    even, edges = np.full(200, 1 / 200), ndtri(np.arange(1, 200) / 200)
    wider = np.diff(ndtr(edges / 1.02), prepend=0.0, append=1.0)
    assert power_of_cells(MANY, even, wider) > POWER
    assert of_these_cells(in_even_cells(ndtr(drawn(kind, seed)), 200), even)


@sources
@normals
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_normals_reach_as_far_as_they_should_on_both_sides(kind: str, seed: int | None, side: float) -> None:
    """Beyond three deviations: a third less there is refused with a power above 0.999."""
    beyond = float(norm.sf(3.0))
    assert power_of_counts(MANY, beyond, beyond * 2 / 3) > POWER
    assert as_likely(int((side * drawn(kind, seed) > 3.0).sum()), MANY, beyond)


@sources
def test_normals_are_not_cut_at_four_deviations(seed: int | None) -> None:
    """Half of what should be there is refused with a power above 0.999."""
    beyond, many, source = 2 * float(norm.sf(4.0)), 5 * MANY, Source(seed)
    assert power_of_counts(many, beyond, beyond / 2) > POWER
    assert as_likely(sum(int((abs(NORMALS["hidden"](source)) > 4.0).sum()) for _ in range(5)), many, beyond)


@sources
@normals
def test_the_sign_says_nothing_of_the_size(kind: str, seed: int | None) -> None:
    """By halves of the size: a sign that is right 51 times in a hundred is refused with a power above 0.999."""
    values = drawn(kind, seed)
    large = np.abs(values) > ndtri(0.75)
    for part in (values[large], values[~large]):
        assert power_of_counts(len(part), 0.5, 0.51) > POWER
        assert as_likely(int((part > 0).sum()), len(part), 0.5)


@sources
@normals
@pytest.mark.parametrize("apart", [1, 1000, 1 << 18])
def test_coordinates_are_independent(kind: str, seed: int | None, apart: int) -> None:
    """In 10 × 10 cells that are equally likely: a correlation of 3% is refused with a power above 0.999."""
    values = ndtr(drawn(kind, seed))
    shown = len(values) // (2 * apart) * 2 * apart
    one, two = np.moveaxis(values[:shown].reshape(-1, 2, apart), 1, 0).reshape(2, -1)
    places = np.minimum((10 * one).astype(int), 9) * 10 + np.minimum((10 * two).astype(int), 9)
    # A correlation ρ moves the cells by about ρ·x·y, and so χ² by about n·ρ².
    assert power_of_shift(len(one) * 0.03**2, 99) > POWER
    assert of_these_cells(np.bincount(places, minlength=100), np.full(100, 0.01))


@sources
def test_uniform_numbers_are_uniform_and_never_at_the_ends(seed: int | None) -> None:
    """In 256 cells: one that is a tenth too likely is refused with a power above 0.999 for 16 of them alike."""
    values = Source(seed).uniform(MANY)
    even = np.full(256, 1 / 256)
    others = even * (1 + 0.1 * ((np.arange(256) % 16 == 0) - 1 / 16))
    assert power_of_cells(MANY, even, others) > POWER
    assert 0 < values.min() <= values.max() < 1
    assert of_these_cells(in_even_cells(values, 256), even)
    # And beyond the first bits.
    assert of_these_cells(in_even_cells(values * 2.0**20 % 1, 256), even)


@sources
def test_laplace_numbers_are_laplace(seed: int | None) -> None:
    """Sizes add up to a gamma law: a scale that is off by 1% is refused with a power above 0.999. Signs are even."""
    values = leaves(np.zeros(MANY), ((laplace, 1.0),), Source(seed))
    low, high = gamma.isf(1 - LEVEL / 2, MANY), gamma.isf(LEVEL / 2, MANY)
    assert min(gamma.cdf(low / 0.99, MANY), gamma.sf(high / 1.01, MANY)) > POWER
    assert low <= float(np.abs(values).sum()) <= high
    assert as_likely(int((values > 0).sum()), MANY, 0.5)
    uniform = np.where(values > 0, 1 - np.exp(-np.abs(values)) / 2, np.exp(-np.abs(values)) / 2)
    assert of_these_cells(in_even_cells(uniform, 200), np.full(200, 1 / 200))


@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0,), (2, 0, 3)])
def test_shapes_are_those_asked_for(shape: int | tuple[int, ...]) -> None:
    expected = (shape,) if isinstance(shape, int) else shape
    for seed in (None, 3):
        source = Source(seed)
        for draw in (source.bits, source.uniform):
            assert draw(shape).shape == expected


def test_a_seed_repeats_and_no_seed_does_not() -> None:
    for name in ("bits", "uniform"):
        one, two, three = (getattr(Source(seed), name)(10) for seed in (5, 5, 6))
        assert (one == two).all()
        assert (one != three).any()
        assert (getattr(Source(), name)(10) != getattr(Source(), name)(10)).any()
    assert Source().private
    assert not Source(5).private
