"""Textbook accountants: their formulas, their ranges, and that the sharper notions beat them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from raising import raises
from references import BOK2024_TABLE_3_CLT


def test_advanced_composition_is_not_its_printed_simplification() -> None:
    """Boninsegna2023 after Theorem II.3: ε = 0.5, k = 1000, δ' = 1e-5 gives 400.2, not 151.7 (errata E1.3)."""
    epsilon, delta = li.baselines.advanced_composition(epsilon=0.5, delta=0.0, times=1000, slack_delta=1e-5)
    assert epsilon == pytest.approx(400.2, abs=0.05)
    assert delta == 1e-5


def test_advanced_composition_never_exceeds_basic_composition() -> None:
    assert li.baselines.advanced_composition(epsilon=2.0, delta=1e-6, times=3, slack_delta=1e-6)[0] == 6.0


def test_amplification_by_subsampling() -> None:
    """(qε, qδ) would be 0.01 at ε = 1, q = 0.01; the theorem says 0.01704 (errata E1.4)."""
    epsilon, delta = li.baselines.amplification_by_subsampling(epsilon=1.0, delta=1e-5, inclusion=0.01)
    assert epsilon == pytest.approx(0.01704, abs=1e-5)
    assert delta == pytest.approx(1e-7)


def test_classical_noise_suffices_and_is_more_than_needed() -> None:
    noise = li.baselines.classical_gaussian_noise(epsilon=0.5, delta=1e-5)
    assert li.notions.GaussianDP(1 / noise).epsilon(1e-5) < 0.5
    assert li.baselines.analytic_gaussian_noise(epsilon=0.5, delta=1e-5) < noise
    with raises("classical_noise_epsilon", "epsilon", kind=li.errors.Unavailable, epsilon=1.0):
        li.baselines.classical_gaussian_noise(epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 10.0, 300.0])
def test_analytic_noise_is_the_least(epsilon: float) -> None:
    noise = li.baselines.analytic_gaussian_noise(epsilon=epsilon, delta=1e-6, sensitivity=2.0)
    assert li.notions.GaussianDP(2 / noise).epsilon(1e-6) <= epsilon + 1e-12
    assert li.notions.GaussianDP(2 / (noise * (1 - 1e-6))).delta(epsilon) > 1e-6


def test_closed_form_lies_above_the_exact_divergence_inside_its_range() -> None:
    for inclusion, mu, order in ((0.01, 0.2, 2.0), (0.001, 0.25, 8.0), (0.1, 0.1, 4.0)):
        closed = li.baselines.sampled_gaussian_rdp_closed_form(mu=mu, inclusion=inclusion, order=order)
        assert closed >= li.baselines.sampled_gaussian_rdp(mu=mu, inclusion=inclusion, order=order)


@pytest.mark.parametrize(
    ("mu", "inclusion", "order", "field", "most"),
    [
        (0.1, 0.21, 2.0, "inclusion", 0.2),
        (0.26, 0.1, 2.0, "mu", 0.25),
        (0.25, 0.2, 50.0, "order", None),
        (0.25, 1e-3, 40.0, "order", None),
    ],
)
def test_closed_form_refuses_outside_its_range(
    mu: float, inclusion: float, order: float, field: str, most: float | None
) -> None:
    with raises("closed_form_range", field, kind=li.errors.Unavailable, **({"most": most} if most else {})):
        li.baselines.sampled_gaussian_rdp_closed_form(mu=mu, inclusion=inclusion, order=order)


def test_moments_accountant_lies_above_the_loss_distribution() -> None:
    step = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01)
    moments = np.arange(1.0, 33.0)
    log_moments = 1000 * moments * step.rdp(moments + 1)
    for epsilon in (1.0, 2.0, 4.0):
        delta = li.baselines.moments_accountant(log_moments=log_moments, moments=moments, epsilon=epsilon)
        assert delta >= step.compose(1000).delta(epsilon)


@pytest.mark.parametrize(("epochs", "mu"), BOK2024_TABLE_3_CLT.items())
def test_clt_estimate_meets_table_3(epochs: int, mu: float) -> None:
    assert math.isclose(li.baselines.clt_mu_estimate(mu=2 / 3, inclusion=0.025, times=40 * epochs), mu, rel_tol=1e-12)


@pytest.mark.parametrize(("epsilon", "multiplier"), [(1.0, 1.029574), (8.0, 0.519688)])
def test_calibrated_noise_meets_the_target_and_is_the_least(epsilon: float, multiplier: float) -> None:
    """The smallest multipliers at δ = 1e-5, rate 0.004, 2500 steps."""
    mu = li.notions.largest_mu(epsilon=epsilon, delta=1e-5, inclusion=0.004, times=2500)
    assert 1 / mu == pytest.approx(multiplier, rel=1e-6)
    assert li.notions.subsampled_gaussian(mu=mu, inclusion=0.004).compose(2500).epsilon(1e-5) <= epsilon
    more = li.notions.subsampled_gaussian(mu=mu * (1 + 1e-6), inclusion=0.004).compose(2500)
    assert more.bracket(1e-5)[0] > epsilon


@pytest.mark.parametrize(
    "kind",
    [
        (li.notions.POISSON, li.REPLACE_ONE),
        (li.notions.FIXED_SIZE, li.REPLACE_ONE),
        (li.notions.POISSON, li.ADD_OR_REMOVE_ONE),
    ],
)
@pytest.mark.parametrize(("inclusion", "times"), [(0.3, 5), (0.01, 400), (1.0, 10)])
def test_calibration_meets_its_target_for_every_kind(
    kind: tuple[li.notions.Sampling, li.notions.Adjacency], inclusion: float, times: int
) -> None:
    sampling, adjacency = kind
    mu = li.notions.largest_mu(
        epsilon=2.0, delta=1e-6, inclusion=inclusion, times=times, sampling=sampling, adjacency=adjacency
    )
    step = li.notions.subsampled_gaussian(mu=mu, inclusion=inclusion, sampling=sampling, adjacency=adjacency)
    assert 2.0 * (1 - 1e-3) <= step.compose(times).epsilon(1e-6) <= 2.0 * (1 + 1e-9)
