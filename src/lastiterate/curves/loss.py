"""Discretised privacy-loss distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    Interval,
    InvalidInput,
    checked_array,
    checked_choice,
    checked_number,
    must_be,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.excess import LONGEST_EXTRAPOLATION
from lastiterate.numerics.lattice import LatticeSum, Masses, TiltedSum
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.numerics.rounding import up

_REAL = Interval(-math.inf, math.inf)
_MOST_CELLS = 20_000  # of a Gaussian mechanism on the lattice of another loss: more are slow, and a table is as sharp


@dataclass(frozen=True, init=False, eq=False)
class PrivacyLoss(Notion):
    """Mass masses[i] at the privacy loss first + i·spacing, `infinite` at +∞: the law of log dP/dQ under P, for a pair
    (P, Q) that dominates the mechanism in both orders. Composition is a lattice sum, evaluated on demand.
    """

    adjacency: Adjacency
    _total: LatticeSum = field(repr=False)
    _tilted: list[tuple[float, TiltedSum]] = field(repr=False)

    def __init__(
        self,
        *,
        first: float,
        spacing: float,
        masses: ArrayLike,
        infinite: float = 0.0,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        first, spacing = checked_number("first", first, _REAL), checked_number("spacing", spacing, POSITIVE)
        infinite = checked_number("infinite", infinite, UNIT)
        mass_array = np.atleast_1d(checked_array("masses", masses, NON_NEGATIVE))
        if mass_array.ndim != 1 or mass_array.size == 0:
            raise must_be("masses", "a list of floats", f"an array of shape {mass_array.shape}")
        total = math.fsum(mass_array) + infinite
        if abs(total - 1) > 1e-9:
            raise must_be("masses", "of sum 1", f"{total:.12g}", called="masses with infinite")
        points = first + spacing * np.arange(mass_array.size)
        with np.errstate(over="ignore"):
            mirrored = float((mass_array * np.exp(-points)).sum())
        if mirrored > 1 + 1e-9:
            raise InvalidInput("not_a_privacy_loss", field="masses", got=f"{mirrored:.6g}")
        self._fill(LatticeSum((Masses(first, spacing, mass_array, infinite),), (1,)), adjacency)

    def _fill(self, total: LatticeSum, adjacency: Adjacency) -> None:
        object.__setattr__(self, "adjacency", checked_choice("adjacency", adjacency, Adjacency))
        object.__setattr__(self, "_total", total)
        object.__setattr__(self, "_tilted", [])

    @classmethod
    def of_sum(cls, total: LatticeSum, adjacency: Adjacency) -> PrivacyLoss:
        """The loss whose law is `total`."""
        loss = cls.__new__(cls)
        loss._fill(total, adjacency)
        return loss

    @property
    def total(self) -> LatticeSum:
        return self._total

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.array([self._log_delta_at(epsilon) for epsilon in epsilons.tolist()])

    def _log_delta_at(self, epsilon: float) -> float:
        if epsilon >= self._total.last:
            return math.log(self._total.infinite) if self._total.infinite else -math.inf
        return self._sharp_at(epsilon).log_upper(epsilon)

    def _sharp_at(self, epsilon: float) -> TiltedSum:
        for drawn_at, tilted in self._tilted:
            if abs(epsilon - drawn_at) * tilted.abscissa <= LONGEST_EXTRAPOLATION:
                return tilted
        self._tilted.append((epsilon, self._total.tilt_for(epsilon)))
        return self._tilted[-1][1]

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.array([self._epsilon_at(log_delta) for log_delta in log_deltas.tolist()])

    def _epsilon_at(self, log_delta: float) -> float:
        if self._total.infinite and math.log(self._total.infinite) > log_delta:
            return math.inf
        last = max(self._total.last, 0.0)
        if last == 0:
            return 0.0
        guess = min(max(self._total.mean, 0.0), 0.5 * last)
        return decreasing_crossing(lambda t: self._log_delta_at(t) - log_delta, 0.0, last, guess, 0.05 * last, 1e-9)

    def _after(self, mu: float) -> Notion:
        """On the lattice of this loss, unless that is far too fine for the Gaussian mechanism."""
        from lastiterate.curves.compose import compose, largest_loss
        from lastiterate.curves.gaussian import GaussianDP

        before = GaussianDP(mu, self.adjacency)
        if largest_loss(before) > _MOST_CELLS * self._total.spacing:
            return super()._after(mu)
        return compose([self, before])

    def _rdp(self, orders: Floats) -> Floats:
        if self._total.infinite:
            return np.full_like(orders, np.inf)
        values = np.array([self._total.cumulant(order - 1)[0] / (order - 1) for order in orders.tolist()])
        return up(np.maximum(values, 0.0)) + 1e-13 * sum(self._total.counts)
