"""The best of several guarantees for the same release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import Adjacency, common_adjacency
from lastiterate.curves.compose import checked_notions
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

_TABLED = 257  # points of a table that nobody gave
# Of them, one in so many is looked at where another member is better: chords between fewer lie higher, and still hold.
_EVERY = 8
_BEYOND = 2.0  # times the ε where the first is below every δ: chords that end farther off gain nothing


@dataclass(frozen=True, eq=False, repr=False)
class Best(Notion):
    """The pointwise minimum of valid profiles, and the greatest minorant of it that is convex in e^ε."""

    members: tuple[Notion, ...]
    adjacency: Adjacency

    def _said(self) -> str:
        return f"of {len(self.members)} guarantees"

    def _log_delta(self, epsilons: Floats) -> Floats:
        least = np.min([member._log_delta(epsilons) for member in self.members], axis=0)
        return np.minimum(least, self._minorant._log_delta(epsilons))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        least = np.min([member._epsilon(log_deltas) for member in self.members], axis=0)
        return np.minimum(least, self._minorant._epsilon(log_deltas))

    def _after(self, mu: float) -> Best:
        return Best(tuple(member.after(mu) for member in self.members), self.adjacency)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        members = [member._tradeoff(type_i_errors) for member in (*self.members, self._minorant)]
        return np.max(members, axis=0)

    @cached_property
    def _grid(self) -> Floats:
        """Every point of the member that falls first, every few of the others, and all that somebody gave."""
        tables = sorted((member._table[0] for member in self.members), key=lambda table: float(table.max()))
        few = np.concatenate([table if len(table) > _TABLED else table[::_EVERY] for table in tables])
        return np.unique(np.append(tables[0], few[few <= _BEYOND * tables[0].max()]))

    @cached_property
    def _minorant(self) -> Profile:
        """From a table of all members: any finite set of points gives a valid profile."""
        epsilons = self._grid
        deltas = up(np.exp(np.min([member._log_delta(epsilons) for member in self.members], axis=0)), operations=50)
        return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0), adjacency=self.adjacency)


def best(guarantees: Iterable[Notion]) -> Notion:
    """One guarantee from several for the same release: the smallest δ of them at every ε."""
    members = tuple(checked_notions("best", guarantees))
    adjacency = common_adjacency(member.adjacency for member in members)
    return members[0] if len(members) == 1 else Best(members, adjacency)
