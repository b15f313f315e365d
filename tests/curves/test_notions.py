"""Gaussian, Rényi, profile, trade-off and discretised notions: exact values, arrows that never improve, composition."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lastiterate as li
from lastiterate.curves.notion import Notion
from raising import raises
from references import BOK2024_FIG_1_COMPOSITION, BOK2024_RDP, BOK2024_TABLE_1_CGD
from strategies import deltas, epsilons, mus

GAUSSIAN = li.notions.GaussianDP(mu=1.3)


@pytest.mark.parametrize(("epochs", "exact"), BOK2024_TABLE_1_CGD.items())
def test_gaussian_epsilon_meets_table_1(epochs: int, exact: float) -> None:
    guarantee = li.notions.GaussianDP(mu=2 / 3).compose(epochs)
    lower, upper = guarantee.bracket(1e-5)
    assert math.isclose(upper, exact, rel_tol=2e-10)  # the reference has ten digits
    assert lower <= upper <= lower * (1 + 1e-11)


def test_gaussian_epsilon_does_not_saturate() -> None:
    """μ = 200 at δ = 1e-5 is 20852; an accountant that exponentiates stops at 709.8."""
    assert math.isclose(li.notions.GaussianDP(mu=200.0).epsilon(1e-5), 20852, rel_tol=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), BOK2024_FIG_1_COMPOSITION.items())
def test_gaussian_tradeoff_meets_figure_1(alpha: float, beta: float) -> None:
    assert math.isclose(li.notions.GaussianDP(mu=0.1).compose(160).tradeoff(alpha), beta, rel_tol=1e-10)


@given(mus, deltas)
def test_gaussian_epsilon_and_delta_are_inverse(mu: float, delta: float) -> None:
    guarantee = li.notions.GaussianDP(mu=mu)
    assert guarantee.delta(guarantee.epsilon(delta)) <= delta * (1 + 1e-12)


def test_perfect_privacy() -> None:
    nothing = li.notions.GaussianDP(mu=0.0)
    assert (nothing.epsilon(1e-9), nothing.delta(0.0), nothing.tradeoff(0.25)) == (0.0, 0.0, pytest.approx(0.75))
    assert nothing.compose(10) == nothing


def test_delta_never_rounds_to_zero() -> None:
    assert li.notions.GaussianDP(mu=0.1).delta(1000.0) > 0


@pytest.mark.parametrize(("rho", "published"), BOK2024_RDP.items())
def test_concentrated_conversion_is_no_worse_than_the_published_one(rho: float, published: float) -> None:
    assert li.notions.RenyiDP(rho=rho).epsilon(1e-5) <= published * (1 + 1e-6)


@settings(max_examples=60)
@given(st.floats(0.05, 3.0), epsilons)
def test_renyi_conversion_never_beats_the_gaussian_it_came_from(mu: float, epsilon: float) -> None:
    """ρ = μ²/2 holds for μ-GDP, so what it implies cannot be below the exact profile; and it is below Mironov's bound."""
    curve = li.notions.RenyiDP(rho=mu**2 / 2)
    delta = curve.delta(epsilon)
    assert delta >= li.notions.GaussianDP(mu=mu).delta(epsilon) * (1 - 1e-9)
    orders = np.linspace(1.01, 100.0, 500)
    mironov = float(((orders - 1) * (mu**2 / 2 * orders - epsilon)).min())
    assert delta <= math.exp(min(mironov, 0.0)) * (1 + 1e-9) + 1e-300


def test_a_curve_holds_between_its_orders_with_the_larger_value() -> None:
    curve = li.notions.RenyiDP(orders=[2.0, 8.0], divergences=[0.1, 0.7])
    assert curve.rdp([1.5, 2.0, 3.0, 8.0]).tolist() == [0.1, 0.1, 0.7, 0.7]
    with raises("order_not_known", "order", kind=li.errors.Unavailable, most=8.0):
        curve.rdp(9.0)


def test_a_bound_at_a_larger_order_improves_smaller_ones() -> None:
    assert li.notions.RenyiDP(orders=[2.0, 8.0], divergences=[0.9, 0.7]).rdp(2.0) == 0.7


