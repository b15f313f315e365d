"""Roots of monotone functions that err on a stated side."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lastiterate.numerics.arrays import Floats

FARTHEST = 1e15
"""No threshold (no ε) is sought beyond: it would mean nothing, and up to 2⁵³ = 9e15 a float still tells whole numbers
apart."""
# Guesses lie between 1e-13 and 1e13: a guess at an end does no harm, and a wider bracket costs evaluations.
_LARGEST_LOG = 30.0
# Of a logarithm: with an estimated slope a longer one overshoots, a shorter one takes more evaluations.
_LONGEST_STEP = 2.0
# Of 15 digits each: from any float to any other; fewer would leave a tiny root loose, but never wrong.
_MOST_PASSES = 20
_MOST_NEWTON = 60  # of a method that mostly takes six; more would be bisection
_BISECTION_SLACK = 2  # evaluations that ITP may spend beyond plain bisection: with none it could hardly interpolate


def decreasing_root(
    function: Callable[[Floats], Floats], low: Floats, high: Floats, relative_tolerance: float = 4e-16
) -> Floats:
    """The least x in [low, high] with function(x) ≤ 0, rounded up: the returned x was seen to satisfy it.

    `function` decreases and function(high) ≤ 0 is the caller's promise; where function(low) ≤ 0, low is the answer.
    Interpolate, truncate, project (Oliveira and Takahashi 2020), elementwise: superlinear, never worse than bisection.
    """
    low, high = np.array(low, float), np.array(high, float)
    at_low, at_high = function(low), function(high)
    high = np.where(at_low <= 0, low, high)
    for _ in range(_MOST_PASSES):  # each pass is accurate relative to the high end that it started with
        tolerance = np.maximum(np.maximum(relative_tolerance * np.abs(high), 1e-30 * (high - low)), 1e-300)
        if (high - low <= 2 * tolerance).all():
            break
        narrowed = _narrowed if high.size > 1 else _narrowed_alone
        low, high, at_low, at_high = narrowed(function, low, high, at_low, at_high, tolerance)
    return high


def _narrowed(
    function: Callable[[Floats], Floats], low: Floats, high: Floats, at_low: Floats, at_high: Floats, tolerance: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    first_width = high - low
    budget = np.ceil(np.log2(np.maximum(first_width / tolerance, 1.0))) + _BISECTION_SLACK
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for step in range(int(budget.max(initial=0.0)) + 1):
            width = high - low
            if (width <= 2 * tolerance).all():
                break
            middle = low + 0.5 * width
            secant = (low * at_high - high * at_low) / (at_high - at_low)
            secant = np.where(np.isfinite(secant) & (secant > low) & (secant < high), secant, middle)
            towards = np.sign(middle - secant)
            truncation = np.maximum(0.2 * width**2 / np.maximum(first_width, tolerance), 0.5 * tolerance)
            point = np.where(truncation <= np.abs(middle - secant), secant + towards * truncation, middle)
            radius = np.maximum(tolerance * 2.0 ** (budget - step) - 0.5 * width, 0.0)
            point = np.where(np.abs(point - middle) <= radius, point, middle - towards * radius)
            value = function(point)
            holds = value <= 0
            high, at_high = np.where(holds, point, high), np.where(holds, value, at_high)
            low, at_low = np.where(holds, low, point), np.where(holds, at_low, value)
    return low, high, at_low, at_high


def _narrowed_alone(
    function: Callable[[Floats], Floats], low: Floats, high: Floats, at_low: Floats, at_high: Floats, tolerance: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Narrow the bracket of one number, digit by digit: most roots are sought alone, and arrays of one are slow."""
    shape = high.shape
    a, b, at_a, at_b, within = (one.item() for one in (low, high, at_low, at_high, tolerance))
    first_width = b - a
    budget = math.ceil(np.log2(max(first_width / within, 1.0))) + _BISECTION_SLACK
    for step in range(budget + 1):
        width = b - a
        if width <= 2 * within:
            break
        middle, rise = a + 0.5 * width, at_b - at_a
        secant = (a * at_b - b * at_a) / rise if rise else math.nan
        secant = secant if a < secant < b else middle
        aside = middle - secant
        towards = math.copysign(1.0, aside) if aside else 0.0
        truncation = max(0.2 * (width * width) / max(first_width, within), 0.5 * within)
        point = secant + towards * truncation if truncation <= abs(aside) else middle
        radius = max(within * 2.0 ** (budget - step) - 0.5 * width, 0.0)
        point = point if abs(point - middle) <= radius else middle - towards * radius
        value = function(np.full(shape, point)).item()
        if value <= 0:
            b, at_b = point, value
        else:
            a, at_a = point, value
    return np.full(shape, a), np.full(shape, b), np.full(shape, at_a), np.full(shape, at_b)


