"""Tests of laws by random draws: at a level that is never met by chance, and with the power of each test computed."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom, chi2, ncx2

LEVEL = 1e-9  # of each test, two-sided: how often it fails although nothing is wrong
POWER = 0.999  # how often it has to fail where something is


def as_likely(count: int, trials: int, rate: float) -> bool:
    """Whether so many of independent trials may have this rate, by the exact binomial test."""
    low, high = _usual(trials, rate)
    return bool(low <= count <= high)


def power_of_counts(trials: int, rate: float, other: float) -> float:
    """How often `as_likely` refuses a rate, if another is the true one."""
    low, high = _usual(trials, rate)
    return float(binom.cdf(low - 1, trials, other) + binom.sf(high, trials, other))


def _usual(trials: int, rate: float) -> tuple[float, float]:
    return binom.ppf(LEVEL / 2, trials, rate), binom.isf(LEVEL / 2, trials, rate)


def of_these_cells(counts: np.ndarray, probabilities: np.ndarray) -> bool:
    """Whether draws that fell into cells so often may have these probabilities: χ², for cells with many draws each."""
    expected = counts.sum() * probabilities
    assert expected.min() >= 25
    distance = float((np.square(counts - expected) / expected).sum())
    return bool(chi2.isf(1 - LEVEL / 2, len(counts) - 1) <= distance <= chi2.isf(LEVEL / 2, len(counts) - 1))


def power_of_cells(draws: int, probabilities: np.ndarray, others: np.ndarray) -> float:
    """How often `of_these_cells` refuses, if the probabilities are others."""
    shift = draws * float((np.square(others - probabilities) / probabilities).sum())
    return power_of_shift(shift, len(probabilities) - 1)


def power_of_shift(shift: float, degrees: int) -> float:
    """How often a χ² is too large, if this was added to its mean."""
    return float(ncx2.sf(chi2.isf(LEVEL / 2, degrees), degrees, shift))


def of_this_spread(squares: float, degrees: int) -> bool:
    """Whether a sum of so many squares of standard normals may be this."""
    return bool(chi2.isf(1 - LEVEL / 2, degrees) <= squares <= chi2.isf(LEVEL / 2, degrees))


def power_of_spread(degrees: int, factor: float) -> float:
    """How often `of_this_spread` refuses, if the standard deviation is off by this factor."""
    low, high = chi2.isf(1 - LEVEL / 2, degrees), chi2.isf(LEVEL / 2, degrees)
    return float(chi2.cdf(low / factor**2, degrees) + chi2.sf(high / factor**2, degrees))
