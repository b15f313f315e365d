"""How far apart one noiseless step can move two iterates: exact Lipschitz constants (the clipped one: errata E2.2)."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.runs.losses import Loss


def step_lipschitz(
    loss: Loss, clipped: bool, step_sizes: Floats, decay: Floats, shares: tuple[Floats | float, ...]
) -> Floats:
    """The constant of x ↦ (1 − decay)·x − step_size·share·(mean gradient), for the worst share of a full batch."""
    if not math.isfinite(loss.smoothness):
        return np.full_like(step_sizes, np.inf)
    if clipped and not loss.keeps_convexity:
        return _clipped(loss, step_sizes * shares[1], decay)
    bottom = 0.0 if clipped else loss.curvature
    corners = [share * bound for share in shares for bound in (bottom, loss.smoothness)]
    worst = np.zeros_like(step_sizes)
    for curvature in corners:
        worst = np.maximum(worst, np.abs(1 - decay - step_sizes * curvature))
    return _rounded_up(worst)


def _clipped(loss: Loss, step_sizes: Floats, decay: Floats) -> Floats:
    """(1 − λ)·L_clip(η/(1 − λ)); where the decay turns the iterate round, only the triangle inequality is left."""
    weak = max(-loss.curvature, 0.0)
    shrink = 1 - decay
    turned = np.abs(shrink) + step_sizes * max(weak, loss.smoothness)
    positive = np.where(shrink > 0, shrink, 1.0)
    return _rounded_up(
        np.where(shrink > 0, positive * clipped_constant(weak, loss.smoothness, step_sizes / positive), turned)
    )


def clipped_constant(weak_convexity: float, smoothness: float, step_sizes: Floats) -> Floats:
    """The exact Lipschitz constant of x ↦ x − η·clip(∇f(x)) over all f with Hessian in [−weak_convexity, smoothness]."""
    half_gap, half_sum = (smoothness - weak_convexity) / 2, (smoothness + weak_convexity) / 2
    plain = np.maximum(1 + step_sizes * weak_convexity, step_sizes * smoothness - 1)
    # In units of 2/η, so that no square can overflow; outside (0, 1) the gap gives no product: the plain constant is left.
    gap, total = np.clip(step_sizes * (half_gap / 2), 0.0, 1.0), step_sizes * (half_sum / 2)
    product = gap * (1 - gap)
    curved = (product > 0) & (total * np.abs(2 * gap - 1) <= 2 * product)
    inside = np.where(curved, total, 0.0)
    return np.where(curved, np.sqrt(1 + inside * (inside / np.where(curved, product, 1.0))), plain)


def _rounded_up(constants: Floats) -> Floats:
    """Two ulps up, and two of the products that were taken from 1; 1 is exact, because it comes from a zero curvature."""
    return np.where(constants == 1.0, 1.0, constants * (1 + 2.0**-51) + 2.0**-52)