def newton_root(
    function: Callable[[Floats], tuple[Floats, Floats]], target: Floats, high: Floats, tolerance: float
) -> Floats:
    """About where a decreasing function, given with its slope, is `target` between 0 and `high`, elementwise.

    Newton's method, which halves the bracket seen so far where it would leave it, or does not settle. No side is promised.
    """
    low = point = np.zeros_like(high)
    step = high
    for _ in range(_MOST_NEWTON):
        value, slope = function(point)
        above = value > target
        low, high = np.where(above, point, low), np.where(above, high, point)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moved = point - (value - target) / slope
            apart = np.abs(moved - point)
            settles = (moved > low) & (moved < high) & (apart <= 0.5 * step) | (apart <= tolerance * point)
        moved = np.where(settles, moved, 0.5 * (low + high))
        step, point = np.abs(moved - point), moved
        if (step <= tolerance * point).all():
            break
    return point


def positive_guess(newton: Callable[[float], tuple[float, float]], start: float = 1.0) -> float:
    """About where an increasing function of x > 0 vanishes, to 1e-4 relative, by Newton's method in log x, from `start`.

    `newton(x)` is (value, estimate of d value/d log x). Steps are cut to the bracket seen so far.
    """
    low, high, log_x = -_LARGEST_LOG, _LARGEST_LOG, math.log(start)
    for _ in range(100):
        value, slope = newton(math.exp(log_x))
        low, high = (log_x, high) if value < 0 else (low, log_x)
        step = -value / slope if slope > 0 else -math.copysign(1.0, value)
        moved = log_x + min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
        moved = moved if low < moved < high else 0.5 * (low + high)
        if abs(moved - log_x) < 1e-4 or high - low < 1e-4:
            return math.exp(moved)
        log_x = moved
    return math.exp(log_x)


def decreasing_crossing(
    function: Callable[[float], float], low: float, high: float, start: float, step: float, closeness: float
) -> float:
    """The least x in [low, high] with function(x) ≤ 0, rounded up: outwards from `start` by `step`, then false position.

    Stops at the first x with −closeness ≤ function(x) ≤ 0, or at a jump from ∞, once it is known to a thousandth of that.
    Where function(low) ≤ 0 the answer is low; where even function(high) > 0 it is high, and the caller has to look.
    """
    left = right = min(max(start, low), high)
    at_left = at_right = function(right)
    reach = step
    while at_right > 0 and right < high:
        left, at_left, right, reach = right, at_right, min(right + reach, high), 2 * reach
        at_right = function(right)
    while at_left <= 0 and left > low:
        right, at_right, left, reach = left, at_left, max(left - reach, low), 2 * reach
        at_left = function(left)
    if at_left <= 0 or at_right > 0:
        return left if at_left <= 0 else right
    best, kept_side = at_right, 0
    for _ in range(100):
        width = 1e-3 * closeness if math.isinf(at_left) else 1e-14 * abs(right)
        if best >= -closeness or right - left <= width:
            break
        share = at_left / (at_left - at_right) if math.isfinite(at_left - at_right) else 0.5
        # Aim half of `closeness` beyond the root: that is where a point both suffices and ends the search.
        aim = 0.5 * closeness * (right - left) / (at_left - at_right) if share != 0.5 else 0.0
        point = left + share * (right - left) + aim
        point = point if left < point < right else 0.5 * (left + right)
        value = function(point)
        side = 1 if value <= 0 else -1
        if value <= 0:
            right, at_right, best = point, value, value
            at_left *= 0.5 if side == kept_side else 1.0  # Illinois: an end that stays twice counts half
        else:
            left, at_left = point, value
            at_right *= 0.5 if side == kept_side else 1.0
        kept_side = side
    return right
