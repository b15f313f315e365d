"""Chernoff's bounds, which hold for every tail however small."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import ULP, up

_SLACK = 1e-9  # on a logarithm of about −70: far above its rounding, and far below anything that can be seen


def binomial_range(count: int, rate: float, log_probability: float) -> tuple[int, int]:
    """Numbers that a binomial variable leaves with at most this probability, below and above together."""
    if rate == 1:
        return count, count
    each = log_probability - math.log(2) - _SLACK
    mean = count * rate
    return _farthest(count, rate, each, 0, math.floor(mean)), _farthest(count, rate, each, count, math.ceil(mean))


def _farthest(count: int, rate: float, log_probability: float, end: int, middle: int) -> int:
    """Between the mean and one end, the number nearest to the mean beyond which the tail is small enough."""
    if -count * _divergence(end, count, rate) > log_probability:
        return end
    beyond, within = end, middle  # the tail from `beyond` outwards is small enough
    while abs(beyond - within) > 1:
        probe = (beyond + within) // 2
        if -count * _divergence(probe, count, rate) <= log_probability:
            beyond = probe
        else:
            within = probe
    return within


def _divergence(number: int, count: int, rate: float) -> float:
    """KL(number/count ‖ rate), rounded down: a tail from `number` on, away from the mean, is at most e^{−count·KL}.

    Shares and ratios are off by an ulp or two, which moves the terms by as much of 1, and of themselves.
    """
    if count == 0:
        return 0.0
    share = number / count
    inside = share * math.log(share / rate) if number else 0.0
    outside = (1 - share) * math.log((1 - share) / (1 - rate)) if number < count else 0.0
    return max(inside + outside - 8 * ULP * (1 + abs(inside) + abs(outside)), 0.0)


class CoinSum:
    """Σ weight·V over independent V, each 1 with probability `rate`; `counts` of each weight."""

    def __init__(self, weights: Floats, counts: Floats, rate: float) -> None:
        self._largest = up(float((weights * counts).sum()))
        self._slopes = np.geomspace(1e-4, 200.0, 60) / max(float(weights.max(initial=0.0)), 1e-300)
        with np.errstate(over="ignore"):
            powers = np.expm1(self._slopes[:, None] * weights)
            self._log_moments = up(np.log1p(rate * powers) @ counts) + _SLACK

    def exceeded(self, log_probability: float) -> float:
        """A number that the sum exceeds with at most this probability.

        Chernoff: P(S ≥ x) ≤ e^{Λ(λ) − λ·x} for every λ > 0, so x = (Λ(λ) − log probability)/λ will do; the least of
        a ladder.
        """
        bounds = (self._log_moments - log_probability) / self._slopes
        return min(self._largest, up(float(np.min(bounds))))
