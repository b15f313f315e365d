"""A privacy profile for many questions at once. Trusted: chords in e^ε lie above a profile, which is convex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.adjacency import Adjacency
from lastiterate.privacy.ladder import epsilon_estimate
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.subsampled import SubsampledGaussians

_POINTS = 96
_SMALLEST = 1e-19
_LARGEST = 600.0
_FAR_OUT = math.log(1e-40)


@dataclass(frozen=True, eq=False)
class Tabled:
    """Upper bounds on δ(ε) and ε(δ) of this guarantee: a formula where there is one, otherwise a table."""

    notion: Notion

    def delta(self, epsilons: Floats) -> Floats:
        if not isinstance(self.notion, SubsampledGaussians) or self.notion.is_a_formula:
            return np.asarray(self.notion.delta(epsilons))
        points, deltas = self._table
        return np.interp(np.exp(np.minimum(epsilons, _LARGEST)), np.exp(points), deltas) * (1 + 1e-12)

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.delta(epsilons)) + 1e-15

    def epsilon(self, log_delta: float) -> float:
        """From the table where the notion itself would take long; far out, without credit for sampling."""
        notion = self.notion
        if isinstance(notion, SubsampledGaussians) and not notion.is_a_formula and notion.is_slow:
            if log_delta < _FAR_OUT:
                return float(notion.without_sampling._epsilon(np.array([log_delta]))[0])
            points, deltas = self._table
            target = math.exp(log_delta) * (1 - 1e-12)
            if deltas[-1] <= target:
                return float(np.log(np.interp(target, deltas[::-1], np.exp(points[::-1])))) * (1 + 1e-12) + 1e-15
        return float(notion._epsilon(np.array([log_delta]))[0])

    @cached_property
    def reach(self) -> float:
        """About where δ is negligible; whatever it is, the table is valid."""
        if isinstance(self.notion, SubsampledGaussians) and not self.notion.is_a_formula:
            return min(1.05 * self.notion.epsilon_estimate(math.log(_SMALLEST)) + 1e-12, _LARGEST)
        return min(float(self.notion.epsilon(_SMALLEST)), _LARGEST)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Beyond the last point δ is taken for what it is there."""
        assert isinstance(self.notion, SubsampledGaussians)
        points = self.reach * np.linspace(0.0, 1.0, _POINTS) ** 1.5
        return points, np.minimum.accumulate(self.notion.delta_curve(points, math.log(_SMALLEST)))


@dataclass(frozen=True, eq=False)
class Quick(Notion):
    """The guarantee as its table has it, where the guarantee itself would take long."""

    notion: Notion

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.notion.adjacency

    def epsilon_estimate(self, log_delta: float) -> float:
        return epsilon_estimate(self.notion, log_delta)

    @cached_property
    def _tabled(self) -> Tabled:
        return Tabled(self.notion)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self._tabled.log_delta(epsilons)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.array([self._tabled.epsilon(log_delta) for log_delta in log_deltas.tolist()])
