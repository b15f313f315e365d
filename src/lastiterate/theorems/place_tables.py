"""Tables of an epoch in a secret order on a bounded set, for a record at each place and at each two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.mixing.distances import Scale, Step
from lastiterate.mixing.hidden_tables import HiddenTables
from lastiterate.numerics.arrays import Floats
from lastiterate.theorems.bounded_steps import Bounded
from lastiterate.theorems.places import place_sizes

_ALONE, _HARD = 4, 3  # of the last places: those that count for themselves, and those that are compared with others


def _turned(turn: Step, after: Floats | None) -> Floats:
    """From a turn of the record on; nothing comes after it, or what the table is about."""
    return turn.last if after is None else turn.before(after)


@dataclass(frozen=True, eq=False)
class PlaceTables:
    """Tables from the beginning of an epoch on, for a record at each place: the last ones alone, others in groups.

    PlaceTables count from the end: the record's turn comes when so many steps are left, itself included.
    """

    domain: Bounded

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        every, found = self.domain.process.batches.per_epoch, []
        first = 1
        while first <= every:
            size = 1 if first <= _ALONE else first - 1 - _ALONE // 2
            found.append((first, min(first + size - 1, every)))
            first = found[-1][1] + 1
        return found

    @property
    def weights(self) -> Floats:
        process = self.domain.process
        sizes, total = place_sizes(process, process.batches.per_epoch)
        return np.array([sizes[::-1][first - 1 : last].sum() / total for first, last in self.groups])

    def _without(self, table: Floats | None) -> list[Floats | None]:
        """With 0, 1, 2, … more steps without the record before it; the last for any number from there on."""
        found = [table]
        while len(found) < self.domain.process.batches.per_epoch:
            last = found[-1]
            if last is None:
                found.append(self.domain.free.last)
            elif self.domain.settled(last):
                found.append(self.domain.long_before(last))
                break
            else:
                found.append(self.domain.free.before(last))
        return found

    def _group(self, after: list[Floats | None], offset: int, group: tuple[int, int], turn: Step) -> Floats:
        """The worst place of a group, carried to the beginning of the epoch; `after[i]` has offset + i steps."""
        first, last = group

        def turn_at(place: int) -> Floats:
            return _turned(turn, after[min(place - 1 - offset, len(after) - 1)])

        worst, steady = turn_at(first), False
        for place in range(first + 1, last + 1):
            if not steady:
                following = np.maximum(turn_at(place), self.domain.carried(worst, 1))
                steady = bool((following <= worst).all()) and place - 1 - offset >= len(after)
                worst = np.maximum(following, worst) if steady else following
        return self.domain.carried(worst, self.domain.process.batches.per_epoch - last)

    @cached_property
    def own(self) -> list[Floats]:
        free = self._without(None)
        return [self._group(free, 0, group, self.domain.turn) for group in self.groups]

    @cached_property
    def pairs(self) -> list[dict[int, Floats]]:
        """For each of the last places, with each group that comes before it."""
        turn, exchanged = self.domain.turn, self.domain.exchanged
        found = self._pairs(exchanged, turn)
        if exchanged is turn:
            return found
        other = self._pairs(turn, exchanged)  # the worse of both orders of the two data sets
        pairs = zip(found, other, strict=True)
        return [{index: np.maximum(one[index], two[index]) for index in one} for one, two in pairs]

    def _pairs(self, last: Step, before: Step) -> list[dict[int, Floats]]:
        found = []
        for place in range(1, min(_HARD, len(self.groups) - 1) + 1):
            after = self._without(_turned(last, self._without(None)[place - 1]))
            later = range(place, len(self.groups))
            found.append({index: self._group(after, place, self.groups[index], before) for index in later})
        return found

    def hidden(self, own: list[Floats], pairs: list[dict[int, Floats]], levels: Floats) -> HiddenTables:
        """From tables at these levels, the places that are easy to see last."""
        scale = Scale(self.domain.scale.rows, levels, self.domain.scale.cuts)
        count = len(own)
        table = np.ones((len(pairs), count, len(levels)))
        for row, found in enumerate(pairs):
            for index, one in found.items():
                table[len(pairs) - 1 - row, count - 1 - index] = one
        return HiddenTables(scale, self.weights[::-1], np.array(own[::-1]), table)
