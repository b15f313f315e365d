"""A guarantee together with what a Gaussian mechanism released before: beside what is known exactly."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.balls_and_bins import BallsAndBinsDP
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.minimum import Ladder
from lastiterate.curves.transformed import AfterGaussian, ChosenSlack, Displaced, NearlyAlways, Slackened, atoms
from lastiterate.theorems.evidence import Evidence
from raising import raises

EPSILONS = np.array([0.0, 1e-3, 0.3, 1.0, 3.0])
DELTA = 1e-5
HALF_FREE = AveragedGaussianDP(mus=[0.0, 1.0], weights=[0.5, 0.5])
HIDDEN = HiddenPlaceDP(
    mus=[0.5, 1.0, 1.5], pair_mus=[[0, 0.8, 0.9], [0.8, 0, 1.0], [0.9, 1.0, 0]], weights=[0.5, 0.25, 0.25]
)


def theta(epsilon: mpmath.mpf, mu: float) -> mpmath.mpf:
    r = mpmath.mpf(mu)
    return mpmath.ncdf(r / 2 - epsilon / r) - mpmath.exp(epsilon) * mpmath.ncdf(-r / 2 - epsilon / r)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.5, 20.0])
@pytest.mark.parametrize("before", [1e-12, 1e-3, 0.5, 20.0])
def test_tables_of_a_gaussian_are_a_little_above_the_exact_composition(mu: float, before: float) -> None:
    found, exact = AfterGaussian(li.notions.GaussianDP(mu), before), li.notions.GaussianDP(math.hypot(mu, before))
    for delta in (0.5, 1e-5, 1e-40):
        assert exact.epsilon(delta) * (1 - 1e-12) <= found.epsilon(delta) <= exact.epsilon(delta) * 1.002 + 1e-8
    epsilons = math.hypot(mu, before) * np.array([0.0, 0.01, 0.5, 3.0])
    assert (found.delta(epsilons) >= np.asarray(exact.delta(epsilons)) * (1 - 1e-12)).all()
    assert (found.delta(epsilons) <= np.asarray(exact.delta(epsilons)) * 1.01).all()


def test_pure_privacy_is_randomised_response_beside_a_gaussian() -> None:
    """Losses ±1, with probabilities e/(1 + e) and 1/(1 + e): δ is the mean of θ over them."""
    found = li.notions.Profile(epsilons=[1.0], deltas=[0.0]).after(0.7).delta(EPSILONS)
    with mpmath.workdps(40):
        likely = mpmath.e / (1 + mpmath.e)
        for delta, epsilon in zip(np.asarray(found).tolist(), EPSILONS.tolist(), strict=True):
            exact = likely * theta(mpmath.mpf(epsilon) - 1, 0.7) + (1 - likely) * theta(mpmath.mpf(epsilon) + 1, 0.7)
            assert exact * (1 - mpmath.mpf("1e-14")) <= delta <= exact * (1 + mpmath.mpf("1e-9"))


def test_what_may_always_be_lost_stays() -> None:
    floor = li.notions.Profile(epsilons=[1.0], deltas=[1e-3]).after(0.3)
    assert 1e-3 <= float(floor.delta(50.0)) <= 1e-3 * (1 + 1e-9)
    assert math.isinf(floor.epsilon(1e-5))
    nothing = li.notions.Profile(epsilons=[0.0], deltas=[1.0]).after(0.3)
    assert float(nothing.delta(5.0)) == 1.0


def test_losses_beyond_every_table_are_added_up() -> None:
    found = li.notions.Profile(epsilons=[1e4], deltas=[0.0]).after(0.3).epsilon(DELTA)
    assert 1e4 < found <= 1e4 + li.notions.GaussianDP(0.3).epsilon(DELTA / 2) + 1e-6


def test_atoms_are_nowhere_below_the_bounds() -> None:
    source = np.random.default_rng(0)
    for _ in range(20):
        epsilons = np.append(0.0, np.sort(source.uniform(0, 8, 30)))
        deltas = np.sort(10 ** source.uniform(-12, -0.3, 31))[::-1]
        losses, masses, infinite = atoms(epsilons, deltas)
        drawn = np.maximum(-np.expm1(epsilons[:, None] - losses), 0.0) @ masses + infinite
        hull = li.notions.Profile(epsilons=epsilons, deltas=deltas).delta(epsilons)
        assert (drawn >= np.asarray(hull) * (1 - 1e-11)).all()
        assert masses.sum() + infinite >= 1 - 1e-12


@pytest.mark.parametrize("before", [1e-3, 0.4, 2.0])
def test_places_that_cost_nothing_cost_what_came_before(before: float) -> None:
    found = np.asarray(HALF_FREE.after(before).delta(EPSILONS))
    parts = [np.asarray(li.notions.GaussianDP(mu).delta(EPSILONS)) for mu in (before, math.hypot(1.0, before))]
    assert found == pytest.approx(np.mean(parts, axis=0), rel=1e-12)


def test_every_two_places_cost_what_came_before() -> None:
    found = HIDDEN.after(0.4)
    assert isinstance(found, HiddenPlaceDP)
    assert found.mus == pytest.approx(np.hypot(HIDDEN.mus, 0.4), rel=1e-14)
    assert found.pair_mus == pytest.approx(np.hypot(HIDDEN.pair_mus, 0.4), rel=1e-14)
    assert (found.mus >= np.hypot(HIDDEN.mus, 0.4)).all()


KINDS = {
    "averaged": HALF_FREE,
    "subsampled": li.notions.subsampled_gaussian(mu=1.0, inclusion=0.2).compose(20),
    "with slack": Slackened(li.notions.GaussianDP(0.8), 1e-7),
    "displaced": Displaced(HALF_FREE, 1e-6),
    "chosen slack": ChosenSlack(lambda slack: li.notions.GaussianDP(0.8 - 0.01 * math.log10(slack))),
    "a ladder": Ladder((1, 2, 3), lambda rung: li.notions.GaussianDP(0.5 + abs(rung - 2))),
    "losses": li.compose([HALF_FREE, li.notions.Profile(epsilons=[0.5], deltas=[0.0])]),
    "renyi": li.notions.RenyiDP(rho=0.3),
    "renyi curve": li.notions.RenyiDP(orders=[2, 4, 8, 16], divergences=[0.2, 0.5, 1.1, 2.4]),
    "balls and bins": BallsAndBinsDP(1.0, 4),
    "profile": li.notions.Profile(function=lambda epsilons: np.exp(-3 * epsilons - 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_composition_whatever_the_kind(kind: str) -> None:
    """Beside the generic composition, on a lattice that is a little above; Rényi divergences lose more to that."""
    notion = KINDS[kind]
    composed = float(li.compose([notion, li.notions.GaussianDP(0.4, notion.adjacency)]).epsilon(DELTA))
    room = 0.2 if kind.startswith("renyi") else 0.04
    found = notion.after(0.4)
    assert found.adjacency is notion.adjacency
    assert composed * (1 - 2e-3) <= float(found.epsilon(DELTA)) <= composed * (1 + room)
    assert float(found.epsilon(DELTA)) < float(found.after(0.1).epsilon(DELTA))
    assert float(found.delta(found.epsilon(DELTA))) == pytest.approx(DELTA, rel=5e-3)
    assert notion.after(0.0) is notion


def test_what_may_be_lost_on_either_data_set_is_lost_as_often() -> None:
    found = np.asarray(NearlyAlways(li.notions.GaussianDP(0.8), 1e-9).after(0.6).delta(EPSILONS))
    exact = np.asarray(li.notions.GaussianDP(1.0).delta(EPSILONS)) + (1 + np.exp(EPSILONS)) * 1e-9
    assert found == pytest.approx(exact, rel=1e-12)


def test_twice_before_is_once_before_both() -> None:
    profile = KINDS["profile"]
    assert profile.after(0.3).after(0.4).epsilon(DELTA) == pytest.approx(profile.after(0.5).epsilon(DELTA), rel=1e-9)


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "a"])
def test_a_mu_that_makes_no_sense_is_refused(wrong: object) -> None:
    with raises("must_be", "mu", kind=li.errors.InvalidInput):
        li.notions.GaussianDP(1.0).after(wrong)  # type: ignore[arg-type]


def test_estimates_are_near_and_unknown_ones_stay_unknown() -> None:
    known, unknown = AfterGaussian(li.notions.GaussianDP(1.0), 0.5), AfterGaussian(HALF_FREE, 0.5)
    exact = li.notions.GaussianDP(math.hypot(1.0, 0.5))
    assert known.epsilon_estimate(math.log(DELTA)) == pytest.approx(exact.epsilon(DELTA), rel=1e-6)
    assert known.log_delta_estimate(2.0) == pytest.approx(math.log(exact.delta(2.0)), rel=1e-6)
    assert unknown.epsilon_estimate(math.log(DELTA)) == 0
    assert math.isnan(unknown.log_delta_estimate(2.0))


def test_evidence_keeps_its_best_rung() -> None:
    ladder = Ladder((1, 2, 3), lambda rung: li.notions.GaussianDP(0.5 + abs(rung - 2)))
    found = Evidence(ladder, ladder).after(0.4)
    assert found.ladder is found.notion
    assert found.ladder.best_rung(math.log(DELTA)) == 2
    assert found.notion.epsilon(DELTA) == pytest.approx(
        li.notions.GaussianDP(math.hypot(0.5, 0.4)).epsilon(DELTA), rel=1e-9
    )
