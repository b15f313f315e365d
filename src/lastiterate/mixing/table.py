"""A privacy profile for many questions at once. Trusted: chords in e^ε lie above a profile, which is convex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from lastiterate.curves.notion import Adjusted, Notion
from lastiterate.curves.profile import LARGEST_TABLED
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.bracketed import Bracketed, exactly
from lastiterate.numerics.rounding import down, up

_POINTS = 96  # chords lie above: with fewer points by more; each costs a contour's sum
# Below the 1e-17 that profiles are followed down to; a longer table would be coarser where it matters.
_SMALLEST = 1e-19
# For so small a δ a lattice takes long; to give up the credit for sampling is quick, and valid.
_FAR_OUT = math.log(1e-40)
_FEW = 3  # questions that are quicker than a table
_HOPELESS = math.log(1e-3)  # of δ where the table ends, at ε = 600: nothing in such a table would protect anybody


@dataclass(frozen=True, eq=False)
class Tabled:
    """Upper bounds on δ(ε) and ε(δ) of this guarantee: a formula where there is one, otherwise a table."""

    notion: Notion

    def delta(self, epsilons: Floats) -> Floats:
        if self._table is None:
            return np.asarray(self.notion.delta(epsilons))
        points, deltas = self._table
        return up(np.interp(np.exp(np.minimum(epsilons, LARGEST_TABLED)), np.exp(points), deltas))

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.delta(epsilons)) + 1e-15

    def epsilon(self, log_delta: float) -> Bracketed:
        """ε at one δ: without a table, which is sharper, but for few mixed steps; far out, as if nothing were sampled."""
        composed = self._composed
        if composed is not None and composed.is_slow and log_delta < _FAR_OUT:
            return composed.without_sampling.epsilon_bracketed(log_delta)
        if composed is not None and composed.is_slow and composed.is_mixed and self._table is not None:
            points, deltas = self._table
            target = down(math.exp(log_delta))
            if deltas[-1] <= target:
                return exactly(up(float(np.log(np.interp(target, deltas[::-1], np.exp(points[::-1]))))) + 1e-15)
        return self.notion.epsilon_bracketed(log_delta)

    @property
    def _composed(self) -> SubsampledGaussians | None:
        """The notion, if it is one that only a table answers quickly."""
        notion = self.notion
        return notion if isinstance(notion, SubsampledGaussians) and not notion.is_a_formula else None

    @cached_property
    def reach(self) -> float:
        """About where δ is negligible; whatever it is, the table is valid."""
        if self._composed is not None:
            return min(1.05 * self._composed.epsilon_estimate(math.log(_SMALLEST)) + 1e-12, LARGEST_TABLED)
        return min(float(self.notion.epsilon(_SMALLEST)), LARGEST_TABLED)

    @cached_property
    def _table(self) -> tuple[Floats, Floats] | None:
        """Beyond the last point δ is taken for what it is there. None where there is a formula."""
        return None if self._composed is None else _curve(self._composed, self.reach)


@lru_cache(maxsize=16)
def _curve(composed: SubsampledGaussians, reach: float) -> tuple[Floats, Floats]:
    """One for all who ask about the same steps: windows and blocks do."""
    points = reach * np.linspace(0.0, 1.0, _POINTS) ** 1.5
    if composed.log_delta_estimate(LARGEST_TABLED) > _HOPELESS:
        return points, np.ones(_POINTS)  # valid, and no lattice is needed to say that nothing is left
    return points, np.minimum.accumulate(composed.delta_curve(points, math.log(_SMALLEST)))


@dataclass(frozen=True, eq=False)
class Quick(Adjusted):
    """The guarantee as its table has it, where the guarantee itself would take long."""

    @cached_property
    def _tabled(self) -> Tabled:
        return Tabled(self.inner)

    def log_delta(self, epsilons: Floats) -> Floats:
        """A few questions as δ is asked for ε, so that both belong together."""
        return self.inner.log_delta(epsilons) if epsilons.size <= _FEW else self._tabled.log_delta(epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return np.array([self._tabled.epsilon(log_delta).value for log_delta in log_deltas.tolist()])
