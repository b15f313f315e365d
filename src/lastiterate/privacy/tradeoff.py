"""Trade-off functions (f-DP): the least type II error of any test, for each type I error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.errors import UNIT, InvalidInput, checked_array, checked_choice
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.adjacency import REPLACE_ONE, Adjacency
from lastiterate.privacy.conversions import tradeoff_to_delta
from lastiterate.privacy.notion import Notion

_GRID = np.concatenate([np.geomspace(1e-300, 1e-3, 3000), np.linspace(1e-3, 1.0, 6001)[1:]])


@dataclass(frozen=True, init=False, eq=False)
class TradeOff(Notion):
    """`TradeOff(type_i_errors=[...], type_ii_errors=[...])`, or `TradeOff(function=f)` with f(α) = β, vectorised.

    Between known points the function is taken to be its value at the next one: a decreasing function is no smaller.
    """

    adjacency: Adjacency
    _type_i_errors: Floats
    _type_ii_errors: Floats

    def __init__(
        self,
        *,
        type_i_errors: ArrayLike | None = None,
        type_ii_errors: ArrayLike | None = None,
        function: Callable[[Floats], ArrayLike] | None = None,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        checked_choice("adjacency", adjacency, Adjacency)
        if (function is None) == (type_i_errors is None or type_ii_errors is None):
            raise InvalidInput(
                "TradeOff needs either a function, or type_i_errors and type_ii_errors. Give exactly one of the two."
            )
        if function is not None:
            if not callable(function):
                raise InvalidInput(f"function must be callable, from an array of type I errors. Got {function!r}.")
            type_i_errors, type_ii_errors = _GRID, function(_GRID)
        alphas, betas = _checked_curve(type_i_errors, type_ii_errors)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "_type_i_errors", alphas)
        object.__setattr__(self, "_type_ii_errors", betas)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        following = np.searchsorted(self._type_i_errors, type_i_errors)
        return np.append(self._type_ii_errors, 0.0)[following]

    def _log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            deltas = tradeoff_to_delta(self._type_i_errors, self._type_ii_errors, epsilons)
            return np.log(np.minimum(deltas * (1 + 1e-15) + 2e-16, 1.0))


def _checked_curve(type_i_errors: ArrayLike | None, type_ii_errors: ArrayLike | None) -> tuple[Floats, Floats]:
    alphas = np.atleast_1d(checked_array("type_i_errors", type_i_errors, UNIT))  # type: ignore[arg-type]
    betas = np.atleast_1d(checked_array("type_ii_errors", type_ii_errors, UNIT))  # type: ignore[arg-type]
    if alphas.ndim != 1 or alphas.shape != betas.shape or alphas.size == 0:
        raise InvalidInput(
            f"type_i_errors and type_ii_errors must be two equally long lists. Got shapes {alphas.shape} and {betas.shape}."
        )
    if (alphas + betas > 1 + 1e-12).any():
        worst = int(np.argmax(alphas + betas))
        raise InvalidInput(
            "a trade-off function lies below 1 − type_i_error, which guessing attains. "
            f"Got type_ii_error {betas[worst]:g} at type_i_error {alphas[worst]:g}."
        )
    ranking = np.argsort(alphas, kind="stable")
    # A larger value further right holds here too, because the function decreases.
    return alphas[ranking], np.maximum.accumulate(betas[ranking][::-1])[::-1]
