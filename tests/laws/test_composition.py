"""Composition of notions: associative, n-fold is n times, and never below what two releases cost."""

from __future__ import annotations

import numpy as np
import pytest

import lastiterate as li

EPSILONS = np.array([0.1, 0.5, 1.0, 3.0])
GAUSSIANS = (li.notions.GaussianDP(0.3), li.notions.GaussianDP(0.5), li.notions.GaussianDP(0.8))
RENYI = (li.notions.RenyiDP(rho=0.1), li.notions.RenyiDP(rho=0.2), li.notions.RenyiDP(rho=0.05))
SAMPLED = tuple(
    li.notions.subsampled_gaussian(mu=mu, inclusion=rate, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE)
    for mu, rate in ((0.5, 0.1), (1.0, 0.02), (0.8, 0.3))
)
EXACT = {"gaussian": GAUSSIANS, "renyi": RENYI, "sampled": SAMPLED, "mixed": (GAUSSIANS[0], SAMPLED[1], GAUSSIANS[2])}


@pytest.mark.parametrize("kind", EXACT)
def test_composition_is_associative_and_commutative(kind: str) -> None:
    one, two, three = EXACT[kind]
    left, right = li.compose([li.compose([one, two]), three]), li.compose([one, li.compose([two, three])])
    turned = li.compose([three, one, two])
    assert left.delta(EPSILONS) == pytest.approx(right.delta(EPSILONS), rel=1e-6)
    assert left.delta(EPSILONS) == pytest.approx(turned.delta(EPSILONS), rel=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "renyi", "sampled"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_n_fold_is_n_times(kind: str, times: int) -> None:
    for one in EXACT[kind]:
        at_once, one_by_one = one.compose(times), li.compose([one] * times)
        assert at_once.delta(EPSILONS) == pytest.approx(one_by_one.delta(EPSILONS), rel=1e-6)


@pytest.mark.parametrize("kind", EXACT)
def test_composition_costs_at_least_each_part(kind: str) -> None:
    together = li.compose(list(EXACT[kind])).delta(EPSILONS)
    for one in EXACT[kind]:
        assert (together >= one.delta(EPSILONS) * (1 - 1e-9)).all()


def test_brackets_hold_the_exact_value() -> None:
    """μ = 1 at δ = 1e-5: the root of Φ(1/2 − ε) − e^ε·Φ(−1/2 − ε) = δ, by mpmath."""
    lower, upper = li.notions.GaussianDP(1.0).bracket(1e-5)
    assert lower <= 4.377178095681225 <= upper  # type: ignore[operator]
    assert upper - lower < 1e-11  # type: ignore[operator]
