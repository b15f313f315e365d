"""Batches that are all of one size were not drawn record by record, whatever the loader is called."""

from __future__ import annotations

import math

_NEVER = math.log(1e-15)


def too_regular(records: int, rate: float, times: int) -> bool:
    """Whether so many Poisson batches of one size in a row are never seen."""
    return rate < 1 and (times - 1) * _likeliest(records, rate) < _NEVER


def _likeliest(records: int, rate: float) -> float:
    """The logarithm of the probability of the likeliest size."""
    size = min(math.floor((records + 1) * rate), records)
    ways = math.lgamma(records + 1) - math.lgamma(size + 1) - math.lgamma(records - size + 1)
    return ways + size * math.log(rate) + (records - size) * math.log1p(-rate)
