"""The arrows between notions that are formulas. None ever improves a guarantee."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx

from lastiterate.numerics.arrays import Floats


def renyi_to_log_delta(order: ArrayLike, divergence: ArrayLike, epsilon: ArrayLike) -> Floats:
    """log δ at ε from one Rényi bound: the better of two, each ≤ Mironov's e^{(α−1)(ρ − ε)}.

    Balle et al. 2020, Theorem 21: δ = e^{(α−1)(ρ−ε)}·(1 − 1/α)^{α−1}/α.
    Asoodeh et al. 2021, Lemma 1: δ = (e^{(α−1)ρ} − 1)/(α·(e^{(α−1)ε} − 1)), better for small divergences.
    """
    order, divergence, epsilon = (np.asarray(x, float) for x in (order, divergence, epsilon))
    excess = order - 1
    balle = excess * (divergence - epsilon) + excess * np.log1p(-1 / order) - np.log(order)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        asoodeh = log_expm1(excess * divergence) - log_expm1(excess * epsilon) - np.log(order)
    return np.minimum(np.minimum(balle, np.where(np.isnan(asoodeh), np.inf, asoodeh)), 0.0)


def renyi_to_epsilon(order: ArrayLike, divergence: ArrayLike, log_delta: ArrayLike) -> Floats:
    """ε at δ from one Rényi bound: the two formulas of `renyi_to_log_delta`, inverted."""
    order, divergence, log_delta = (np.asarray(x, float) for x in (order, divergence, log_delta))
    excess = order - 1
    balle = divergence + np.log1p(-1 / order) - (log_delta + np.log(order)) / excess
    asoodeh = np.logaddexp(0.0, log_expm1(excess * divergence) - np.log(order) - log_delta) / excess
    return np.maximum(np.minimum(balle, asoodeh), 0.0)


def concentrated_to_log_delta(rho: ArrayLike, epsilon: ArrayLike) -> Floats:
    """log δ at ε for a divergence of ρ·order at every order.

    Bun and Steinke 2016, Lemma 3.5, before its last estimates: P(L > x) ≤ e^{−(x−ρ)²/4ρ} for x ≥ ρ, integrated against
    e^{ε−x}: δ ≤ √(πρ)·e^{−(ε−ρ)²/4ρ}·erfcx((ε + ρ)/(2√ρ)), valid for ε ≥ ρ.
    """
    rho, epsilon = np.asarray(rho, float), np.asarray(epsilon, float)
    integral = 0.5 * np.log(np.pi * rho) + np.log(erfcx((epsilon + rho) / (2 * np.sqrt(rho))))
    return np.where(epsilon >= rho, np.minimum(integral, 0.0) - (epsilon - rho) ** 2 / (4 * rho), 0.0)


def profile_to_tradeoff(epsilons: Floats, deltas: Floats, type_i_errors: Floats) -> Floats:
    """f(α) = max over the given ε of 0, 1 − δ − e^ε·α and e^{−ε}(1 − δ − α)."""
    alpha = type_i_errors[:, None]
    lines = np.maximum(1 - deltas - np.exp(epsilons) * alpha, np.exp(-epsilons) * (1 - deltas - alpha))
    return np.maximum(lines.max(axis=1), 0.0)


def tradeoff_to_delta(type_i_errors: Floats, type_ii_errors: Floats, epsilons: Floats) -> Floats:
    """δ(ε) = sup_α 1 − f(α) − e^ε·α, for f known at increasing points only.

    Between two points f is at least its value at the right one, which is all that a decreasing function promises.
    """
    return polygon_to_delta(np.append(0.0, type_i_errors), np.append(type_ii_errors, 0.0), epsilons)


def polygon_to_delta(type_i_errors: Floats, type_ii_errors: Floats, epsilons: Floats) -> Floats:
    """δ(ε) = sup_α 1 − f(α) − e^ε·α for a polygon f: the supremum is at a vertex."""
    gains, deltas = 1 - type_ii_errors, np.empty_like(epsilons)
    with np.errstate(over="ignore", invalid="ignore"):
        for i, slope in enumerate(np.exp(epsilons)):
            deltas[i] = np.max(gains - np.where(type_i_errors, slope * type_i_errors, 0.0))
    return np.clip(deltas, 0.0, 1.0)


def log_expm1(x: Floats) -> Floats:
    """log(e^x − 1), for x of any size."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(x > 1, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), np.log(np.expm1(np.minimum(x, 1.0))))
