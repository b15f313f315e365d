"""A guarantee of a mechanism that is executed up to rounding: what is computed is a known Gaussian distance away."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.averaged import AveragedGaussianDP
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.notion import Notion
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up

_FAR = 16.0
"""Times the displacement: the profile of the difference is below 1e-56 there, below every δ. More would add more to ε,
less would leave more for δ."""


@dataclass(frozen=True, eq=False)
class Displaced(Notion):
    """On either data set, what is computed and what is accounted for are `displacement`-GDP apart.

    With a = 16·displacement, or 0: δ'(ε + 2a) ≤ e^a·δ(ε) + (1 + e^{a+ε})·θ_a(displacement), by the triangle inequality
    E_{a+b}(P‖R) ≤ E_a(P‖Q) + e^a·E_b(Q‖R), twice.
    """

    inner: Notion
    displacement: float

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.inner.adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, inner=self.inner.relabelled(adjacency))

    def _after(self, mu: float) -> Notion:
        """What came before was computed as it is, so that both together are displaced no farther."""
        return replace(self, inner=self.inner.after(mu))

    def epsilon_estimate(self, log_delta: float) -> float:
        return self.inner.epsilon_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        return self.inner.log_delta_estimate(epsilon)

    @property
    def _moved(self) -> float:
        return _FAR * self.displacement

    def _log_delta(self, epsilons: Floats) -> Floats:
        before = np.maximum(epsilons - 2 * self._moved, 0.0)
        far = np.where(epsilons >= 2 * self._moved, self._farther(before, self._moved), 0.0)
        return np.minimum(far, self._farther(epsilons, 0.0))

    def _farther(self, epsilons: Floats, moved: float) -> Floats:
        """log δ' at ε + 2a, with this a."""
        together = np.logaddexp(self.inner._log_delta(epsilons) + moved, self._lost(epsilons, moved))
        return np.minimum(together + 1e-15 * (1 + np.abs(together)), 0.0)

    def _lost(self, epsilons: Floats, moved: float) -> Floats:
        apart = float(log_gap_above(np.array([moved]), self.displacement)[0])
        return apart + np.logaddexp(0.0, moved + epsilons)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        """Almost all of δ for the guarantee itself; where what is lost does not fit into the rest, nothing is known."""
        found = self.inner._epsilon(log_deltas - self._moved - 1e-9)
        fits = self._lost(found, self._moved) <= log_deltas + math.log(5e-10)
        return np.where(fits, found + 2 * self._moved, np.inf)


def as_computed(notion: Notion, displacement: float) -> Notion:
    """The guarantee of what is computed; Gaussian ones stay Gaussian, because the distances add up."""
    if displacement == 0:
        return notion
    if isinstance(notion, GaussianDP):
        return GaussianDP(up(notion.mu + 2 * displacement, operations=5), notion.adjacency)
    if isinstance(notion, AveragedGaussianDP):
        free = max(0.0, 1.0 - math.fsum(notion.weights))  # places that cost nothing before
        mus, weights = (*notion.mus, 0.0), (*notion.weights, free)
        moved = [up(mu + 2 * displacement, operations=5) for mu in mus]
        return AveragedGaussianDP(mus=moved, weights=weights, adjacency=notion.adjacency)
    if isinstance(notion, HiddenPlaceDP):
        own, pairs = (up(values + 2 * displacement, operations=5) for values in (notion.mus, notion.pair_mus))
        return HiddenPlaceDP(mus=own, pair_mus=pairs, weights=notion.weights, adjacency=notion.adjacency)
    return Displaced(notion, displacement)
