"""A guarantee together with what a Gaussian mechanism released before, on whose outcome it may depend.

Whatever that outcome, δ(ε) bounds the release that follows. With L ~ N(μ²/2, μ²), the loss of the Gaussian mechanism, both
together have the profile E δ(ε − L) at most. Points of δ have chords above it: they are the profile of a loss with atoms of
mass m_i at ε_i, whose own is Σ m_i·(1 − e^{ε − ε_i})₊. With the Gaussian it is Σ m_i·θ_{ε − ε_i}(μ): no term is negative, so
that small δ keep their digits. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.chosen_slack import ForEachDepth
from lastiterate.curves.dominated import apart, tabled
from lastiterate.curves.hidden_place import log_gap_anywhere
from lastiterate.curves.notion import Notion
from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.convex import lower_hull
from lastiterate.numerics.normal_gap import log_gap_above, shift_below, threshold_above
from lastiterate.numerics.rounding import up

_OTHERWISE = (1e-3, 0.1, 0.9)  # δ that a table goes down to, where the guarantee never gets below the one that is asked

_LOG_TWO = math.log(2.0) + 1e-15
_FEW_QUESTIONS = 6  # each takes its time on a lattice


@dataclass(frozen=True, eq=False)
class AfterGaussian(ForEachDepth):
    """`inner` and a Gaussian mechanism with this mu before it: by tables of `inner`, each as deep as is asked."""

    inner: Notion
    mu: float
    _known: dict[int, Notion] = field(default_factory=dict, init=False, repr=False)

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.inner.adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, inner=self.inner.relabelled(adjacency))

    def _after(self, mu: float) -> Notion:
        return replace(self, mu=up(math.hypot(self.mu, mu), operations=5))

    def member(self, power: int) -> Notion:
        if power not in self._known:
            depths = (self.exception(power), *_OTHERWISE)
            tables = (tabled(self.inner, depth, raised=0.0) for depth in depths)
            points = next((table for table in tables if table is not None), (np.zeros(1), np.ones(1)))
            self._known[power] = AtomsAndGaussian(*atoms(*points), self.mu, self.adjacency)
        return self._known[power]

    def epsilon_estimate(self, log_delta: float) -> float:
        """As if `inner` were Gaussian."""
        alone = self.inner.epsilon_estimate(log_delta)
        if not 0 < alone < math.inf:
            return alone
        return float(threshold_above(log_delta, math.hypot(float(shift_below(log_delta, alone)), self.mu)))

    def log_delta_estimate(self, epsilon: float) -> float:
        alone = self.inner.log_delta_estimate(epsilon)
        if math.isnan(alone) or alone >= 0:
            return alone
        return float(log_gap_above(epsilon, math.hypot(float(shift_below(alone, epsilon)), self.mu)))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        """Where ε is too large for a table: each half of δ by itself."""
        found = super()._epsilon(log_deltas)
        if np.isinf(found).any():
            halved = log_deltas - _LOG_TWO
            found = np.minimum(found, up(self.inner._epsilon(halved) + threshold_above(halved, self.mu)))
        return found


@dataclass(frozen=True, eq=False, repr=False)
class AfterLosses(AfterGaussian):
    """`losses` are those of `inner`, in both orders of the data sets; `otherwise` holds for the same release, too.

    A few questions are answered by them, on their lattice, many by a table.
    """

    losses: Callable[[], tuple[Notion, Notion]]
    otherwise: Notion | None = None

    @cached_property
    def _orders(self) -> list[Notion]:
        return [order.after(self.mu) for order in self.losses()]

    @cached_property
    def _other(self) -> list[Notion]:
        return [] if self.otherwise is None else [self.otherwise.after(self.mu)]

    def relabelled(self, adjacency: Adjacency) -> Notion:
        other = None if self.otherwise is None else self.otherwise.relabelled(adjacency)
        return replace(self, inner=self.inner.relabelled(adjacency), otherwise=other)

    def _log_delta(self, epsilons: Floats) -> Floats:
        if epsilons.size > _FEW_QUESTIONS:
            return super()._log_delta(epsilons)
        worse = np.max([order._log_delta(epsilons) for order in self._orders], axis=0)
        return np.min([worse, *(other._log_delta(epsilons) for other in self._other)], axis=0)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        worse = np.max([order._epsilon(log_deltas) for order in self._orders], axis=0)
        return np.min([worse, *(other._epsilon(log_deltas) for other in self._other)], axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class AtomsAndGaussian(Notion):
    """Mass masses[i] at the loss losses[i], `infinite` at +∞; and the loss of a Gaussian mechanism with this mu."""

    losses: Floats
    masses: Floats
    infinite: float
    mu: float
    adjacency: Adjacency

    def _log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            weights, rest = np.log(self.masses), np.log(self.infinite)
        levels = epsilons[:, None] - self.losses
        levels = levels - 4 * ROUNDOFF * (epsilons[:, None] + np.abs(self.losses))  # rounded down
        logs = np.logaddexp.reduce(log_gap_anywhere(levels, np.array(self.mu)) + weights, axis=1)
        together = np.maximum(np.logaddexp(logs, rest), -1e300)
        return np.minimum(together + ROUNDOFF * (2 * self.masses.size + 8 + 2 * np.abs(together)), 0.0)


def atoms(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats, float]:
    """(losses, masses, the mass at +∞) of a symmetric pair whose profile is nowhere below these upper bounds on δ.

    In y = e^ε the slopes of the chords are −Q(L > ε): a kink at y is a Q-mass, y times it a P-mass. The mirror image of a
    P-mass m at ε is e^{−ε}·m at −ε; the rest sits at 0.
    """
    y, given = lower_hull(*apart(np.exp(epsilons), deltas))
    slopes = np.append(np.diff(given) / np.diff(y), 0.0)
    slopes = np.minimum.accumulate(slopes[::-1])[::-1]  # rounding may bend the chain
    masses, infinite = y[1:] * np.diff(slopes), float(given[-1])
    drawn = np.maximum(1 - y[:, None] / y[1:], 0.0) @ masses + infinite
    missing = np.divide(given, drawn, out=np.ones_like(given), where=drawn > 0).max()
    masses = up(masses * max(float(missing), 1.0))
    below = masses / y[1:]
    middle = max(1.0 - infinite - float(masses.sum()) - float(below.sum()), 0.0)
    losses = np.log(y[1:])
    together = np.concatenate([below[::-1], [up(middle)], masses])
    return np.concatenate([-losses[::-1], [0.0], losses]), together, infinite
