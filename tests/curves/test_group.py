"""Guarantees for k records from those for one: above exact chains of laws, exact for Gaussians, never above the lemma."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.group import GroupDP, of_group
from lastiterate.curves.notion import Notion
from lastiterate.notions import Profile
from raising import raises

EPSILONS = np.linspace(0.0, 12.0, 61)


def by_the_lemma(one: Notion, size: int, epsilon: float) -> float:
    """δ_k(ε) ≤ Σ_{i<k} e^{iε/k}·δ(ε/k)."""
    part = epsilon / size
    return float(one.delta(part)) * math.fsum(math.exp(i * part) for i in range(size))


def test_four_records_at_mu_one_half() -> None:
    """The usual lemma says 11.44."""
    one = li.notions.GaussianDP(0.5)
    assert round(float(one.group(4).epsilon(1e-5)), 2) == 10.00
    assert one.group(4) == li.notions.GaussianDP(one.group(4).mu)  # type: ignore[attr-defined]
    assert by_the_lemma(one, 4, 11.44) > 1e-5 > by_the_lemma(one, 4, 11.45)
    assert one.group(1) is one


@pytest.mark.parametrize(("mu", "size"), [(0.5, 2), (0.5, 4), (1.0, 3), (0.1, 20), (3.0, 2), (0.01, 3), (0.05, 100)])
def test_as_a_profile_a_gaussian_is_hardly_above_size_times_mu(mu: float, size: int) -> None:
    found, exact = GroupDP(li.notions.GaussianDP(mu), size), li.notions.GaussianDP(size * mu)
    for delta in (1e-2, 1e-5, 1e-9):
        epsilon, least = float(found.epsilon(delta)), float(exact.epsilon(delta))
        assert least <= epsilon <= 1.0015 * least
    assert (found.delta(EPSILONS) >= exact.delta(EPSILONS)).all()
    assert (found.delta(EPSILONS) <= 1.05 * exact.delta(EPSILONS) + 1e-22).all()


ONES = {
    "sampled": li.notions.subsampled_gaussian(mu=1.0, inclusion=0.05).compose(20),
    "averaged": li.notions.AveragedGaussianDP(mus=[0.1, 0.5, 2.0], weights=[0.5, 0.4, 0.1]),
    "points": Profile(epsilons=[0.0, 0.5, 1.0, 2.0], deltas=[0.4, 0.1, 1e-3, 1e-7]),
    "one point": Profile(epsilons=[1.0], deltas=[1e-6]),
    "pure": Profile(epsilons=[0.7], deltas=[0.0]),
    "Rényi": li.notions.RenyiDP(rho=0.05),
}


@pytest.mark.parametrize("name", list(ONES))
@pytest.mark.parametrize("size", [2, 5])
def test_never_above_the_usual_lemma(name: str, size: int) -> None:
    one = ONES[name]
    found = of_group(one, size)
    for epsilon in np.linspace(0.1, 6.0, 13).tolist():
        assert found.delta(epsilon) <= by_the_lemma(one, size, epsilon) * (1 + 1e-9)
    deltas = found.delta(EPSILONS)
    assert (np.diff(deltas) <= 1e-15).all()
    assert found.adjacency is one.adjacency
    assert found.epsilon(1e-4) >= one.epsilon(1e-4)


def laws(seed: int, size: int) -> np.ndarray:
    """size + 1 laws on a few points, each near the one before."""
    source = np.random.default_rng(seed)
    logs = np.cumsum(source.normal(0.0, 0.4, (size + 1, 7)), axis=0)
    return np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)


def exceeds(first: np.ndarray, second: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
    """E_ε in the worse order."""
    ways = ((first, second), (second, first))
    return np.max([np.maximum(p - np.exp(epsilons)[:, None] * q, 0.0).sum(axis=1) for p, q in ways], axis=0)


@pytest.mark.parametrize("size", [2, 3, 6])
def test_above_chains_of_laws(size: int) -> None:
    """The profile of single steps is known at all of its corners, so that it is exact."""
    closest = 0.0
    for seed in range(12):
        chain = laws(seed, size)
        ratios = [np.abs(np.log(one / two)) for one, two in pairwise(chain)]
        corners = np.unique(np.append(0.0, np.concatenate(ratios)))
        links = [exceeds(one, two, corners) for one, two in pairwise(chain)]
        one = Profile(epsilons=corners, deltas=np.minimum(np.max(links, axis=0) * (1 + 1e-12), 1.0))
        exact = exceeds(chain[0], chain[-1], EPSILONS)
        said = of_group(one, size).delta(EPSILONS)
        assert (said >= exact * (1 - 1e-9)).all()
        closest = max(closest, float((exact / np.maximum(said, 1e-300)).max()))
    assert closest > 0.05


@pytest.mark.parametrize("size", [2, 3, 5])
def test_it_is_the_trade_off_function_composed_with_itself(size: int) -> None:
    """Of pure differential privacy: from one type I error to the next, on a grid."""
    epsilon, errors = 0.7, np.linspace(0.0, 1.0, 20_001)
    powers = errors
    for _ in range(size):
        powers = np.minimum(math.exp(epsilon) * powers, 1 - math.exp(-epsilon) * (1 - powers))
    exact = np.array([np.max(powers - math.exp(one) * errors) for one in EPSILONS])
    said = GroupDP(Profile(epsilons=[epsilon], deltas=[0.0]), size).delta(EPSILONS)
    assert (said >= exact * (1 - 1e-9)).all()
    assert said == pytest.approx(exact, abs=1e-3)
    assert said[size * epsilon + 1e-9 < EPSILONS].max() == 0


def test_what_says_nothing_says_nothing_of_more() -> None:
    assert math.isinf(GroupDP(Profile(epsilons=[0.0], deltas=[1.0]), 3).epsilon(1e-5))
    assert GroupDP(li.notions.GaussianDP(0.0), 3).epsilon(1e-5) == 0
    assert math.isinf(GroupDP(Profile(epsilons=[1.0], deltas=[1e-3]), 4).epsilon(1e-3))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", None])
def test_sizes_are_counts(wrong: object) -> None:
    with raises("must_be", "size", kind=li.errors.InvalidInput) as caught:
        li.notions.GaussianDP(1.0).group(wrong)  # type: ignore[arg-type]
    assert caught.value.field == "size"
