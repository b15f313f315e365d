"""Every noise convention, applied as written to a quadratic: two Gaussians, whose exact μ the account has to meet."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li

RECORDS, CURVATURE, CHANGE, STEPS = 40, 0.3, 3.0, 25
SIZES = np.linspace(0.5, 0.2, STEPS)
NOISES = np.linspace(0.1, 0.3, STEPS)


def exact_mu(step_sizes: np.ndarray, variances: np.ndarray, shrink: float, decay: float) -> float:
    """x ← q·((1 − η·decay)x − η(h·x + mean of g_i) + noise), one g_i replaced: means and variance, step by step."""
    gap, variance = 0.0, 0.0
    for eta, square in zip(step_sizes, variances, strict=True):
        squeeze = 1 / (1 + eta * shrink)
        factor = 1 - eta * (CURVATURE + decay)
        gap = squeeze * (factor * gap + eta * CHANGE / RECORDS)
        variance = squeeze**2 * (factor**2 * variance + square)
    return gap / math.sqrt(variance)


CONVENTIONS = {
    "iterate": (li.OnIterate, lambda eta, std: std**2),
    "mean gradient": (li.OnMeanGradient, lambda eta, std: (eta * std) ** 2),
    "gradient sum": (
        lambda std: li.OnGradientSum(multiplier=std, clip=CHANGE / 2),
        lambda eta, std: (eta / RECORDS * std * CHANGE / 2) ** 2,
    ),
    "langevin": (li.Langevin, lambda eta, std: 2 * eta * std**2),
}


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("shrink", "decay"), [(0.0, 0.0), (0.0, 0.2), (0.4, 0.0), (0.4, 0.2)])
def test_the_account_is_exact_for_quadratics(convention: str, scheduled: bool, shrink: float, decay: float) -> None:
    noise, variance = CONVENTIONS[convention]
    sizes = SIZES if scheduled else np.full(STEPS, 0.4)
    stds = NOISES if scheduled else np.full(STEPS, 0.2)
    # A linear model keeps its convexity when clipped; here nothing is ever longer than the clip.
    loss = li.losses.general(smoothness=CURVATURE, strong_convexity=CURVATURE, gradient_sensitivity=CHANGE)
    if convention == "gradient sum":
        loss = li.losses.Loss("logistic", 0.0, 0.0, CHANGE / 2, CHANGE, keeps_convexity=True, l2=CURVATURE)
    run = li.Run(
        loss,
        li.FullBatch(records=RECORDS),
        sizes if scheduled else 0.4,
        noise(stds) if scheduled else noise(0.2),
        STEPS,
        prox=li.parts.ElasticNet(l1=0.0, l2=shrink) if shrink else None,
        weight_decay=decay,
    )
    exact = exact_mu(sizes, variance(sizes, stds), shrink, decay)
    mu = li.account(run, delta=1e-5).mu
    assert mu is not None
    assert mu >= exact
    if not scheduled:
        assert mu == pytest.approx(exact, rel=1e-9)
