"""Composed subsampled Gaussians: certified brackets around values that mpmath computed independently."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import lastiterate as li
from lastiterate.numerics.normal_gap import log_gap
from raising import raises
from reference_by_mpmath import REMOVE, Instance
from references import (
    BOK2024_TABLE_1_SGD,
    BOK2024_TABLE_3_CLT,
    EPSILONS_BY_MPMATH,
    INSTANCES_WITH_DELTA,
    composed,
)
from strategies import counts, deltas, kinds, mus, rates


@pytest.mark.parametrize(("instance", "exact"), INSTANCES_WITH_DELTA)
def test_delta_bracket_holds_the_exact_value(instance: Instance, exact: float) -> None:
    guarantee = composed(instance)
    lower, upper = guarantee.delta_bracket(float(instance.epsilon))
    assert upper >= exact * (1 - 1e-12)
    if instance.kind != REMOVE:  # the other order of the pair is the worse one there
        assert lower <= exact * (1 + 1e-12)
        assert upper <= exact * (1 + 1e-6)


def test_remove_order_alone() -> None:
    instance, exact = next(pair for pair in INSTANCES_WITH_DELTA if pair[0].kind == REMOVE)
    order = composed(instance)._orders[1]
    epsilon = float(instance.epsilon)
    assert order.log_lower(epsilon) <= math.log(exact) <= order.log_upper(epsilon)
    assert order.log_upper(epsilon) - order.log_lower(epsilon) < 1e-8


@pytest.mark.parametrize(("steps", "exact"), EPSILONS_BY_MPMATH.items())
def test_epsilon_lies_just_above_the_exact_one(steps: int, exact: float) -> None:
    guarantee = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(steps)
    lower, upper = guarantee.bracket(1e-5)
    assert lower <= exact * (1 + 1e-10)
    assert exact * (1 - 1e-10) <= upper <= exact * (1 + 1e-8)
    assert guarantee.epsilon(1e-5) == upper


@pytest.mark.parametrize(("epochs", "estimate"), BOK2024_TABLE_1_SGD.items())
def test_fixed_size_meets_the_published_estimate(epochs: int, estimate: float) -> None:
    step = li.notions.subsampled_gaussian(
        mu=2 / 3, inclusion=0.025, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    lower, upper = step.compose(40 * epochs).bracket(1e-5)
    assert upper - lower < 1e-8
    assert math.isclose(upper, estimate, rel_tol=1e-7)


def test_fixed_size_lies_strictly_between_the_poisson_order_and_the_clt() -> None:
    """The symmetrised curve is not the one-sided Poisson curve, and the CLT is not a bound (errata E4.7)."""
    fixed = li.notions.subsampled_gaussian(
        mu=2 / 3, inclusion=0.025, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    poisson = li.notions.subsampled_gaussian(mu=2 / 3, inclusion=0.025)
    clt = li.notions.GaussianDP(BOK2024_TABLE_3_CLT[50])
    epsilon = fixed.compose(2000).epsilon(1e-5)
    assert poisson.compose(2000).epsilon(1e-5) < epsilon < clt.epsilon(1e-5)


def test_one_step_is_the_formula() -> None:
    """δ(ε) = q·θ_{ε'}(μ), e^{ε'} = 1 + (e^ε − 1)/q, by GaussianDP itself."""
    for sampling, adjacency in ((li.notions.POISSON, li.ADD_OR_REMOVE_ONE), (li.notions.FIXED_SIZE, li.REPLACE_ONE)):
        step = li.notions.subsampled_gaussian(mu=1.5, inclusion=0.2, sampling=sampling, adjacency=adjacency)
        for epsilon in (0.0, 0.3, 2.0):
            inner = math.log1p(math.expm1(epsilon) / 0.2)
            assert math.isclose(step.delta(epsilon), 0.2 * li.notions.GaussianDP(1.5).delta(inner), rel_tol=1e-11)


def test_inclusion_one_is_the_gaussian_mechanism() -> None:
    assert li.notions.subsampled_gaussian(mu=0.7, inclusion=1.0) == li.notions.GaussianDP(0.7, li.ADD_OR_REMOVE_ONE)


def test_inclusion_near_one_approaches_the_gaussian_mechanism() -> None:
    near = li.notions.subsampled_gaussian(mu=0.2, inclusion=0.999999).compose(100)
    assert math.isclose(near.epsilon(1e-6), li.notions.GaussianDP(2.0).epsilon(1e-6), rel_tol=1e-5)
    assert near.epsilon(1e-6) < li.notions.GaussianDP(2.0).epsilon(1e-6)


@pytest.mark.parametrize("sampling", [li.notions.POISSON, li.notions.FIXED_SIZE])
@pytest.mark.parametrize("times", [2, 5, 20, 60])
def test_few_steps_have_a_valid_bracket_that_lattice_and_contour_agree_on(
    sampling: li.notions.Sampling, times: int
) -> None:
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.1, sampling=sampling, adjacency=li.REPLACE_ONE)
    lower, upper = step.compose(times).bracket(np.array([1e-10, 1e-5, 1e-2]))
    assert (lower <= upper).all()
    assert (upper - lower <= 2e-3 * upper).all()


@settings(max_examples=40)
@given(mus, rates, counts, kinds, deltas)
def test_brackets_are_ordered_and_narrow(
    mu: float, rate: float, times: int, kind: tuple[li.notions.Sampling, li.notions.Adjacency], delta: float
) -> None:
    step = li.notions.subsampled_gaussian(mu=mu, inclusion=rate, sampling=kind[0], adjacency=kind[1])
    guarantee = step.compose(times)
    lower, upper = guarantee.bracket(delta)
    assert 0 <= lower <= upper < math.inf
    assert guarantee.delta_bracket(upper)[0] <= delta * (1 + 1e-9)
    if lower > 0:
        assert guarantee.delta_bracket(lower)[1] >= delta * (1 - 1e-9)


@settings(max_examples=12)
@given(mus, rates, counts, kinds)
def test_epsilon_is_monotone_and_continuous_in_delta(
    mu: float, rate: float, times: int, kind: tuple[li.notions.Sampling, li.notions.Adjacency]
) -> None:
    guarantee = li.notions.subsampled_gaussian(mu=mu, inclusion=rate, sampling=kind[0], adjacency=kind[1]).compose(
        times
    )
    grid = np.geomspace(1e-30, 0.5, 16)
    epsilons = guarantee.epsilon(grid)
    assert (np.diff(epsilons) <= 1e-7 * epsilons[:-1]).all()
    # Near every δ a step fifty times shorter moves ε by less than a tenth as much: there are no jumps.
    for delta in (1e-25, 1e-17, 1e-8, 1e-3):
        before, here, after = guarantee.epsilon([delta / 1.05, delta, delta * 1.001])
        assert -1e-7 * here <= here - after <= 0.1 * (before - here) + 1e-6 * here


@pytest.mark.parametrize("kind", [(li.notions.POISSON, li.ADD_OR_REMOVE_ONE), (li.notions.FIXED_SIZE, li.REPLACE_ONE)])
def test_more_noise_fewer_steps_and_rarer_inclusion_help(
    kind: tuple[li.notions.Sampling, li.notions.Adjacency],
) -> None:
    def epsilon(mu: float = 1.0, rate: float = 0.02, times: int = 1000) -> float:
        step = li.notions.subsampled_gaussian(mu=mu, inclusion=rate, sampling=kind[0], adjacency=kind[1])
        return float(step.compose(times).epsilon(1e-6))

    assert epsilon(mu=0.9) < epsilon() < epsilon(mu=1.1)
    assert epsilon(times=900) < epsilon() < epsilon(times=1100)
    assert epsilon(rate=0.019) < epsilon() < epsilon(rate=0.021)


def test_huge_numbers_of_steps_and_large_epsilon() -> None:
    """k = 10⁹; ε near 10⁴; the ends of the range of δ. The bracket is a millionth wide or less."""
    for mu, rate, times in ((1.0, 1e-5, 10**9), (1.0, 0.01, 10**8), (0.5, 0.5, 10**5)):
        guarantee = li.notions.subsampled_gaussian(mu=mu, inclusion=rate).compose(times)
        lower, upper = guarantee.bracket(np.array([1e-30, 1e-15, 1e-5, 0.4]))
        assert (lower <= upper).all()
        assert (upper - lower <= 1e-6 * upper).all()


def test_far_below_where_round_off_breaks_an_fft() -> None:
    """δ = 1e-14 and 1e-18, multiplier 1, rate 0.01, 10⁴ steps; mpmath says δ(11.3) = 1.0178e-14, δ(17.6) = 1.2541e-30."""
    guarantee = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(10**4)
    assert math.isclose(guarantee.epsilon(1.0178482632443e-14), 11.3, rel_tol=1e-9)
    assert math.isclose(guarantee.epsilon(1.254103727732e-30), 17.6, rel_tol=1e-7)


def test_heterogeneous_equals_homogeneous_where_all_are_equal() -> None:
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01)
    assert li.compose([step] * 500).epsilon(1e-6) == step.compose(500).epsilon(1e-6)


def test_different_steps_lie_between_their_extremes() -> None:
    draw = np.random.default_rng(1)
    steps = [
        li.notions.subsampled_gaussian(mu=m, inclusion=q)
        for m, q in zip(draw.uniform(0.5, 1, 200), draw.uniform(0.01, 0.02, 200), strict=True)
    ]
    lower, upper = li.compose(steps).bracket(1e-6)
    assert li.notions.subsampled_gaussian(mu=0.5, inclusion=0.01).compose(200).epsilon(1e-6) < lower
    assert upper < li.notions.subsampled_gaussian(mu=1.0, inclusion=0.02).compose(200).epsilon(1e-6)
    assert upper - lower < 1e-6


def test_plain_gaussian_steps_compose_with_subsampled_ones() -> None:
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(1000)
    release = li.notions.GaussianDP(0.5, li.ADD_OR_REMOVE_ONE)
    both = li.compose([step, release])
    lower, upper = both.bracket(1e-5)
    assert max(step.epsilon(1e-5), release.epsilon(1e-5)) < lower <= upper
    assert upper < step.epsilon(5e-6) + release.epsilon(5e-6)
    assert upper - lower < 1e-6


def test_profile_of_many_epsilons_is_convex_in_exp_epsilon() -> None:
    guarantee = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(3000)
    epsilons = np.linspace(0.0, 6.0, 60)
    slopes = np.diff(guarantee.delta(epsilons)) / np.diff(np.exp(epsilons))
    assert (slopes < 0).all()
    assert (np.diff(slopes) >= -1e-7 * np.abs(slopes[:-1])).all()


@given(st.floats(1.01, 60.0), mus, rates)
@settings(max_examples=40)
def test_rdp_at_integer_orders_is_the_binomial_sum(order: float, mu: float, rate: float) -> None:
    """Mironov2019: (1/(α−1))·log Σ C(α, j)(1−q)^{α−j}q^j e^{j(j−1)μ²/2}, summed in logarithms."""
    whole = max(2, round(order))
    j = np.arange(whole + 1)
    log_binomial = np.array([math.lgamma(whole + 1) - math.lgamma(i + 1) - math.lgamma(whole - i + 1) for i in j])
    log_terms = log_binomial + (whole - j) * math.log1p(-rate) + j * math.log(rate) + j * (j - 1) * mu**2 / 2
    exact = float(np.logaddexp.reduce(log_terms)) / (whole - 1)
    computed = li.baselines.sampled_gaussian_rdp(mu=mu, inclusion=rate, order=whole)
    assert computed >= exact * (1 - 1e-9) - 1e-12
    assert math.isclose(computed, exact, rel_tol=1e-8, abs_tol=1e-11)


def test_rdp_is_increasing_between_integer_orders() -> None:
    values = li.baselines.sampled_gaussian_rdp(mu=1.0, inclusion=0.01, order=np.linspace(1.1, 20.0, 40))
    assert (np.diff(values) > 0).all()


def test_rdp_implies_no_smaller_epsilon_than_the_loss_itself() -> None:
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(1000)
    orders = np.linspace(1.5, 40.0, 80)
    curve = li.notions.RenyiDP(orders=orders, divergences=step.rdp(orders), adjacency=step.adjacency)
    assert curve.epsilon(1e-5) > step.epsilon(1e-5)


def test_fixed_size_under_add_or_remove_is_refused() -> None:
    with raises("fixed_size_add_or_remove", "adjacency", kind=li.errors.InvalidInput):
        li.notions.subsampled_gaussian(
            mu=1.0, inclusion=0.1, sampling=li.notions.FIXED_SIZE, adjacency=li.ADD_OR_REMOVE_ONE
        )


@pytest.mark.parametrize("delta", [1e-20, 1e-5, 0.003])
def test_one_step_has_a_bracket_of_rounding_errors_only(delta: float) -> None:
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01)
    lower, upper = step.bracket(delta)
    assert 0 < lower <= upper <= lower * (1 + 1e-10)
    below, above = step.delta_bracket(upper)
    assert below <= delta * (1 + 1e-12)
    assert above >= delta * (1 - 1e-9)


@pytest.mark.parametrize(
    ("mu", "rate", "times"), [(30.0, 0.01, 100), (1000.0, 0.1, 10), (1e-9, 0.1, 100), (1.0, 1e-12, 100)]
)
def test_extreme_settings_are_answered_soundly(mu: float, rate: float, times: int) -> None:
    """Never above what holds without sampling, never below what one step alone costs."""
    step = li.notions.subsampled_gaussian(mu=mu, inclusion=rate)
    lower, upper = step.compose(times).bracket(1e-5)
    assert lower <= upper <= li.notions.GaussianDP(mu).compose(times).epsilon(1e-5) * (1 + 1e-9) + 1e-9
    assert upper >= li.notions.subsampled_gaussian(mu=min(mu, 100.0), inclusion=rate).bracket(1e-5)[0]


@pytest.mark.parametrize("steps", [10**10 + 1, 10**12])
def test_of_too_many_steps_sampling_is_left_out(steps: int) -> None:
    """An upper bound in every form, above that of the most steps whose errors are counted; the lower ends are given up."""
    step = li.notions.subsampled_gaussian(mu=1e-4, inclusion=0.1)
    composed, plain = step.compose(steps), li.notions.GaussianDP(1e-4).compose(steps)
    assert composed.bracket(1e-5) == (0.0, pytest.approx(plain.epsilon(1e-5), rel=1e-9))
    assert composed.epsilon(1e-5) >= step.compose(10**10).epsilon(1e-5)
    assert composed.delta(5.0) >= plain.delta(5.0) * (1 - 1e-9)
    assert composed.delta_bracket(5.0)[0] == 0
    assert composed.rdp(2.0) >= plain.rdp(2.0) * (1 - 1e-9)


@pytest.mark.parametrize("sampling", [li.notions.FIXED_SIZE, li.notions.POISSON])
@pytest.mark.parametrize(
    ("mu", "inclusion", "steps"), [(0.5, 0.01, 2), (0.5, 0.04, 13), (0.1, 0.01, 100), (1.0, 0.01, 1000)]
)
def test_a_whole_curve_is_above_every_lower_end_and_nearly_as_sharp(
    mu: float, inclusion: float, steps: int, sampling: li.notions.Sampling
) -> None:
    given = li.notions.subsampled_gaussian(
        mu=mu, inclusion=inclusion, sampling=sampling, adjacency=li.REPLACE_ONE
    ).compose(steps)
    assert isinstance(given, li.notions.SubsampledGaussians)
    largest = given.epsilon_estimate(math.log(1e-17))
    epsilons = largest * np.linspace(0.0, 1.0, 9) ** 1.5
    curve = given.delta_curve(epsilons, math.log(1e-17))
    lower, upper = given.delta_bracket(epsilons)
    assert (curve >= lower).all()
    assert (curve <= upper * 1.03 + 1e-17).all()


@pytest.mark.parametrize(("delta", "inclusion", "times"), [(1e-30, 0.5, 3), (1e-9, 0.01, 1), (1e-300, 0.3, 100)])
def test_a_mu_that_is_not_known_to_meet_the_target_is_not_returned(delta: float, inclusion: float, times: int) -> None:
    """At epsilon = 0 bounds on sampled steps have a floor, which no noise gets below."""
    with raises("no_noise_known", kind=li.errors.Unavailable, epsilon=0.0):
        li.notions.largest_mu(epsilon=0.0, delta=delta, inclusion=inclusion, times=times)


def two_steps_by_quadrature(mu: float, rate: float, epsilon: float) -> float:
    """E θ(ε − L(x)) over one step's x, with the profile of the other; the other order is smaller."""
    points, width = np.linspace(-10.0, 12.0 + mu, 400_001, retstep=True)
    ratio = 1 - rate + rate * np.exp(mu * points - mu**2 / 2)
    masses = ratio * np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi) * width
    levels = epsilon - np.log(ratio)
    away = np.minimum(np.exp(levels), 1.0)  # below 0 the profile is 1 − e^l + e^l·(other order at −l)
    inner = np.log1p(np.expm1(np.maximum(levels, 1e-300)) / rate)
    above = rate * np.exp(log_gap(inner, mu))
    # At −l the other order is E(1 − e^{−l}Λ)₊ = e^{−l}·E(Λ − e^l)₊ + 1 − e^{−l}, and E(Λ − e^l)₊ is what is wanted itself.
    below_at = mu / 2 + np.log(np.maximum(np.expm1(np.minimum(levels, 0.0)) / rate + 1, 1e-300)) / mu
    below = (1 - rate) * ndtr(-below_at) + rate * ndtr(mu - below_at) - away * ndtr(-below_at)
    return float(masses @ np.where(levels > 0, above, below))


