"""Sums of powers."""

from __future__ import annotations

import math


def geometric_sum(ratio: float, terms: int) -> float:
    """1 + ratio + ratio² + … with so many terms."""
    if ratio == 1:
        return float(terms)
    if ratio <= 0:
        return (1 - ratio**terms) / (1 - ratio)
    return math.expm1(terms * math.log(ratio)) / (ratio - 1)
