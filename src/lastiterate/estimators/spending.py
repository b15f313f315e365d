"""What part of the budget goes to preparing the data: squares of mu add up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lastiterate.numerics.rounding import down, up
from lastiterate.training.preparation import Spent

# Of mu².
_LEAST = 1e-12  # that is left for a plan; where nothing is left, calibration says so
_CENTER, _SCALE, _TARGET_CENTER = 0.1, 0.01, 0.05


@dataclass(frozen=True)
class PreparationBudget:
    """For features and for targets, None where nothing is learnt of them; and what was spent `before`, upstream."""

    features: Spent | None = None
    targets: Spent | None = None
    before: float = 0.0

    @classmethod
    def of_features(cls, mu: float, centred: bool) -> PreparationBudget:
        """Where rows keep their origin, no centre is paid for."""
        return cls(_parts(mu, _CENTER if centred else 0.0))

    @staticmethod
    def all_of(mu: float) -> Spent:
        """For features alone, in the same proportion; a hair less, so that both together are no more than mu."""
        part = down(mu, by=1e-9) / math.sqrt(_CENTER + _SCALE)
        return _parts(part, _CENTER)

    def and_targets(self, mu: float, centred: bool) -> PreparationBudget:
        return replace(self, targets=_parts(mu, _TARGET_CENTER if centred else 0.0))

    @property
    def mu(self) -> float:
        """Of all of it."""
        parts = [part.mu for part in (self.features, self.targets) if part is not None]
        return up(math.hypot(self.before, *parts), operations=len(parts))

    def left_of(self, mu: float) -> float:
        """What is left for training."""
        return math.sqrt(max(mu**2 - self.mu**2, _LEAST * mu**2))


def _parts(mu: float, center: float) -> Spent:
    return Spent(math.sqrt(center) * mu, math.sqrt(_SCALE) * mu)
