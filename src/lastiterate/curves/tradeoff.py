"""Trade-off functions (f-DP): the least type II error of any test, for each type I error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.conversions import polygon_to_delta, tradeoff_to_delta
from lastiterate.curves.notion import Notion
from lastiterate.errors import UNIT, InvalidInput, checked_choice, checked_lists, must_be, shown
from lastiterate.numerics.arrays import Floats

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

    def _log_delta(self, epsilons: Floats) -> Floats:
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
    """Vertices of a polygon below every convex, decreasing function through the points, from 0 to the last of them.

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
