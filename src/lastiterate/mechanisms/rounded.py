"""Gaussian guarantees from formulas of a few operations."""

from __future__ import annotations

from lastiterate.privacy.gaussian import GaussianDP

UP = 1 + 1e-12
LEAST = 1e-300  # what rounds to 0 is not perfect privacy


def gaussian(mu: float) -> GaussianDP:
    """μ-GDP, rounded up, and never perfect privacy."""
    return GaussianDP(max(mu * UP, LEAST))
