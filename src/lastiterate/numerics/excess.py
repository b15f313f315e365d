"""What the two ways of computing E(1 − e^{t − X})_+ share: Chernoff's bounds, aliases, and care with logarithms."""

from __future__ import annotations

import math

import numpy as np

LONGEST_EXTRAPOLATION = 3.0
"""In units of 1/abscissa, from the threshold something was drawn for: it holds farther off, but aliases and rounding
are e³ times larger there. Less means to draw more often; a choice of effort."""


def log_peak(abscissa: float) -> float:
    """log of the maximum of (1 − e^{−u})·e^{−abscissa·u} over u ≥ 0."""
    if abscissa == 0:
        return 0.0
    return abscissa * math.log(abscissa) - (1 + abscissa) * math.log1p(abscissa)


def log_aliases(aliases: tuple[tuple[float, float], ...], abscissa: float, period: float, threshold: float) -> float:
    """log of Σ_{m ≠ 0} e^{abscissa·m·period}·excess(threshold + m·period), bounded with Chernoff at each (a, K(a))."""
    total = -math.inf
    for other, log_mgf in aliases:
        decay = abs(other - abscissa) * period
        bound = log_mgf + log_peak(other) - other * threshold - decay - math.log(-math.expm1(-decay))
        total = float(np.logaddexp(total, bound))
    return total


def log_or_lowest(value: float) -> float:
    """log, −∞ for what is not positive."""
    return math.log(value) if value > 0 else -math.inf


def log_less(log_value: float, log_taken: float) -> float:
    """log(e^log_value − e^log_taken), −∞ where nothing is left."""
    if log_taken >= log_value:
        return -math.inf
    return log_value + math.log(-math.expm1(log_taken - log_value))