def test_renyi_composition_adds() -> None:
    curve = li.notions.RenyiDP(orders=[2.0, 8.0], divergences=[0.1, 0.7])
    assert np.allclose(curve.compose(3).rdp([2.0, 8.0]), [0.3, 2.1], rtol=1e-12)
    mixed = li.compose([curve, li.notions.GaussianDP(mu=1.0), li.notions.RenyiDP(rho=0.5)])
    assert np.allclose(mixed.rdp([2.0, 8.0]), [2.1, 8.7], rtol=1e-12)


def test_zero_concentrated_composition_stays_linear() -> None:
    both = li.compose([li.notions.RenyiDP(rho=0.25), li.notions.GaussianDP(mu=1.0)])
    assert isinstance(both, li.notions.RenyiDP)
    assert math.isclose(both.rho or 0.0, 0.75, rel_tol=1e-12)


def test_profile_from_points_is_convex_in_exp_epsilon_and_starts_at_one() -> None:
    profile = li.notions.Profile(epsilons=[1.0, 2.0, 1.5], deltas=[0.1, 1e-3, 0.09])
    grid = np.linspace(0.0, 3.0, 50)
    values = profile.delta(grid)
    assert (np.diff(values) <= 1e-15).all()
    inside = grid <= 2.0
    slopes = np.diff(values[inside]) / np.diff(np.exp(grid[inside]))
    assert (np.diff(slopes) >= -1e-12).all()
    assert profile.delta(1.5) < 0.09
    assert profile.delta(0.0) < 1
    assert profile.delta(7.0) == pytest.approx(1e-3)
    assert profile.epsilon(1e-4) == math.inf


def test_pure_dp_profile_composes_like_randomised_response() -> None:
    """(ε0, 0)-DP is dominated by randomised response, whose k-fold δ is a binomial sum (Kairouz, Oh, Viswanath)."""
    loss, times = 0.5, 20
    pure = li.notions.Profile(epsilons=[0.0, loss], deltas=[math.tanh(loss / 2), 0.0])
    p = math.exp(loss) / (1 + math.exp(loss))
    epsilon = 4.0
    exact = sum(
        math.comb(times, j) * p**j * (1 - p) ** (times - j) * max(0.0, 1 - math.exp(epsilon - loss * (2 * j - times)))
        for j in range(times + 1)
    )
    composed = pure.compose(times).delta(epsilon)
    assert exact <= composed <= exact * 1.01


@pytest.mark.parametrize("times", [1, 4, 64])
def test_a_gaussian_seen_as_a_profile_composes_from_above(times: int) -> None:
    profile = li.notions.Profile(function=lambda e: GAUSSIAN.delta(e))
    exact = GAUSSIAN.compose(times).epsilon(1e-6)
    assert exact * (1 - 1e-12) <= profile.compose(times).epsilon(1e-6) <= exact * (1 + 1e-4)


def test_profile_and_tradeoff_come_back_no_better() -> None:
    alphas = np.linspace(0.0, 1.0, 41)
    through_table = li.notions.Profile(function=lambda e: GAUSSIAN.delta(e)).tradeoff(alphas)
    assert (through_table <= GAUSSIAN.tradeoff(alphas) + 1e-12).all()
    assert (through_table >= GAUSSIAN.tradeoff(alphas) - 1e-3).all()
    curve = li.notions.TradeOff(function=lambda a: GAUSSIAN.tradeoff(a))
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        assert curve.delta(epsilon) >= GAUSSIAN.delta(epsilon) * (1 - 1e-9)
        assert curve.delta(epsilon) <= GAUSSIAN.delta(epsilon) * (1 + 1e-4)
    assert (curve.tradeoff(alphas) <= GAUSSIAN.tradeoff(alphas) + 1e-12).all()


def test_tradeoff_points_claim_only_what_they_say() -> None:
    """Between two points the function is its value at the next one: linear interpolation would claim more."""
    curve = li.notions.TradeOff(type_i_errors=[0.1, 0.5], type_ii_errors=[0.6, 0.2])
    assert curve.tradeoff([0.05, 0.1, 0.3, 0.5, 0.7]).tolist() == [0.6, 0.6, 0.2, 0.2, 0.0]
    with raises("tradeoff_above_guessing", "type_ii_errors", kind=li.errors.InvalidInput):
        li.notions.TradeOff(type_i_errors=[0.5], type_ii_errors=[0.6])


