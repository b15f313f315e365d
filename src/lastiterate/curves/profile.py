"""Privacy profiles δ(ε): decreasing, and convex in e^ε."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion, log_expm1, polygon_to_delta, tradeoff_to_delta
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    InvalidInput,
    check_fields,
    checked_choice,
    checked_lists,
    must_be,
    shown,
)
from lastiterate.numerics.arrays import Floats, lower_hull
from lastiterate.numerics.roots import FARTHEST, decreasing_root
from lastiterate.numerics.rounding import up

LARGEST_TABLED = 600.0
"""Tables and hulls are interpolated in e^ε, which must stay finite, as must slopes and products: e^709 would overflow.
Larger ε are answered by a function or by the last point."""


@dataclass(frozen=True, init=False, eq=False)
class Profile(Notion):
    """`Profile(epsilons=[0, 1], deltas=[0.1, 1e-5])` from points, or `Profile(function=f)` with f(ε) = δ, vectorised.

    Points are upper bounds on δ(ε), which is convex in e^ε; so the profile is the greatest convex minorant of the points and
    their mirror images: interpolated in e^ε, constant after the last. `Profile(epsilons=[1.0], deltas=[0.0])` is pure DP.
    """

    adjacency: Adjacency
    _points: tuple[Floats, Floats] | None = field(repr=False)
    _function: Callable[[Floats], ArrayLike] | None = field(repr=False)

    def __init__(
        self,
        *,
        epsilons: ArrayLike | None = None,
        deltas: ArrayLike | None = None,
        function: Callable[[Floats], ArrayLike] | None = None,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        adjacency = checked_choice("adjacency", adjacency, Adjacency)
        if (function is None) == (epsilons is None or deltas is None):
            raise InvalidInput("function_or_points", of="Profile", points="epsilons and deltas")
        if function is not None and not callable(function):
            raise must_be("function", "callable, from epsilons to deltas", shown(function))
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "_points", None if function else _checked_points(epsilons, deltas))

    @property
    def points(self) -> Floats | None:
        """The ε at which it was given; none for a function."""
        return None if self._points is None else self._points[0]

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self._deltas(epsilons))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Search for ε between two points of the profile; from scratch, if it has none."""
        if self._points is None:
            return super().epsilon_at_log(log_deltas)
        epsilons, logs = self._inverse
        after = np.searchsorted(-logs, -log_deltas)  # the first entry that is small enough
        high = np.append(epsilons, np.inf)[after]
        low = np.append(0.0, epsilons)[after]
        inside = (after > 0) & np.isfinite(high)
        found = np.where(after == 0, 0.0, np.inf)
        if inside.any():
            targets = log_deltas[inside]
            found[inside] = decreasing_root(lambda x: self.log_delta(x) - targets, low[inside], high[inside])
        return np.where(found < FARTHEST, found, np.inf)

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats]:
        """ε and log δ at the corners of the profile."""
        epsilons = np.unique(np.append(0.0, self._points[0] if self._points else []))
        return epsilons, np.minimum.accumulate(self.log_delta(epsilons))

    def epsilon_estimate(self, log_delta: float) -> float:
        """Return ε between two points, which are as quick to look at as any estimate."""
        if self._points is None:
            return 0.0
        epsilons, logs = self._inverse
        return float(np.interp(-log_delta, -logs, epsilons, right=np.inf))

    def log_delta_estimate(self, epsilon: float) -> float:
        return np.nan if self._points is None else float(self.log_delta(np.array([epsilon]))[0])

    def _deltas(self, epsilons: Floats) -> Floats:
        if self._function is None:
            return self._interpolated(epsilons)
        try:
            deltas = np.asarray(self._function(epsilons), float)
        except (TypeError, ValueError) as error:
            raise InvalidInput("profile_function_raised", field="function", error=error) from error
        if deltas.shape != epsilons.shape or not UNIT.holds(deltas).all():
            given = {"got": shown(deltas), "epsilons": shown(epsilons)}
            raise InvalidInput("profile_function_returned", field="function", **given)
        return deltas

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        """Vertices (e^ε, δ) of the convex minorant, from (0, 1) on.

        The guarantee holds in both orders, so each point has a mirror image: δ(−ε) ≤ 1 − e^{−ε}(1 − δ(ε)).
        """
        if self._points is None:
            return np.array([0.0]), np.array([1.0])
        epsilons, deltas = (array[self._points[0] <= LARGEST_TABLED] for array in self._points)
        x = np.concatenate([[0.0], np.exp(-epsilons), np.exp(epsilons)])
        y = np.concatenate([[1.0], 1 - np.exp(-epsilons) * (1 - deltas), deltas])
        order = np.lexsort((y, x))
        distinct = np.append(True, np.diff(x[order]) > 0)
        return lower_hull(x[order][distinct], y[order][distinct])

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """The table of every guarantee, with the points of the profile if it has any: a kink lies on one of them."""
        epsilons, deltas = super()._table
        if self._points is None:
            return epsilons, deltas
        known = self._points[0][self._points[0] <= LARGEST_TABLED]
        return np.append(epsilons, known), np.append(deltas, self._interpolated(known))

    def _interpolated(self, epsilons: Floats) -> Floats:
        if self._points is None:
            return np.ones_like(epsilons)
        known_epsilons, known_deltas = self._points
        last = np.searchsorted(known_epsilons, epsilons, side="right")
        at_last = np.append(1.0, np.minimum.accumulate(known_deltas))[last]
        inner = up(np.interp(np.exp(np.minimum(epsilons, LARGEST_TABLED)), *self._hull), operations=50)
        return np.minimum(np.minimum(inner, at_last), 1.0)


