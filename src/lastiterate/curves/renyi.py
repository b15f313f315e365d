"""Rényi differential privacy: a bound on the Rényi divergence at some orders, or ρ·order at all of them (zCDP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion, concentrated_to_log_delta, renyi_to_epsilon, renyi_to_log_delta
from lastiterate.errors import (
    ABOVE_ONE,
    NON_NEGATIVE,
    InvalidInput,
    Unavailable,
    checked_choice,
    checked_lists,
    checked_number,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

# Any orders are valid. Small ε want large orders and large ε those near 1; these are 12 % apart, in order − 1; a choice
# of effort.
DEFAULT_ORDERS = np.concatenate([1 + np.geomspace(0.01, 10.0, 60), np.geomspace(11.5, 4096.0, 60)])
_NEAR = np.linspace(0.5, 1.5, 401)  # times Mironov's best order: steps of 0.25 % around a minimum, where ε is flat
_LARGEST_EPSILON = 1e60  # squares, and products with orders ε/2ρ, stay floats; a larger ε has no larger δ


@dataclass(frozen=True, init=False, repr=False)
class RenyiDP(Notion):
    """`RenyiDP(rho=0.5)`: ρ·order at every order. `RenyiDP(orders=[2, 8], divergences=[0.1, 0.7])`: a curve.

    Divergences grow with the order, so between two orders the curve holds with the value of the larger one.
    """

    rho: float | None
    orders: tuple[float, ...]
    divergences: tuple[float, ...]
    adjacency: Adjacency

    def __init__(
        self,
        *,
        rho: float | None = None,
        orders: ArrayLike | None = None,
        divergences: ArrayLike | None = None,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        adjacency = checked_choice("adjacency", adjacency, Adjacency)
        if (rho is None) == (orders is None or divergences is None):
            raise InvalidInput("rho_or_divergences")
        rho = None if rho is None else checked_number("rho", rho, NON_NEGATIVE)
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "adjacency", adjacency)
        sorted_orders, sorted_divergences = _sorted_curve(orders, divergences) if rho is None else ((), ())
        object.__setattr__(self, "orders", sorted_orders)
        object.__setattr__(self, "divergences", sorted_divergences)

    def _said(self) -> str:
        return f"{len(self.orders)} orders" if self.rho is None else f"rho={self.rho!r}"

    def _rdp(self, orders: Floats) -> Floats:
        if self.rho is not None:
            return up(self.rho * orders, operations=500)
        known = np.array(self.orders)
        if (orders > known[-1]).any():
            raise Unavailable("order_not_known", field="order", most=known[-1], order=orders.max())
        return np.array(self.divergences)[np.searchsorted(known, orders)]

    def _after(self, mu: float) -> RenyiDP:
        """Compose by adding divergences."""
        if self.rho is not None:
            return RenyiDP(rho=up(self.rho + mu**2 / 2, operations=5), adjacency=self.adjacency)
        orders = np.array(self.orders)
        together = up(np.array(self.divergences) + orders * mu**2 / 2, operations=5)
        return RenyiDP(orders=orders, divergences=together, adjacency=self.adjacency)

    def _curve(self) -> tuple[Floats, Floats]:
        if self.rho is None:
            return np.array(self.orders)[:, None], np.array(self.divergences)[:, None]
        return DEFAULT_ORDERS[:, None], self.rho * DEFAULT_ORDERS[:, None]

    def log_delta(self, epsilons: Floats) -> Floats:
        if self.rho == 0 or (self.rho is None and max(self.divergences) == 0):
            return np.full_like(epsilons, -np.inf)
        orders, divergences = self._curve()
        epsilons = np.minimum(epsilons, _LARGEST_EPSILON)  # δ falls with ε, and a square must not overflow
        if self.rho is not None:
            # Mironov's best order is (ε + ρ)/2ρ; that of the sharper formulas lies near it.
            near = np.maximum((epsilons + self.rho) / (2 * self.rho) * _NEAR[:, None], 1.0 + 1e-9)
            orders = np.concatenate([np.broadcast_to(orders, (orders.size, epsilons.size)), near])
            divergences = self.rho * orders
        log_deltas = renyi_to_log_delta(orders, up(divergences, operations=500), epsilons).min(axis=0)
        if self.rho is not None:
            log_deltas = np.minimum(log_deltas, concentrated_to_log_delta(up(self.rho, operations=500), epsilons))
        return np.minimum(log_deltas + 1e-13 * (1 + np.abs(np.maximum(log_deltas, -1e300))), 0.0)  # −∞ stays −∞

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        if self.rho is not None:
            return super().epsilon_at_log(log_deltas)
        orders, divergences = self._curve()
        epsilons = renyi_to_epsilon(orders, divergences, log_deltas).min(axis=0)
        return up(epsilons, operations=500) + 1e-15


def _sorted_curve(
    orders: ArrayLike | None, divergences: ArrayLike | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    order_array, divergence_array = checked_lists(
        ("orders", orders, ABOVE_ONE), ("divergences", divergences, NON_NEGATIVE)
    )
    ranking = np.argsort(order_array, kind="stable")
    # A bound at a larger order is also one at every smaller order.
    improved = np.minimum.accumulate(divergence_array[ranking][::-1])[::-1]
    return tuple(order_array[ranking].tolist()), tuple(improved.tolist())