def test_privacy_loss_of_randomised_response() -> None:
    loss = 1.0
    p = math.exp(loss) / (1 + math.exp(loss))
    response = li.notions.PrivacyLoss(first=-loss, spacing=loss, masses=[1 - p, 0.0, p])
    assert response.delta(0.0) == pytest.approx(math.tanh(0.5), rel=1e-9)
    assert response.delta(1.0) == 0.0
    assert response.epsilon(1e-12) <= 1.0
    assert math.isclose(response.compose(10).rdp(2.0), 10 * response.rdp(2.0), rel_tol=1e-9)


def test_privacy_loss_with_mass_at_infinity_has_no_epsilon_below_it() -> None:
    loss = li.notions.PrivacyLoss(first=0.0, spacing=1.0, masses=[0.9], infinite=0.1)
    assert loss.epsilon(0.05) == math.inf
    assert loss.delta(100.0) == pytest.approx(0.1)
    assert loss.rdp(2.0) == math.inf


def test_privacy_losses_of_different_spacing_compose() -> None:
    coarse = li.notions.PrivacyLoss(first=-1.0, spacing=1.0, masses=[0.26894142137, 0.0, 0.73105857863])
    fine = li.notions.Profile(epsilons=[0.0, 0.5], deltas=[0.2, 1e-7]).compose(2)
    both = li.compose([coarse, fine])
    assert both.epsilon(1e-3) >= max(coarse.epsilon(1e-3), fine.epsilon(1e-3)) * (1 - 1e-9)
    assert both.epsilon(1e-3) <= coarse.epsilon(5e-4) + fine.epsilon(5e-4) + 0.01


def test_composition_is_associative_and_counts() -> None:
    a, b, c = li.notions.GaussianDP(0.5), li.notions.GaussianDP(0.7), li.notions.GaussianDP(0.2)
    left, right = li.compose([li.compose([a, b]), c]), li.compose([a, li.compose([b, c])])
    assert math.isclose(left.mu, right.mu, rel_tol=1e-14)
    assert math.isclose(li.compose([a] * 9).mu, a.compose(9).mu, rel_tol=1e-14)
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.02)
    assert li.compose([step.compose(30), step.compose(70)]).epsilon(1e-5) == step.compose(100).epsilon(1e-5)


def test_best_is_no_worse_than_any_and_convex() -> None:
    members: list[Notion] = [
        GAUSSIAN,
        li.notions.RenyiDP(rho=0.3),
        li.notions.Profile(epsilons=[0.1, 3.0], deltas=[0.4, 1e-3]),
    ]
    together = li.notions.best(members)
    grid = np.linspace(0.0, 5.0, 60)
    for member in members:
        assert (together.delta(grid) <= member.delta(grid) * (1 + 1e-12)).all()
        assert together.epsilon(1e-4) <= member.epsilon(1e-4) * (1 + 1e-12)
        assert together.tradeoff(0.2) >= member.tradeoff(0.2) - 1e-12
    crossing = np.linspace(0.0, 3.0, 40)
    slopes = np.diff(together.delta(crossing)) / np.diff(np.exp(crossing))
    assert (np.diff(slopes) >= -1e-3).all()


def test_best_of_two_crossing_profiles_lies_below_both() -> None:
    """Between the points where two profiles touch their common tangent, convexity gives more than either."""
    one = li.notions.Profile(epsilons=[0.0, 1.0, 2.0], deltas=[0.05, 0.05, 0.05])
    two = li.notions.Profile(epsilons=[0.0, 2.0], deltas=[0.4, 0.0])
    together = li.notions.best([one, two])
    assert together.delta(1.2) < min(one.delta(1.2), two.delta(1.2))


def test_adjacency_travels_and_mixing_raises() -> None:
    here, there = li.notions.GaussianDP(1.0), li.notions.GaussianDP(1.0, li.ADD_OR_REMOVE_ONE)
    assert there.compose(3).adjacency is li.ADD_OR_REMOVE_ONE
    for combine in (li.compose, li.notions.best):
        with raises("adjacencies_differ", kind=li.errors.Incompatible):
            combine([here, there])


