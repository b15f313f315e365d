"""Chernoff's bounds, which hold for every tail however small."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import ULP, up

_MOST_NUMBERS = 100_000  # of which each adds a few ulps
# Standard deviations from the mean where groups begin, and how much larger than the last a number has to be: fewer groups
# are looser, by what the numbers in them differ, and more take longer.
_STANDINGS = (-5.0, -4.2, -3.5, -2.9, -2.3, -1.8, -1.3, -0.9, -0.5, -0.1, 0.3, 0.8, 1.4)
_RATIO = 1.003
_SLACK = 1e-9  # on a logarithm of about −70: far above its rounding, and far below anything that can be seen


def binomial_range(count: int, rate: float, log_probability: float) -> tuple[int, int]:
    """Numbers that a binomial variable leaves with at most this probability, below and above together."""
    if rate == 1:
        return count, count
    each = log_probability - math.log(2) - _SLACK
    mean = count * rate
    return _farthest(count, rate, each, 0, math.floor(mean)), _farthest(count, rate, each, count, math.ceil(mean))


def binomial_levels(count: int, rate: float, low: int, high: int) -> tuple[tuple[int, float], ...]:
    """(least number of a group, probability of the group), for a binomial variable that is known to be from `low` to `high`.

    Increasing; the probability of the first so many groups together is rounded up, so that whatever falls with the number is
    on average at most what the groups say. One group where the numbers are all nearly the same, or too many to go through.
    """
    deviation = math.sqrt(count * rate * (1 - rate))
    if high - low > _MOST_NUMBERS or high - low < 1 or deviation < 1e-3:
        return ((low, 1.0),)
    below = up(np.cumsum(_binomial_law(count, rate, low, high)), by=1e-9)
    starts = [low]
    for standing in _STANDINGS:
        start = math.ceil(count * rate + standing * deviation)
        if start <= high and (start + 1) > _RATIO * (starts[-1] + 1):
            starts.append(start)
    up_to = np.array([*np.minimum(below[np.array(starts[1:], np.intp) - low - 1], 1.0), 1.0])
    probabilities = np.diff(up_to, prepend=0.0)
    return tuple((start, one) for start, one in zip(starts, probabilities.tolist(), strict=True) if one > 0)


def _binomial_law(count: int, rate: float, low: int, high: int) -> Floats:
    """The probabilities of low, …, high, given that it is one of them, to a part in 10¹⁰: ratios of neighbours multiplied.

    From the most likely one outwards; each product rounds by a few ulps, and there are `_MOST_NUMBERS` at most.
    """
    middle = min(max(math.floor((count + 1) * rate), low), high)
    odds = rate / (1 - rate)
    after, before = np.arange(middle, high, dtype=float), np.arange(middle, low, -1.0)
    rising = np.cumprod((count - after) / (after + 1) * odds)
    falling = np.cumprod(before / (count - before + 1) / odds)
    weights = np.concatenate([falling[::-1], [1.0], rising])
    return np.asarray(weights / weights.sum())


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
    """Σ weight·V·W over independent V, each 1 with probability `rate`, and W ≤ 1; `counts` of each weight.

    `levels`: the values of W, each with its probability.
    """

    def __init__(
        self, weights: Floats, counts: Floats, rate: float, levels: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    ) -> None:
        self._largest = up(float((weights * counts).sum()))
        self._slopes = np.geomspace(1e-4, 200.0, 60) / max(float(weights.max(initial=0.0)), 1e-300)
        with np.errstate(over="ignore"):
            steep = self._slopes[:, None] * weights
            powers = sum(probability * np.expm1(share * steep) for share, probability in levels)
            self._log_moments = up(np.log1p(rate * powers) @ counts) + _SLACK

    def exceeded(self, log_probability: float) -> float:
        """A number that the sum exceeds with at most this probability.

        Chernoff: P(S ≥ x) ≤ e^{Λ(λ) − λ·x} for every λ > 0, so x = (Λ(λ) − log probability)/λ will do; the least of
        a ladder.
        """
        bounds = (self._log_moments - log_probability) / self._slopes
        return min(self._largest, up(float(np.min(bounds))))
