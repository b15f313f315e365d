"""Where in the run a record takes its turns, and the steps that its shift meets from there. Trusted, as `certify` is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.records import Turns, latest_turns
from lastiterate.shift.steps import Counts, Steps

_OVERHEAD = 500  # one place costs about as much as so many steps
_MOST_PLACES = 512
_NEAR_THE_END = 128
_TOO_MANY = 1e10


@dataclass(frozen=True, eq=False)
class Places(ABC):
    """The places at which a record may be; each is a list of stretches between releases."""

    process: Process
    averaged: bool
    grouped: bool = True  # many places that are much alike may be counted as the worst of them

    @property
    @abstractmethod
    def wanted(self) -> dict[int, float]:
        """The places to look at, each with its probability; 0 where the worst of them counts."""

    @abstractmethod
    def stretches(self, place: int) -> list[Steps | None]:
        """What a record at this place meets between one release and the next; None where it takes no part."""

    @property
    def work(self) -> float:
        """About how many steps there are to go through."""
        return len(self.process)

    @property
    def count(self) -> int:
        """At most so many places are wanted."""
        return 1

    @cached_property
    def parts(self) -> list[Turns]:
        given = self.process
        whole = Steps(given.sensitivity, given.noise, given.lipschitz, given.diameter)
        return [Turns(whole.part(*ends), self.every, given.constant) for ends in given.segments]

    @property
    def every(self) -> int:
        return self.process.batches.per_epoch


class EveryStep(Places):
    """The record is in every batch; in a random one it may be, and more turns never help it."""

    @property
    def every(self) -> int:
        return 1

    @property
    def wanted(self) -> dict[int, float]:
        return {0: 0.0}

    def stretches(self, place: int) -> list[Steps | None]:
        return [part.regular(0) for part in self.parts]


class FixedOrder(Places):
    """The record is in one batch, at the same place in every epoch; the place may have been drawn once."""

    @cached_property
    def wanted(self) -> dict[int, float]:
        steps = len(self.process)
        # With all steps alike, an earlier place is a later one followed by steps that do not see the record.
        alike = self.process.constant and not self.process.releases
        if not self.averaged:
            return {(steps - 1) % self.every: 0.0} if alike else dict.fromkeys(range(min(self.every, steps)), 0.0)
        if self.grouped and alike and self.every > _MOST_PLACES:
            once_more = steps % self.every  # so many places have one turn more than the others
            return {**_groups(0, once_more, self.every), **_groups(once_more, self.every, self.every)}
        return dict.fromkeys(range(self.every), 1 / self.every)

    @property
    def work(self) -> float:
        return _work_of_turns(self)

    @property
    def count(self) -> int:
        if self.process.constant and not self.process.releases and (self.grouped or not self.averaged):
            return min(self.every, 2 * _MOST_PLACES) if self.averaged else 1
        return self.every if self.averaged else min(self.every, len(self.process))

    def stretches(self, place: int) -> list[Steps | None]:
        found: list[Steps | None] = []
        for part, (first, _) in zip(self.parts, self.process.segments, strict=True):
            offset = (place - first) % self.every
            found.append(part.regular(offset) if offset < len(part.steps) else None)
        return found


class NewOrders(Places):
    """Each epoch has its own order. Where the record is in the last epoch is averaged over; elsewhere the worst is taken.

    The worst is the end of the epoch, with the largest push that any turn inside it could have grown to by then; an epoch
    that a release cuts in two is counted as two. A place is that in the last piece; −1 if the record has no turn there.
    """

    @cached_property
    def wanted(self) -> dict[int, float]:
        if not self.averaged:
            return {self._last_piece - 1: 0.0}
        if self._later_is_worse and self._last_piece > _MOST_PLACES:
            places = _groups(0, self._last_piece, self.every)
        else:
            places = dict.fromkeys(range(self._last_piece), 1 / self.every)
        if self._last_piece < self.every:
            places[-1] = 1 - self._last_piece / self.every
        return places

    @property
    def _last_piece(self) -> int:
        """Steps since the last epoch began, or since the last release."""
        return len(self.process) - max((len(self.process) - 1) // self.every * self.every, *self.process.releases, 0)

    @property
    def work(self) -> float:
        return len(self.process) + self.every * self._last_piece + _work_of_turns(self)

    @property
    def count(self) -> int:
        return min(self._last_piece, _MOST_PLACES) if self._later_is_worse else self._last_piece

    @property
    def _later_is_worse(self) -> bool:
        """If nothing grows and all steps are alike, a later place is no better (docs/proofs.md)."""
        return self.grouped and self.process.constant and self.process.contraction <= 1

    def stretches(self, place: int) -> list[Steps | None]:
        *earlier, last = zip(self.parts, self._ends, self.worst_pushes, strict=True)
        return [part.at(ends, pushes) for part, ends, pushes in earlier] + [self._with_last(*last, place)]

    def _with_last(self, part: Turns, ends: Counts, pushes: Floats, place: int) -> Steps | None:
        """Earlier pieces at their worst; the last at this place, or at its worst, or without the record."""
        if place < 0:
            ends, pushes = ends[:-1], pushes[:-1]
        elif self.averaged:
            turn = len(part.steps) - self._last_piece + place
            ends, pushes = np.append(ends[:-1], turn), np.append(pushes[:-1], part.steps.sensitivity[turn])
        return part.at(ends, pushes) if ends.size else None

    @cached_property
    def _ends(self) -> list[Counts]:
        """For each stretch the last step of each piece: of an epoch, or of what a release leaves of one."""
        found = []
        for first, last in self.process.segments:
            inside = np.arange((first // self.every + 1) * self.every, last, self.every)
            found.append(np.append(inside, last) - first - 1)
        return found

    @cached_property
    def worst_pushes(self) -> list[Floats]:
        return [
            latest_turns(part.steps, ends, self.process.constant)
            for part, ends in zip(self.parts, self._ends, strict=True)
        ]


def _groups(first: int, last: int, of: int) -> dict[int, float]:
    """Places from first to last, of which a later one is no better: those between two are counted as the later."""
    count = last - first
    if not count:
        return {}
    far = np.geomspace(_NEAR_THE_END, max(count, _NEAR_THE_END), _MOST_PLACES - _NEAR_THE_END).astype(np.intp)
    edges = np.unique(np.minimum(np.concatenate([np.arange(_NEAR_THE_END), far, [count]]), count))
    shares = np.diff(edges) / of
    return dict(zip((last - 1 - edges[:-1]).tolist(), shares.tolist(), strict=True))


def _work_of_turns(places: Places) -> float:
    if places.count * _OVERHEAD > _TOO_MANY or places.parts[0].dense:
        return len(places.process) * places.count
    turns = 2 * len(places.process) / places.every
    return places.count * (turns + _OVERHEAD * len(places.parts))


def places_of(process: Process, averaged: bool) -> Places:
    """The places of a record in this run."""
    batches = process.batches
    if batches.reshuffled:
        return NewOrders(process, averaged)
    return FixedOrder(process, averaged) if batches.passes else EveryStep(process, averaged)
