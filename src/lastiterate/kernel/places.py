"""Where in the run a record takes its turns, and the steps that its shift meets from there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .merged_steps import RecordSteps, latest_turns
from .steps import Counts, Floats, Steps, greatest

MOST_PLACES = 512
_NEAR_THE_END = 128


@dataclass(frozen=True, eq=False)
class Places:
    """The record is in one batch of `every`, at the same place in every epoch, which may have been drawn (`averaged`).

    `sizes`: of each batch and of the last of an epoch; only their ratio matters. `each`: no place stands for another.
    `exchange`: how many times as far as a record beside its neighbour does a record push beside any other record. So it does
    at the first of two places.
    """

    steps: Steps
    every: int
    releases: tuple[int, ...]
    averaged: bool
    sizes: tuple[int, int] = (1, 1)
    each: bool = False
    exchange: float = 1.0

    @cached_property
    def wanted(self) -> dict[int, float]:
        """The places to look at, each with its probability; 0 where the worst of them counts."""
        steps = len(self.steps)
        if not self.averaged:
            # With all steps alike, an earlier place is a later one followed by steps that do not see the record.
            return {(steps - 1) % self.every: 0.0} if self.alike else dict.fromkeys(range(min(self.every, steps)), 0.0)
        if (self.alike or self.later_is_no_better) and self.every > MOST_PLACES:
            parts = [*groups(0, self.more_turns), *groups(self.more_turns, self.every)]
            return {end - 1: self.probability(begin, end) for begin, end in parts}
        return {place: self.probability(place, place + 1) for place in range(self.every)}

    def probability(self, first: int, last: int) -> float:
        """The probability that a record is at one of the places `first` to `last` of an epoch, the latter left out."""
        usual, smaller = self.sizes
        missing = usual - smaller if first < last == self.every else 0
        return (usual * (last - first) - missing) / (usual * self.every - usual + smaller)

    def stretches(self, *places: int) -> list[Steps | None]:
        """Return what a record at this place meets between one release and the next; None where it takes no part.

        At two places: what the runs meet of a record that is at the first, and of its neighbour that is at the second.
        """
        if len(places) > 1 and self.exchange != 1:
            return self._at_turns(*places)
        given = zip(self.whole_stretches, self.ends, strict=True)
        return [stretch.regular(*((place - ends[0]) % self.every for place in places)) for stretch, ends in given]

    def _at_turns(self, *places: int) -> list[Steps | None]:
        given = zip(self.whole_stretches, self.turns(*places), strict=True)
        return [stretch.at(*turns) if turns[0].size else None for stretch, turns in given]

    def dense(self, *places: int) -> list[Steps]:
        """Return all steps of each stretch, those before the first turn included."""
        given = zip(self.whole_stretches, self.turns(*places), strict=True)
        return [stretch.dense_at(*turns) for stretch, turns in given]

    def turns(self, *places: int) -> list[tuple[Counts, Floats]]:
        """Return for each stretch the steps that see a record at one of these places, and how far it pushes there."""
        found: list[tuple[Counts, Floats]] = []
        for stretch, (first, last) in zip(self.whole_stretches, self.ends, strict=True):
            each = [np.arange((place - first) % self.every, last - first, self.every) for place in places]
            turns = np.sort(np.concatenate(each))
            at_first = (turns + first) % self.every == places[0]
            found.append((turns, stretch.steps.sensitivity[turns] * self._times(at_first, places)))
        return found

    def _times(self, at_first: NDArray[np.bool_], places: tuple[int, ...]) -> Floats:
        return np.where(at_first, self.exchange if len(places) > 1 else 1.0, 1.0)

    @property
    def alike(self) -> bool:
        return self.steps.alike and not self.releases

    @cached_property
    def later_is_no_better(self) -> bool:
        """Whether a turn, or one of two, that is moved to a later place with as many turns is at least as easy to see."""
        return not self.each and not self.releases and self._rising(0)

    def _rising(self, first: int) -> bool:
        """From this step on, within epochs, nothing grows and no push is smaller than that of the step before."""
        if self.steps.alike:
            return greatest(self.steps.lipschitz) <= 1
        pushes, begins = self.steps.sensitivity[first:], np.arange(first + 1, len(self.steps)) % self.every == 0
        return bool((begins | ((pushes[:-1] <= pushes[1:]) & (self.steps.lipschitz[first + 1 :] <= 1))).all())

    @property
    def count(self) -> int:
        """The number of places where a record may take a turn."""
        return self.every

    @property
    def more_turns(self) -> int:
        """The number of places, the first of them, that have one turn more than the others."""
        return len(self.steps) % self.every

    @cached_property
    def ends(self) -> list[tuple[int, int]]:
        """(first, last) step of each stretch from one released iterate to the next, the last left out."""
        return list(pairwise((0, *self.releases, len(self.steps))))

    @cached_property
    def whole_stretches(self) -> list[RecordSteps]:
        return [RecordSteps(self.steps.part(*ends), self.every) for ends in self.ends]


class NewOrders(Places):
    """Each epoch has its own order. Where the record is in the last epoch is averaged over; elsewhere the worst is taken.

    The worst is the end of the epoch, with the largest push that any turn inside it could have grown to by then; an epoch
    that a release cuts in two is counted as two. A place is that in the last piece; −1 if the record has no turn there.
    """

    @cached_property
    def wanted(self) -> dict[int, float]:
        if not self.averaged:
            return {self.last_piece - 1: 0.0}
        many = self.later_is_no_better and self.last_piece > MOST_PLACES
        pieces = groups(0, self.last_piece) if many else [(place, place + 1) for place in range(self.last_piece)]
        before = (len(self.steps) - self.last_piece) % self.every  # of the same epoch
        places = {end - 1: self.probability(before + begin, before + end) for begin, end in pieces}
        if self.last_piece < self.every:
            places[-1] = 1 - self.probability(before, before + self.last_piece)
        return places

    @property
    def last_piece(self) -> int:
        """The number of steps since the last epoch began, or since the last release if that is later."""
        return len(self.steps) - max((len(self.steps) - 1) // self.every * self.every, *self.releases, 0)

    @cached_property
    def later_is_no_better(self) -> bool:
        """Whether a turn that is moved to a later place of the last piece is at least as easy to see (docs/proofs.md)."""
        return not self.each and self._rising(len(self.steps) - self.last_piece)

    @property
    def count(self) -> int:
        """The number of places in the last piece."""
        return self.last_piece

    @property
    def more_turns(self) -> int:
        """0: each place of the last piece has its one turn there."""
        return 0

    def stretches(self, *places: int) -> list[Steps | None]:
        return self._at_turns(*places)

    def turns(self, *places: int) -> list[tuple[Counts, Floats]]:
        """Earlier pieces at their worst; the last at this place, or at both, or at its worst, or without the record."""
        *earlier, (turns, pushes) = zip(self._last_steps, self.worst_pushes, strict=True)
        if self.averaged:
            stretch = self.whole_stretches[-1].steps
            present = np.array(sorted(place for place in places if place >= 0), np.intp)
            last = len(stretch) - self.last_piece + present
            own = stretch.sensitivity[last] * self._times(present == places[0], places)
            turns, pushes = np.append(turns[:-1], last), np.append(pushes[:-1], own)
        elif min(places) < 0:
            turns, pushes = turns[:-1], pushes[:-1]
        return [*earlier, (turns, pushes)]

    @cached_property
    def _last_steps(self) -> list[Counts]:
        """The last step of each piece of each stretch: of an epoch, or of what a release leaves of one."""
        whole = [np.arange((first // self.every + 1) * self.every, last, self.every) for first, last in self.ends]
        return [np.append(inside, last) - first - 1 for inside, (first, last) in zip(whole, self.ends, strict=True)]

    @cached_property
    def worst_pushes(self) -> list[Floats]:
        """The largest push that a turn inside each piece can have grown to by its end."""
        given = zip(self.whole_stretches, self._last_steps, strict=True)
        return [latest_turns(stretch.steps, turns) for stretch, turns in given]


def groups(first: int, last: int) -> list[tuple[int, int]]:
    """Divide places, of which a later one is no better, into parts, of which each counts as its last place."""
    count = last - first
    if not count:
        return []
    far = np.geomspace(_NEAR_THE_END, max(count, _NEAR_THE_END), MOST_PLACES - _NEAR_THE_END).astype(np.intp)
    edges = np.unique(np.minimum(np.concatenate([np.arange(_NEAR_THE_END), far, [count]]), count)).tolist()
    return [(last - farther, last - nearer) for nearer, farther in pairwise(edges)]