@pytest.mark.parametrize(
    "guarantee",
    [
        GAUSSIAN,
        li.notions.RenyiDP(rho=0.2),
        li.notions.Profile(epsilons=[0.0, 1.0], deltas=[0.2, 1e-6]),
        li.notions.TradeOff(function=lambda a: GAUSSIAN.tradeoff(a)),
        li.notions.subsampled_gaussian(mu=1.0, inclusion=0.1).compose(200),
        li.notions.best([GAUSSIAN, li.notions.RenyiDP(rho=0.2)]),
    ],
    ids=lambda guarantee: type(guarantee).__name__,
)
def test_every_notion_is_vectorised_and_returns_plain_floats_for_numbers(guarantee: Notion) -> None:
    assert type(guarantee.epsilon(1e-3)) is type(guarantee.delta(1.0)) is type(guarantee.tradeoff(0.3)) is float
    assert guarantee.epsilon(np.array([[1e-3, 1e-2]])).shape == (1, 2)
    assert guarantee.delta([0.5, 1.0, 2.0]).shape == (3,)
    assert guarantee.tradeoff(np.array([])).shape == (0,)
    curve = guarantee.tradeoff(np.linspace(0, 1, 21))
    assert (np.diff(curve) <= 1e-12).all()
    assert curve[-1] == 0.0


@pytest.mark.parametrize("alpha", [1e-300, 1e-40, 1e-20, 1e-9])
def test_gaussian_tradeoff_at_tiny_type_i_errors(alpha: float) -> None:
    """1 − α rounds to 1 there; Φ(Φ⁻¹(1 − α) − μ) must not."""
    with mp.workdps(50):
        quantile = mp.findroot(
            lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - mp.log(alpha), math.sqrt(-2 * math.log(alpha))
        )
        exact = float(mp.erfc((8 - quantile) / mp.sqrt(2)) / 2)
    bound = li.notions.GaussianDP(mu=8.0).tradeoff(alpha)
    assert bound <= exact
    assert math.isclose(bound, exact, rel_tol=1e-9)


def test_a_point_of_a_profile_holds_in_both_orders() -> None:
    """Pure ε-DP has δ(0) = tanh(ε/2), and its composition is the optimal one, below advanced composition."""
    pure = li.notions.Profile(epsilons=[0.1], deltas=[0.0])
    assert pure.delta(0.0) == pytest.approx(math.tanh(0.05), rel=1e-9)
    advanced, _ = li.baselines.advanced_composition(epsilon=0.1, delta=0.0, times=100, slack_delta=1e-5)
    assert pure.compose(100).epsilon(1e-5) < advanced < 10.0


def test_the_tradeoff_of_a_point_honours_it() -> None:
    """f_{ε,δ}(α) = 1 − δ − e^ε·α for small α, whatever δ."""
    for delta in (0.0, 1e-12, 1e-3):
        assert li.notions.Profile(epsilons=[1.0], deltas=[delta]).tradeoff(0.1) == pytest.approx(
            1 - delta - 0.1 * math.e, rel=1e-9
        )


def test_dp_sgd_composes_with_zero_concentrated_dp() -> None:
    run = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(1000)
    both = li.compose([run, li.notions.RenyiDP(rho=0.1, adjacency=li.ADD_OR_REMOVE_ONE)])
    assert run.epsilon(1e-5) < both.epsilon(1e-5) < run.epsilon(5e-6) + li.notions.RenyiDP(rho=0.1).epsilon(5e-6) + 1.0


def test_an_impossible_loss_is_refused() -> None:
    with raises("not_a_privacy_loss", "masses", kind=li.errors.InvalidInput):
        li.notions.PrivacyLoss(first=-1.0, spacing=2.0, masses=[0.5, 0.5])


@pytest.mark.parametrize("epsilon", [1e8, 1e160, 1e300])
def test_huge_epsilon_is_answered_at_once(epsilon: float) -> None:
    run = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(1000)
    for guarantee in (li.notions.GaussianDP(mu=1.0), li.notions.RenyiDP(rho=0.5), run):
        assert 0 < guarantee.delta(epsilon) < 1e-300
