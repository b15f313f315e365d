"""The largest, or the least, of several profiles at each ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lastiterate.curves.adjacency import Adjacency, common_adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.numerics.arrays import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Worst(Notion):
    """One of several releases, it is not said which: what holds for each of them."""

    members: tuple[Notion, ...]
    adjacency: Adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, members=tuple(one.relabelled(adjacency) for one in self.members), adjacency=adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.asarray(np.max([member._log_delta(epsilons) for member in self.members], axis=0))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.asarray(np.max([member._epsilon(log_deltas) for member in self.members], axis=0))

    def _rdp(self, orders: Floats) -> Floats:
        return np.asarray(np.max([member._rdp(orders) for member in self.members], axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class Least(Notion):
    """All of these hold for one release. Unlike `best` it looks for no convex function below them, which takes a while."""

    members: tuple[Notion, ...]
    adjacency: Adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, members=tuple(one.relabelled(adjacency) for one in self.members), adjacency=adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.asarray(np.min([member._log_delta(epsilons) for member in self.members], axis=0))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.asarray(np.min([member._epsilon(log_deltas) for member in self.members], axis=0))


def worst(notions: Sequence[Notion]) -> Notion:
    """Of Gaussians, the one with the largest mu."""
    adjacency = common_adjacency(one.adjacency for one in notions)
    gaussians = [one.mu for one in notions if isinstance(one, GaussianDP)]
    others = [one for one in notions if not isinstance(one, GaussianDP)]
    members = [*([GaussianDP(max(gaussians), adjacency)] if gaussians else []), *dict.fromkeys(others)]
    return members[0] if len(members) == 1 else Worst(tuple(members), adjacency)