def _checked_points(epsilons: ArrayLike | None, deltas: ArrayLike | None) -> tuple[Floats, Floats]:
    epsilon_array, delta_array = checked_lists(("epsilons", epsilons, NON_NEGATIVE), ("deltas", deltas, UNIT))
    ranking = np.lexsort((delta_array, epsilon_array))
    return epsilon_array[ranking], delta_array[ranking]


# Trade-off functions (f-DP): the least type II error of any test, for each type I error.


_ROUNDING = 4e-15  # 18 ulps of 1: a type II error near 1 is known no better, and so is a small δ
# Where a function is evaluated. Errors below 1e-18 matter for ε above 40 alone. 4000 points in 15 decades are 1 %
# apart, 6000 above 1e-3 are closer; a choice of effort: more would bring the polygon nearer to the function.
_GRID = np.concatenate([np.geomspace(1e-18, 1e-3, 4000), np.linspace(1e-3, 1.0, 6001)[1:]])


@dataclass(frozen=True, init=False, eq=False)
class TradeOff(Notion):
    """`TradeOff(type_i_errors=[...], type_ii_errors=[...])`, or `TradeOff(function=f)` with f(α) = β, vectorised.

    Points are lower bounds: between two of them the function is taken to be its value at the next one, which is all
    that a decreasing function promises. A function is convex, so between the points where it is evaluated it lies above
    the chords of its neighbours, prolonged.
    """

    adjacency: Adjacency
    _type_i_errors: Floats = field(repr=False)
    _type_ii_errors: Floats = field(repr=False)
    _is_polygon: bool = field(repr=False)

    def __init__(
        self,
        *,
        type_i_errors: ArrayLike | None = None,
        type_ii_errors: ArrayLike | None = None,
        function: Callable[[Floats], ArrayLike] | None = None,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        adjacency = checked_choice("adjacency", adjacency, Adjacency)
        if (function is None) == (type_i_errors is None or type_ii_errors is None):
            raise InvalidInput("function_or_points", of="TradeOff", points="type_i_errors and type_ii_errors")
        if function is not None:
            if not callable(function):
                raise must_be("function", "callable, of type I errors", shown(function))
            type_i_errors, type_ii_errors = _GRID, _evaluated(function)
        alphas, betas = _checked_curve(type_i_errors, type_ii_errors)
        if function is not None:
            alphas, betas = _below_convex(alphas, betas)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "_type_i_errors", alphas)
        object.__setattr__(self, "_type_ii_errors", betas)
        object.__setattr__(self, "_is_polygon", function is not None)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        if self._is_polygon:
            return np.interp(type_i_errors, self._type_i_errors, self._type_ii_errors)
        following = np.searchsorted(self._type_i_errors, type_i_errors)
        return np.append(self._type_ii_errors, 0.0)[following]

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            to_delta = polygon_to_delta if self._is_polygon else tradeoff_to_delta
            return np.log(np.minimum(to_delta(self._type_i_errors, self._type_ii_errors, epsilons) + _ROUNDING, 1.0))


