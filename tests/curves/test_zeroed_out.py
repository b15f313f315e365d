"""Batches of fixed size where the neighbour's record contributes nothing: one step by quadrature, two in the plane."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.curves.group import of_two
from lastiterate.curves.profile import Profile
from lastiterate.curves.zeroed_out import ZeroedOut, present_delta

EPSILONS = np.array([0.0, 0.02, 0.1, 0.3, 0.7, 1.5])
EDGES = np.linspace(-9.0, 9.0, 301)


def normal(mean: float) -> np.ndarray:
    away = EDGES - mean
    return np.where(away[1:] > 0, -np.diff(ndtr(-away)), np.diff(ndtr(away)))


def one_way(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for epsilon in EPSILONS])


def laws(rate: float, record: float, other: float) -> tuple[np.ndarray, np.ndarray]:
    """With the record, and with nothing in its place; in other batches there is another record in its place."""
    return tuple(rate * normal(mean) + (1 - rate) * normal(other) for mean in (record, 0.0))  # type: ignore[return-value]


def replaced(far: float, rate: float) -> li.notions.SubsampledGaussians:
    return li.notions.subsampled_gaussian(mu=far, inclusion=rate, sampling=li.notions.FIXED_SIZE, adjacency=li.ZERO_OUT)


@pytest.mark.parametrize("near", [0.05, 0.4, 1.0, 2.5])
@pytest.mark.parametrize("rate", [0.002, 0.05, 0.5, 0.95])
def test_one_step_is_attained_and_no_other_place_of_the_others_is_worse(near: float, rate: float) -> None:
    said = present_delta(near, 2 * near, rate, EPSILONS)
    found = [one_way(*laws(rate, near, other * near)) for other in (-1.0, -0.6, 0.0, 0.5, 1.0)]
    assert (said >= np.max(found, axis=0)).all()
    assert said == pytest.approx(found[0], rel=0.1, abs=1e-15)
    assert (said <= np.asarray(replaced(2 * near, rate).delta(EPSILONS)) * (1 + 1e-12) + 1e-299).all()
    backwards = [one_way(*laws(rate, near, other * near)[::-1]) for other in (-1.0, 0.0, 1.0)]
    assert (np.asarray(replaced(near, rate).delta(EPSILONS)) >= np.max(backwards, axis=0)).all()


@pytest.mark.parametrize("near", [0.4, 1.5])
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_two_steps_in_either_order_whatever_the_first_has_shown(near: float, rate: float) -> None:
    """After the first step the others may turn: the worst of all their places counts, at each outcome by itself."""
    told = np.asarray(ZeroedOut((((near, 2 * near, rate), 2),), replaced(2 * near, rate).compose(2)).delta(EPSILONS))
    pairs = [laws(rate, sign * near, other * near) for sign, other in product((1, -1), (-1.0, 0.0, 1.0))]
    for backwards in (False, True):
        ordered = [pair[::-1] if backwards else pair for pair in pairs]
        for p, q in ordered[:3]:
            for epsilon, said in zip(EPSILONS, told, strict=True):
                factor = math.exp(epsilon)
                worst = [np.maximum(np.outer(p, a) - factor * np.outer(q, b), 0.0).sum(axis=1) for a, b in ordered]
                assert said >= np.max(worst, axis=0).sum()


def test_many_steps_are_below_those_of_a_replaced_record_and_above_half_the_push() -> None:
    steps = (((0.5, 1.0, 0.05), 400),)
    found = ZeroedOut(steps, replaced(1.0, 0.05).compose(400))
    assert replaced(0.5, 0.05).compose(400).epsilon(1e-5) < found.epsilon(1e-5) < 4.4
    assert found.epsilon(1e-5) < 0.6 * replaced(1.0, 0.05).compose(400).epsilon(1e-5)
    few, many = (np.asarray(found.delta(np.linspace(0.5, 4.0, count))) for count in (2, 15))
    assert few == pytest.approx(many[[0, -1]], rel=0.3)
    assert (few <= many[[0, -1]] * (1 + 1e-9)).all()


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_a_group_of_two_gaussians_is_one_of_twice_the_shift(mu: float) -> None:
    plain = li.notions.GaussianDP(mu, li.ZERO_OUT)
    profile = Profile(function=lambda epsilons: plain.delta(epsilons), adjacency=li.ZERO_OUT)
    exact = li.notions.GaussianDP(2 * mu)
    assert of_two(plain, li.REPLACE_ONE) == li.notions.GaussianDP(of_two(plain, li.REPLACE_ONE).mu)  # type: ignore[attr-defined]
    for delta in (1e-2, 1e-5, 1e-9):
        found = of_two(profile, li.REPLACE_ONE)
        assert exact.epsilon(delta) <= found.epsilon(delta) <= 1.01 * exact.epsilon(delta)
        assert of_two(plain, li.REPLACE_ONE).epsilon(delta) == pytest.approx(exact.epsilon(delta), rel=1e-9)
