"""Steps on a bounded set: their tables in units of the noise, tables of secret orders, and runs whose steps change.

`Bounded` has the tables of steps that are alike, `PlaceTables` those of an epoch in a secret order, for a record at each
place and at each two. `in_parts` takes the last parts of a run by themselves, and the rest by its worst step: what a block
of steps makes of a privacy profile does not ask what the steps before it were, so parts follow each other, each with steps
that are alike or count as the worst of its own, and after a few blocks nothing is left of the parts before. Proof:
docs/proofs.md, "Steps that change".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.minimum import Ladder
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.mixing.distances import HiddenTables, Scale, Step
from lastiterate.mixing.layers import BlockEnds, Layers
from lastiterate.mixing.recursion import even
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import threshold_above
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems.block_mixing import ends_of
from lastiterate.theorems.places import exchange_of, place_sizes

_WIDTH, _FEWEST_ROWS, _MOST_ROWS = 0.1, 8, 64  # of rows: distances are rounded up to the next
_LEVELS, _BEND = 160, 2.0  # of loss, closer together near 0: chords lie above
# Where levels end: far above what is lost in the end, and not where a single step would end.
_ABOVE, _PER_WIDTH = 4.0, 2.6
_CUTS, _FEW_CUTS, _MANY_ROWS = 20, 10, 40  # levels that noise is reflected at: more are tighter, and slower
_LOG_NEGLIGIBLE = math.log(1e-10)
# Tables that differ less between distances, where they are worth a note, stay as they are.
_SETTLED, _NOTED = 1e-3, 1e-15

_ALONE, _HARD = 4, 3  # of the last places: those that count for themselves, and those that are compared with others

_MOST_PARTS = 3  # by themselves: more take longer, and what is before them is forgotten
_SHORTEST = 4  # steps of the last part where every step differs; the one before has twice as many, and so on
_MOST_BLOCKS = 8  # of a part, one by one
_MOST_ROUNDS, _SHORT = 24, (1, 2, 3, 4)  # and of the shortest blocks, the best of them in each round
_SETTLED_PARTS = 1 - 1e-3  # of a profile: if a round leaves so much of it, more gain nothing
_SHORTER = 4  # times, than the longest block: the other length that is tried
_COARSE, _FILLED, _FINE = 32, 16, 100  # cells of grids of ε: a coarse one says where the fine one has to end
_SMALLEST, _FARTHEST = 1e-15, 80.0  # δ at its end, and ε at most

Blocks = dict[int, Callable[[], BlockEnds]]  # for each number of steps, d and M


@dataclass(frozen=True, eq=False)
class Bounded:
    """Steps that are alike on a bounded set, in units of their noise."""

    process: Process

    @cached_property
    def width(self) -> float:
        return up(self.process.diameter / float(self.process.noise[0]))

    @cached_property
    def push(self) -> float:
        return up(float(self.process.sensitivity[0]) / float(self.process.noise[0]))

    @cached_property
    def scale(self) -> Scale:
        count = self._rows
        all_at_once, alone = (
            float(threshold_above(_LOG_NEGLIGIBLE, one)) for one in (self.width + self.push, self.push)
        )
        highest = min(all_at_once, alone + _ABOVE + _PER_WIDTH * self.width)
        levels = highest * (np.arange(_LEVELS + 1) / _LEVELS) ** _BEND
        cuts = _CUTS if count <= _MANY_ROWS else _FEW_CUTS
        return Scale(
            np.linspace(0.0, self.width, count + 1), levels, 0.4 * highest * (np.arange(cuts) / (cuts - 1)) ** 2
        )

    @property
    def _rows(self) -> int:
        """Number of rows, such that a push is a whole number of them, or nearly."""
        least = min(max(round(self.width / _WIDTH), _FEWEST_ROWS), _MOST_ROWS)
        return min(range(least, least * 4 // 3 + 1), key=lambda n: math.ceil(n * self.push / self.width) / n)

    @cached_property
    def turn(self) -> Step:
        """A step that sees the record."""
        return self._step(self.push)

    @cached_property
    def exchanged(self) -> Step:
        """A step that sees the record on one data set, and another record in its stead on the other."""
        push = exchange_of(self.process) * self.push
        return self.turn if push == self.push else self._step(push)

    @cached_property
    def free(self) -> Step:
        return self._step(0.0)

    def _step(self, push: float) -> Step:
        return Step(self.scale, self._moved(push), push)

    def _moved(self, push: float) -> Floats:
        lipschitz, retain, drift = (float(getattr(self.process, name)[0]) for name in ("lipschitz", "retain", "drift"))
        rows, noise = self.scale.rows, float(self.process.noise[0])
        with np.errstate(invalid="ignore"):
            by_curvature = np.where(rows > 0, lipschitz * rows, 0.0) + push
        return np.minimum(by_curvature, retain * rows + drift / noise)

    def ends(self, table: Floats) -> BlockEnds:
        return BlockEnds(partial(self.scale.along, table[0]), self.scale.levels, table[-1])

    def block(self, length: int, table: Floats | None = None) -> BlockEnds:
        """Return d and M of so many steps, or epochs of passes, also by the shift engine and composition.

        M is taken by chords between levels.
        """
        known, levels = ends_of(self.process, length), self.scale.levels
        if table is None:
            return BlockEnds(known.common_delta, levels, known.apart_delta(levels))
        row = table[0]
        return BlockEnds(
            lambda epsilons: np.minimum(self.scale.along(row, epsilons), known.common_delta(epsilons)),
            levels,
            np.minimum(table[-1], known.apart_delta(levels)),
        )

    def carried(self, table: Floats, steps: int) -> Floats:
        """Return the table with so many steps without the record before what it is about."""
        for _ in range(steps):
            if self.settled(table):
                return self.long_before(table)
            table = self.free.before(table)
        return table

    def long_before(self, table: Floats) -> Floats:
        """Any number of steps without the record before what a settled table is about: an upper bound for all of them.

        Steps that bring nothing apart leave at most what there was. Others take two states to at most the diameter, for
        which the last row stands; two that agree stay together, and the first row is theirs.
        """
        if self.process.contraction <= 1:
            return table
        return np.concatenate([table[:1], np.broadcast_to(table[-1], table[1:].shape)])

    @staticmethod
    def settled(table: Floats) -> bool:
        """No distance costs more than none: earlier steps have nothing left to hide."""
        noted = np.maximum(table[0], _NOTED)
        return bool((np.maximum(table[-1], _NOTED) <= noted * (1 + _SETTLED)).all())


def _turned(turn: Step, after: Floats | None) -> Floats:
    """Return the table from a turn of the record on; nothing comes `after` it, or what that table is about."""
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
        """Return the table with 0, 1, 2, … steps without the record before it; the last for any number from there on."""
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
        """Return the table of the worst place of a group from the epoch's beginning on; `after[i]` has offset + i steps."""
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
        """Return the tables of a hidden place from tables at these levels, the places that are easy to see last."""
        scale = Scale(self.domain.scale.rows, levels, self.domain.scale.cuts)
        count = len(own)
        table = np.ones((len(pairs), count, len(levels)))
        for row, found in enumerate(pairs):
            for index, one in found.items():
                table[len(pairs) - 1 - row, count - 1 - index] = one
        return HiddenTables(scale, self.weights[::-1], np.array(own[::-1]), table)


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a run: its number of steps, which are alike or count as the worst of them, and the blocks it is made of."""

    steps: int
    blocks: Blocks
    _known: dict[int, BlockEnds] = field(default_factory=dict, init=False, repr=False)

    def after(self, grid: Floats, known: Floats, always: Floats) -> Floats:
        """Return a profile after the part, from one before it and one that holds at any time: the best of a few ways."""
        longest = max(self.blocks)
        layers: dict[int, Layers] = {}
        found = [self._one_by_one(length, grid, known, layers) for length in {longest, self._shorter(longest)}]
        return np.asarray(np.min([always, *found, self._any_of(grid, always, layers)], axis=0))

    def _shorter(self, longest: int) -> int:
        return longest // _SHORTER if longest // _SHORTER in self.blocks else longest

    def _one_by_one(self, length: int, grid: Floats, known: Floats, layers: dict[int, Layers]) -> Floats:
        """Return the profile after blocks of this length, with a shorter one before them; 1 where they would be too many."""
        count, rest = divmod(self.steps, length)
        if count > _MOST_BLOCKS:
            return np.ones_like(known)
        profile = known
        for one in ([rest] if rest else []) + [length] * count:
            profile = np.minimum(self._layers(one, grid, layers).after(profile), 1.0)
        return profile

    def _any_of(self, grid: Floats, always: Floats, layers: dict[int, Layers]) -> Floats:
        """Return the best of several lengths, round after round: a profile of round i holds from i times the longest on."""
        lengths = [one for one in _SHORT if one in self.blocks] or [max(self.blocks)]
        profile = always
        for _ in range(min(self.steps // lengths[-1], _MOST_ROUNDS)):
            before = profile
            profile = np.min([before, *(self._layers(one, grid, layers).after(before) for one in lengths)], axis=0)
            if (profile >= _SETTLED_PARTS * before).all():
                break
        return profile

    def _layers(self, length: int, grid: Floats, layers: dict[int, Layers]) -> Layers:
        if length not in layers:
            layers[length] = self._ends(length).on(grid)
        return layers[length]

    def _ends(self, length: int) -> BlockEnds:
        if length not in self._known:
            self._known[length] = self.blocks[length]()
        return self._known[length]


def in_parts(
    process: Process, found: Notion, alike: Callable[[Process], Notion], blocks: Callable[[Process], Blocks]
) -> Notion:
    """Return the better of what is `found` of the run as a whole and of its parts.

    `alike`: a profile of steps that count as the worst of them; `blocks`: for such steps d and M by their number.
    """
    ends = part_ends(process)
    if len(ends) < 2:
        return found
    before = alike(process.part(0, ends[0])) if ends[0] else None
    parts = [Part(last - first, blocks(process.part(first, last))) for first, last in pairwise(ends)]

    def on(grid: Floats) -> Floats:
        always = np.asarray(found.delta(grid))
        known = np.zeros_like(grid) if before is None else np.asarray(before.delta(grid))
        for part in parts:
            known = part.after(grid, known, always)
        return known

    grid = _narrowed(on, _reach(found))
    better = Profile(epsilons=grid, deltas=np.minimum(on(grid), 1.0))
    return Ladder((0, 1), (found, better).__getitem__)


def _reach(found: Notion) -> float:
    farthest = float(found.epsilon(_SMALLEST))
    return farthest if farthest <= _FARTHEST else _FARTHEST


def _narrowed(on: Callable[[Floats], Floats], reach: float) -> Floats:
    """Return a fine grid that ends where the profile is negligible, which is found on a coarse one."""
    while True:
        coarse = even(reach, _COARSE)
        small = np.flatnonzero(on(coarse) <= _SMALLEST)
        if not small.size or small[0] > _FILLED or reach < 1e-6:
            return even(reach, _FINE)
        reach = float(coarse[max(small[0], 1)]) * 1.02


def part_ends(process: Process) -> list[int]:
    """Return where the last parts begin, and the end: where steps change, if a few times; else longer and longer."""
    every, steps = process.batches.per_epoch if process.batches.passes else 1, len(process)
    changes = _changes(process)
    changes = changes[changes % every == 0]
    if len(_changes(process)) == len(changes) and len(changes) < 4 * _MOST_PARTS:
        return [0, *changes.tolist(), steps][-_MOST_PARTS - 1 :]
    sizes = every * _SHORTEST * 2 ** np.arange(_MOST_PARTS) if every == 1 else every * 2 ** np.arange(_MOST_PARTS)
    starts = steps - np.cumsum(sizes)
    return [*sorted({max(one, 0) for one in starts.tolist()}), steps]


def _changes(process: Process) -> NDArray[np.intp]:
    arrays = (process.sensitivity, process.noise, process.lipschitz, process.drift, process.retain, process.sampled)
    differ = np.zeros(len(process) - 1, bool)
    for values in arrays:
        differ |= values[1:] != values[:-1]
    return np.flatnonzero(differ) + 1
