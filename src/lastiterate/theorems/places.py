"""Where in the run a record takes its turns, and the steps that its shift meets from there. Trusted, as `certify` is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.algorithms.batches import Cyclic, Shuffled
from lastiterate.algorithms.process import Process
from lastiterate.shift.records import Turns, latest_turns
from lastiterate.shift.steps import Steps

_OVERHEAD = 1000  # one place costs about as much as so many steps
_MOST_PLACES = 512
_NEAR_THE_END = 128


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
        return len(self.process) * len(self.wanted)

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
        last = (len(self.process) - 1) % self.every
        # With all steps alike, an earlier place is a later one followed by steps that do not see the record.
        alike = self.process.constant and not self.process.releases
        if not self.averaged:
            return {last: 0.0} if alike else dict.fromkeys(range(min(self.every, len(self.process))), 0.0)
        if self.grouped and alike and len(self.process) % self.every == 0 and self.every > _MOST_PLACES:
            return self._grouped
        return dict.fromkeys(range(self.every), 1 / self.every)

    @property
    def _grouped(self) -> dict[int, float]:
        """Many places: those between two are counted as the later one, which is no better."""
        near = np.arange(_NEAR_THE_END)
        far = np.geomspace(_NEAR_THE_END, self.every, _MOST_PLACES - _NEAR_THE_END).astype(int)
        edges = np.unique(np.concatenate([near, far, [self.every]]))
        shares = np.diff(edges) / self.every
        return dict(zip((self.every - 1 - edges[:-1]).tolist(), shares.tolist(), strict=True))

    @property
    def work(self) -> float:
        if self.parts[0].dense:
            return len(self.process) * len(self.wanted)
        turns = 2 * len(self.process) / self.every
        return len(self.wanted) * (turns + _OVERHEAD * len(self.parts))

    def stretches(self, place: int) -> list[Steps | None]:
        found: list[Steps | None] = []
        for part, (first, _) in zip(self.parts, self.process.segments, strict=True):
            offset = (place - first) % self.every
            found.append(part.regular(offset) if offset < len(part.steps) else None)
        return found


class NewOrders(Places):
    """Each epoch has its own order. Where the record is in the last epoch is averaged over; elsewhere the worst is taken.

    The worst is the end of the epoch, with the largest push that any turn inside it could have grown to by then. A place is
    that in the last epoch; −1 if an unfinished last epoch does not come to the record.
    """

    @cached_property
    def wanted(self) -> dict[int, float]:
        if not self.averaged:
            return {self._last_epoch - 1: 0.0}
        places = dict.fromkeys(range(self._last_epoch), 1 / self.every)
        if self._last_epoch < self.every:
            places[-1] = 1 - self._last_epoch / self.every
        return places

    @property
    def _last_epoch(self) -> int:
        return (len(self.process) - 1) % self.every + 1

    @property
    def work(self) -> float:
        if self.parts[0].dense:
            return len(self.process) * len(self.wanted)
        turns = 2 * len(self.process) / self.every
        return len(self.process) + len(self.wanted) * (turns + self.every + _OVERHEAD * len(self.parts))

    def stretches(self, place: int) -> list[Steps | None]:
        *earlier, last = self._worst_turns
        return [part.at(self._ends(part)) for part in earlier] + [self._in_last_epoch(last, place)]

    def _in_last_epoch(self, part: Turns, place: int) -> Steps | None:
        first = len(part.steps) - self._last_epoch
        turns = np.arange(self.every - 1, first, self.every)
        if self.averaged and place >= 0:
            # The push of this very turn, instead of the worst one.
            sensitivity = np.array(part.steps.sensitivity)
            sensitivity[first + place] = self.process.sensitivity[len(self.process) - self._last_epoch + place]
            steps = Steps(sensitivity, part.steps.noise, part.steps.lipschitz, part.steps.diameter)
            moved = Turns(steps, part.every, part.constant)
            moved.__dict__.update(
                {name: part.__dict__[name] for name in ("_windows", "dense") if name in part.__dict__}
            )
            return moved.at(np.append(turns, first + place))
        if place >= 0:
            turns = np.append(turns, len(part.steps) - 1)
        return part.at(turns) if turns.size else None

    def _ends(self, part: Turns) -> np.ndarray:
        return np.arange(self.every - 1, len(part.steps), self.every)

    @cached_property
    def _worst_turns(self) -> list[Turns]:
        """The stretches with the worst push of each epoch at its end, an unfinished last epoch included."""
        return [Turns(_with_worst(part.steps, self.every), part.every, part.constant) for part in self.parts]


def _with_worst(steps: Steps, every: int) -> Steps:
    sensitivity = np.zeros(len(steps))
    whole = len(steps) // every * every
    sensitivity[every - 1 : whole : every] = latest_turns(steps.part(0, whole), every)
    if whole < len(steps):
        sensitivity[-1] = latest_turns(steps.part(whole, len(steps)), len(steps) - whole)[0]
    return Steps(sensitivity, steps.noise, steps.lipschitz, steps.diameter)


def places_of(process: Process, averaged: bool) -> Places:
    """The places of a record in this run."""
    batches = process.batches
    if isinstance(batches, Shuffled) and batches.each_epoch:
        return NewOrders(process, averaged)
    return FixedOrder(process, averaged) if isinstance(batches, Cyclic | Shuffled) else EveryStep(process, averaged)
