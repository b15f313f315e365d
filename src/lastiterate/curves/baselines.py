"""The textbook accountants that every other number is compared with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, POISSON
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.errors import (
    ABOVE_ONE,
    INSIDE_UNIT,
    NON_NEGATIVE,
    POSITIVE,
    RATE,
    UNIT,
    Unavailable,
    checked_array,
    checked_count,
    checked_lists,
    checked_number,
)
from lastiterate.numerics.arrays import like_input
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.rounding import up

_LARGEST_MU = 26.0  # e^{mu²} = e^676 is a float, e^{27²} is not


def advanced_composition(*, epsilon: float, delta: float, times: int, slack_delta: float) -> tuple[float, float]:
    """Return (ε', δ') of `times` adaptive (ε, δ) releases: ε' = √(2k·ln(1/δ_s))·ε + k·ε(e^ε − 1), δ' = kδ + δ_s.

    Boninsegna2023 Theorem II.3 (Dwork and Roth). The simplification printed after it is false (docs/errata.md, E1.3).
    """
    epsilon, delta = checked_number("epsilon", epsilon, NON_NEGATIVE), checked_number("delta", delta, UNIT)
    slack_delta, k = checked_number("slack_delta", slack_delta, INSIDE_UNIT), checked_count("times", times)
    spread = math.sqrt(2 * k * -math.log(slack_delta)) * epsilon
    drift = k * epsilon * math.expm1(epsilon) if epsilon < 700 else math.inf
    return min(spread + drift, k * epsilon), min(k * delta + slack_delta, 1.0)


def amplification_by_subsampling(*, epsilon: float, delta: float, inclusion: float) -> tuple[float, float]:
    """Return (log(1 + q(e^ε − 1)), qδ): Boninsegna2023 Theorem II.4 (Balle, Barthe and Gaboardi 2018)."""
    epsilon, delta = checked_number("epsilon", epsilon, NON_NEGATIVE), checked_number("delta", delta, UNIT)
    rate = checked_number("inclusion", inclusion, RATE)
    amplified = math.log1p(rate * math.expm1(epsilon)) if epsilon < 700 else epsilon + math.log(rate)
    return up(amplified, operations=2), rate * delta


def sampled_gaussian_rdp(*, mu: float, inclusion: float, order: ArrayLike) -> Any:
    """Rényi divergence of the Poisson-sampled Gaussian, add-or-remove, both orders, at any real order (Mironov2019).

    By certified quadrature, rounded up; integer orders need no case of their own.
    """
    return subsampled_gaussian(mu=mu, inclusion=inclusion, sampling=POISSON, adjacency=ADD_OR_REMOVE_ONE).rdp(order)


def sampled_gaussian_rdp_closed_form(*, mu: float, inclusion: float, order: float) -> float:
    """Return 2q²α·μ², where Mironov2019 Theorem 11 (Boninsegna2023 A.1) allows it; refuse elsewhere, with what fails."""
    mu, rate = checked_number("mu", mu, POSITIVE), checked_number("inclusion", inclusion, RATE)
    order = checked_number("order", order, ABOVE_ONE)
    noise = 1 / mu
    log_term = math.log1p(1 / (rate * (order - 1)))
    first = 0.5 * noise * noise * log_term - 2 * math.log(noise)
    denominator = log_term + math.log(rate * order) + 0.5 * mu * mu
    second = (0.5 * noise * noise * log_term**2 - math.log(5) - 2 * math.log(noise)) / denominator
    for holds, name, value, most in (
        (rate <= 0.2, "inclusion", rate, 0.2),
        (noise >= 4, "mu", mu, 0.25),
        (order <= first, "order", order, first),
        (denominator > 0 and order <= second, "order", order, second),
    ):
        if not holds:
            raise Unavailable("closed_form_range", field=name, value=value, most=most)
    return up(2 * rate**2 * order * mu * mu, operations=5)


def moments_accountant(*, log_moments: ArrayLike, moments: ArrayLike, epsilon: ArrayLike) -> Any:
    """Return δ = min_λ exp(α(λ) − λε) from composed log moments: Boninsegna2023 Theorem IV.1 (Abadi 2016).

    `log_moments` are the sums of the steps' α(λ) at the λ in `moments`; α(λ) = λ·rdp(λ + 1).
    """
    lambdas, logs = checked_lists(("moments", moments, POSITIVE), ("log_moments", log_moments, NON_NEGATIVE))
    epsilons = checked_array("epsilon", epsilon, NON_NEGATIVE).ravel()
    exponents = logs - lambdas * epsilons[:, None]
    return like_input(np.minimum(up(np.exp(exponents.min(axis=1)), operations=500), 1.0), epsilon)


def classical_gaussian_noise(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return √(2 ln(1.25/δ))·sensitivity/ε, for ε < 1 only: Boninsegna2023 Theorem II.2 (§III-A misplaces ε, E1.4)."""
    delta = checked_number("delta", delta, INSIDE_UNIT)
    sensitivity, epsilon = (
        checked_number("sensitivity", sensitivity, POSITIVE),
        checked_number("epsilon", epsilon, POSITIVE),
    )
    if epsilon >= 1:
        raise Unavailable("classical_noise_epsilon", field="epsilon", epsilon=epsilon)
    return up(math.sqrt(2 * math.log(1.25 / delta)) * sensitivity / epsilon, operations=5)


def analytic_gaussian_noise(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The least noise of the Gaussian mechanism for (ε, δ), any ε ≥ 0, rounded up (Balle and Wang 2018)."""
    epsilon, delta = checked_number("epsilon", epsilon, NON_NEGATIVE), checked_number("delta", delta, INSIDE_UNIT)
    sensitivity = checked_number("sensitivity", sensitivity, POSITIVE)
    return up(sensitivity / float(shift_below(math.log(delta), epsilon)), operations=2)


def clt_mu_estimate(*, mu: float, inclusion: float, times: int) -> float:
    """Return an ESTIMATE, not a bound: the μ that C_p(G(μ))^{⊗k} approaches, Bok2024 Lemma A.5."""
    from scipy.special import ndtr

    mu, rate = checked_number("mu", mu, POSITIVE), checked_number("inclusion", inclusion, RATE)
    if mu > _LARGEST_MU:
        return math.inf
    inner = math.exp(mu**2) * ndtr(1.5 * mu) + 3 * ndtr(-0.5 * mu) - 2
    return math.sqrt(2 * checked_count("times", times) * inner) * rate