@pytest.mark.parametrize(
    ("mu", "rate", "epsilon"), [(0.667, 5.8e-6, 1e-4), (0.667, 5.8e-6, 4e-4), (1.0, 1e-4, 0.01), (2.0, 1e-6, 0.02)]
)
def test_two_steps_at_tiny_rates_are_what_quadrature_says(mu: float, rate: float, epsilon: float) -> None:
    exact = two_steps_by_quadrature(mu, rate, epsilon)
    found = li.notions.subsampled_gaussian(mu=mu, inclusion=rate).compose(2).delta(epsilon)
    assert exact * (1 - 1e-6) <= found <= exact * (1 + 5e-3)


@pytest.mark.parametrize(("delta", "others"), [(1e-10, 2.07748e-4), (1e-12, 3.01989e-4), (1e-14, 4.73929e-4)])
def test_few_steps_at_a_tiny_rate(delta: float, others: float) -> None:
    """dp-accounting 0.6.0: pld.from_gaussian_mechanism(1/.667, sampling_prob=5.8e-6, value_discretization_interval=1e-7,
    use_connect_dots=True).self_compose(72).get_epsilon_for_delta(delta), which charges its tails at 1e-15."""
    lower, upper = li.notions.subsampled_gaussian(mu=0.667, inclusion=5.8e-6).compose(72).bracket(delta)
    assert lower <= upper <= others * (1 + 1e-3)
    assert upper >= others * (1 - 2e-2)


@pytest.mark.parametrize("seed", range(12))
def test_the_delta_of_an_epsilon_is_at_most_the_delta_it_was_asked_for(seed: int) -> None:
    source = np.random.default_rng(seed)
    mu, rate, delta = (float(10 ** source.uniform(*ends)) for ends in ((-1, 0.7), (-6.5, -0.3), (-15, -3)))
    adjacency = (li.ADD_OR_REMOVE_ONE, li.REPLACE_ONE)[int(source.integers(2))]
    sampled = li.notions.subsampled_gaussian(mu=mu, inclusion=rate, adjacency=adjacency)
    composed_steps = sampled.compose(int(10 ** source.uniform(0.4, 2.7)))
    assert composed_steps.delta(composed_steps.epsilon(delta)) <= delta * (1 + 1e-9)