def _evaluated(function: Callable[[Floats], ArrayLike]) -> ArrayLike:
    try:
        return function(_GRID)
    except (TypeError, ValueError) as error:
        raise InvalidInput("tradeoff_function_raised", field="function", error=error) from error


def _checked_curve(type_i_errors: ArrayLike | None, type_ii_errors: ArrayLike | None) -> tuple[Floats, Floats]:
    alphas, betas = checked_lists(("type_i_errors", type_i_errors, UNIT), ("type_ii_errors", type_ii_errors, UNIT))
    if (alphas + betas > 1 + 1e-12).any():
        worst = int(np.argmax(alphas + betas))
        raise InvalidInput("tradeoff_above_guessing", field="type_ii_errors", alpha=alphas[worst], beta=betas[worst])
    ranking = np.argsort(alphas, kind="stable")
    # A larger value further right holds here too, because the function decreases.
    return alphas[ranking], np.maximum.accumulate(betas[ranking][::-1])[::-1]


def _below_convex(alphas: Floats, betas: Floats) -> tuple[Floats, Floats]:
    """Return vertices of a polygon below every convex, decreasing function through the points, from 0 to the last of them.

    Between two points it follows the chord before them, then the chord after them; they meet at a corner.
    """
    slopes, widths = np.diff(betas) / np.diff(alphas), np.diff(alphas)
    first = min(betas[0], betas[1] - slopes[1] * widths[0])
    last = max(betas[-2] + slopes[-2] * widths[-1], 0.0)
    before, after = slopes[:-2], slopes[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (betas[2:-1] - betas[1:-2] - after * widths[1:-1]) / (before - after)
    along = np.where(np.isfinite(along), np.clip(along, 0.0, widths[1:-1]), 0.0)
    corners = np.minimum(betas[1:-2] + before * along, betas[1:-2] + slopes[1:-1] * along)
    x = np.concatenate([[0.0, alphas[0]], alphas[1:-1], [alphas[-1]], alphas[1:-2] + along])
    y = np.concatenate([[first, first], betas[1:-1], [last], np.maximum(corners, 0.0)])
    order = np.argsort(x, kind="stable")
    return x[order], np.minimum.accumulate(y[order])


# A privacy loss that is bounded on both sides, by an interval whose place is not known.


_LEAST = 1e-300  # so that no logarithm of 0 is taken where the answer is not used


@dataclass(frozen=True)
class BoundedRange(Notion):
    """log dP/dQ lies in some interval of length R = `width`: δ(ε) = (e^{R/2} − e^{ε/2})²/(e^R − 1) up to ε = R, then 0.

    The interval contains 0, so that this is (R, 0)-DP and more: at ε = 0 it is tanh(R/4), where pure DP alone is tanh(R/2).
    Attained by two outcomes with losses at both ends (docs/proofs.md).
    """

    width: float
    adjacency: Adjacency = REPLACE_ONE

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "width")
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))

    @cached_property
    def _raised(self) -> float:
        """The width, raised by far more than a difference to an ε is rounded by: δ grows with it."""
        return up(self.width)

    def log_delta(self, epsilons: Floats) -> Floats:
        left = self._raised - epsilons
        logs = epsilons + 2 * log_expm1(np.maximum(left, _LEAST) / 2) - log_expm1(np.array(self._raised))
        return np.where(left > 0, np.minimum(logs + 1e-14 * (1 + np.abs(logs) + epsilons), 0.0), -np.inf)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Solve e^{ε/2} = e^{width/2} − √(δ(e^width − 1))."""
        lost = np.exp(log_deltas / 2) * math.sqrt(-math.expm1(-self._raised)) * (1 - 1e-12)
        return np.maximum(up(self._raised + 2 * np.log1p(-lost)), 0.0)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """The table of every guarantee, with the ε beyond which δ is 0 if that is within its range."""
        epsilons, deltas = super()._table
        if self._raised > LARGEST_TABLED:
            return epsilons, deltas
        return np.append(epsilons, self._raised), np.append(deltas, 0.0)
