"""A Gaussian above a whole guarantee, and what it is for: choices that depend on what came out before."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import lastiterate as li
from lastiterate.curves.gaussian_cover import covering_mu, gaussian_cover, tabled
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import Displaced
from lastiterate.numerics.arrays import Floats

DELTA = 1e-5
NOTIONS = {
    "gaussian, tabled": li.notions.Profile(function=lambda epsilons: li.notions.GaussianDP(1.0).delta(epsilons)),
    "pure": li.notions.Profile(epsilons=[1.0], deltas=[0.0]),
    "approximate": li.notions.Profile(epsilons=[1.0], deltas=[1e-8]),
    "tiny": li.notions.Profile(epsilons=[1e-13], deltas=[0.0]),
    "several points": li.notions.Profile(epsilons=[0.0, 0.5, 3.0], deltas=[0.3, 0.01, 1e-9]),
    "concentrated": li.notions.RenyiDP(rho=0.1),
    "subsampled": li.notions.subsampled_gaussian(mu=1.0, inclusion=0.05, adjacency=li.REPLACE_ONE).compose(50),
    "loss": li.notions.PrivacyLoss(first=-0.5, spacing=1.0, masses=[0.37, 0.63]),
    "rounded": Displaced(
        li.notions.Profile(function=lambda epsilons: li.notions.GaussianDP(1.0).delta(epsilons)), 1e-7
    ),
    "hardly any": li.notions.Profile(epsilons=[12.0], deltas=[0.0]),
}


@pytest.mark.parametrize("name", NOTIONS)
@pytest.mark.parametrize("slack", [1e-7, 1e-6])
def test_it_lies_above_everywhere(name: str, slack: float) -> None:
    notion = NOTIONS[name]
    mu = gaussian_cover(notion, DELTA, slack)
    assert math.isfinite(mu)
    epsilons = np.append(np.linspace(0.0, float(notion.epsilon(2e-8)) + 1e-9, 400), [50.0, 600.0])
    deltas = np.minimum.accumulate(np.asarray(notion.delta(epsilons)))  # bounds may grow again where δ does not
    above, lower = (np.asarray(li.notions.GaussianDP(one).delta(epsilons)) + slack for one in (mu, 0.98 * mu))
    assert (deltas <= above * (1 + 1e-12)).all()
    assert mu < 1e-12 or (deltas > lower).any(), "it could be smaller"


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_pure_privacy_has_a_formula(epsilon: float) -> None:
    """Dong et al. 2022: the trade-off functions meet at 1/(1 + e^ε)."""
    exact = 2 * ndtri(1 / (1 + math.exp(-epsilon)))
    pure = li.notions.Profile(epsilons=[epsilon], deltas=[0.0])
    assert exact <= gaussian_cover(pure, DELTA, 0.0) <= exact * (1 + 1e-5)


def test_nothing_is_covered_below_its_floor() -> None:
    floor = li.notions.Profile(epsilons=[1.0], deltas=[1e-6])
    assert math.isinf(gaussian_cover(floor, DELTA, 9e-7))
    assert math.isfinite(gaussian_cover(floor, DELTA, 1.1e-6))
    assert tabled(li.notions.Profile(function=lambda epsilons: 0 * epsilons + 0.1), DELTA) is None


@pytest.mark.parametrize("largest", [0.1, 0.9, 0.999999])
def test_what_falls_at_once_is_as_far_apart_as_a_gaussian_at_0(largest: float) -> None:
    """No profile is so steep, but bounds may be: what counts is the total variation."""
    mu = covering_mu(np.array([0.0, 1e-14]), np.array([largest, 0.0]), 0.0)
    assert float(li.notions.GaussianDP(mu).delta(0.0)) >= largest
    assert mu <= 2 * ndtri((1 + largest) / 2) * (1 + 1e-6)


Excess = Callable[[Floats], Floats]  # E_c(P‖Q) for an array of c >= 0


def of_gaussian(mu: float) -> Excess:
    return lambda c: ndtr(mu / 2 - np.log(c) / mu) - c * ndtr(-mu / 2 - np.log(c) / mu)


def of_randomised_response(epsilon: float) -> Excess:
    p = 1 / (1 + math.exp(-epsilon))
    return lambda c: np.maximum(p - c * (1 - p), 0.0) + np.maximum(1 - p - c * p, 0.0)


def of_failure(probability: float) -> Excess:
    """Nothing at all, or with this probability everything."""
    return lambda c: probability + (1 - probability) * np.maximum(1 - c, 0.0)


def chosen_after(mu: float, choose: Callable[[float], int], seconds: list[Excess], epsilon: float) -> float:
    """δ of a Gaussian release, and one of several after it, chosen by what came out; by quadrature, and rounded down."""
    x = np.linspace(-9.0, 9.0 + mu, 6001)
    p, q = (np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (mu, 0.0))
    which = np.array([choose(one) for one in x.tolist()])
    excess = np.select([which == i for i in range(len(seconds))], [f(math.exp(epsilon) * q / p) for f in seconds])
    return float((p * excess).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.5, 1.5])
def test_a_filter_holds_whatever_is_chosen_after_seeing(threshold: float) -> None:
    """Two seconds that each use up the budget, one if the first looks bad: no ε is exceeded."""
    first, rest = 0.8, 1.1
    response = 2 * math.atanh(2 * float(ndtr(rest / 2)) - 1)
    assert gaussian_cover(li.notions.Profile(epsilons=[response], deltas=[0.0]), DELTA, 0.0) <= rest * (1 + 1e-5)
    together = li.notions.GaussianDP(math.hypot(first, rest))
    for order in (0, 1):
        for epsilon in np.linspace(0.0, 5.0, 26).tolist():
            seconds = [of_gaussian(rest), of_randomised_response(response)]
            found = chosen_after(first, lambda x, order=order: int(x > threshold) ^ order, seconds, epsilon)  # type: ignore[misc]
            assert found <= float(together.delta(epsilon)) + 1e-7


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0])
def test_slacks_add_up_whatever_is_chosen(threshold: float) -> None:
    seconds = [of_gaussian(0.7), lambda c: of_failure(0.01)(c)]
    for epsilon in np.linspace(0.0, 4.0, 21).tolist():
        found = chosen_after(0.8, lambda x: int(x > threshold), seconds, epsilon)
        assert found <= float(li.notions.GaussianDP(math.hypot(0.8, 0.7)).delta(epsilon)) + 0.01 + 1e-7


def spend_all(budget: li.Budget, *releases: Notion) -> None:
    for one in releases:
        budget.spend(one, what="one after the other")


def test_composing_what_was_chosen_is_no_filter() -> None:
    """Each way through is within (1, 0.01) by composition, and all of it is not: so `adaptive=True` does not do that."""
    epsilon, delta, first, second = 1.0, 0.01, 0.5, 0.524
    likely = 1 / (1 + math.exp(-first))  # that a bit comes out as it is: its loss is then 0.5, else −0.5
    bit = li.notions.PrivacyLoss(first=-first, spacing=0.01, masses=[1 - likely, *[0.0] * 99, likely])
    after_true = li.notions.Profile(epsilons=[second], deltas=[0.0])  # another bit
    after_false = li.notions.Profile(epsilons=[0.0], deltas=[0.99 * delta])  # everything, once in a hundred
    for after in (after_true, after_false):
        assert li.compose([bit, after]).epsilon(delta) <= epsilon
        with pytest.raises(li.errors.BudgetExceeded):
            spend_all(li.Budget(epsilon, delta, reserve=0.99), bit, after)
    excess_after_true = of_randomised_response(second)(np.array(math.exp(epsilon - first)))
    excess_after_false = of_failure(0.99 * delta)(np.array(math.exp(epsilon + first)))
    assert likely * float(excess_after_true) + (1 - likely) * float(excess_after_false) > 1.3 * delta
