"""Gaussian guarantees from formulas of a few operations."""

from __future__ import annotations

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.numerics.rounding import up

LEAST = 1e-300  # what rounds to 0 is not perfect privacy


def gaussian(mu: float) -> GaussianDP:
    """μ-GDP, rounded up, and never perfect privacy."""
    return GaussianDP(max(up(mu), LEAST))
