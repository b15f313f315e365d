"""Privacy profiles δ(ε): decreasing, and convex in e^ε."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.errors import NON_NEGATIVE, UNIT, InvalidInput, checked_choice, checked_lists, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.convex import lower_hull
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

    def _log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self._deltas(epsilons))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        """By a table of what it says, between whose entries a search goes on; where there is none, by a search alone."""
        if self._points is None:
            return super()._epsilon(log_deltas)
        epsilons, logs = self._inverse
        after = np.searchsorted(-logs, -log_deltas)  # the first entry that is small enough
        high = np.append(epsilons, np.inf)[after]
        low = np.append(0.0, epsilons)[after]
        inside = (after > 0) & np.isfinite(high)
        found = np.where(after == 0, 0.0, np.inf)
        if inside.any():
            targets = log_deltas[inside]
            found[inside] = decreasing_root(lambda x: self._log_delta(x) - targets, low[inside], high[inside])
        return np.where(found < FARTHEST, found, np.inf)

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats]:
        """ε and log δ at the corners of the profile."""
        epsilons = np.unique(np.append(0.0, self._points[0] if self._points else []))
        return epsilons, np.minimum.accumulate(self._log_delta(epsilons))

    def epsilon_estimate(self, log_delta: float) -> float:
        """Between points: they are as quick to look at as any estimate."""
        if self._points is None:
            return 0.0
        epsilons, logs = self._inverse
        return float(np.interp(-log_delta, -logs, epsilons, right=np.inf))

    def log_delta_estimate(self, epsilon: float) -> float:
        return np.nan if self._points is None else float(self._log_delta(np.array([epsilon]))[0])

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
        """The points themselves, where there are points: a kink lies on one of them."""
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
