"""A guarantee that holds but for an event of small probability that does not depend on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down


@dataclass(frozen=True, eq=False)
class _Nearly(Notion):
    inner: Notion
    slack: float

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.inner.adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, inner=self.inner.relabelled(adjacency))

    def _after(self, mu: float) -> Notion:
        return replace(self, inner=self.inner.after(mu))

    def epsilon_estimate(self, log_delta: float) -> float:
        return self.inner.epsilon_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        return self.inner.log_delta_estimate(epsilon)


class Slackened(_Nearly):
    """δ(ε) + slack: with probability `slack` the mechanism is another one (joint convexity)."""

    def _log_delta(self, epsilons: Floats) -> Floats:
        together = np.logaddexp(self.inner._log_delta(epsilons), math.log(self.slack))
        return np.minimum(together + 4e-16 * (1 + np.abs(together)), 0.0)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        left = down(np.exp(log_deltas), operations=500) - self.slack
        found = np.full_like(log_deltas, np.inf)
        if (enough := left > 0).any():
            found[enough] = self.inner._epsilon(np.log(left[enough]))
        return found


class NearlyAlways(_Nearly):
    """δ(ε) + (1 + e^ε)·slack: either run is another one with probability `slack`, which may depend on the data."""

    def _log_delta(self, epsilons: Floats) -> Floats:
        lost = math.log(self.slack) + np.logaddexp(0.0, epsilons)
        together = np.logaddexp(self.inner._log_delta(epsilons), lost)
        return np.minimum(together + 1e-15 * (1 + np.abs(together)), 0.0)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        """A hundredth of δ for what may be lost, or half of it, or nothing is known."""
        found = np.full_like(log_deltas, np.inf)
        for share in (0.5, 0.01):
            epsilons = self.inner._epsilon(log_deltas + math.log1p(-share) - 1e-12)
            enough = math.log(self.slack) + np.logaddexp(0.0, epsilons) <= log_deltas + math.log(share) - 1e-12
            found = np.where(enough, np.minimum(found, epsilons), found)
        return found


def with_slack(notion: Notion, slack: float) -> Notion:
    """The guarantee itself where nothing can go wrong."""
    return Slackened(notion, slack) if slack else notion
