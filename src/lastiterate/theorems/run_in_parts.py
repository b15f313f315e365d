"""Steps that change along a run on a bounded set: the last parts of the run by themselves, the rest by its worst step.

What a block of steps makes of a privacy profile does not ask what the steps before it were. So parts of a run follow each
other, each with steps that are alike or count as the worst of its own; after a few blocks nothing is left of the parts
before. Proof: docs/proofs.md, "Steps that change".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.ladder import Ladder
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.mixing.grids import even
from lastiterate.mixing.layers import Layers
from lastiterate.mixing.settled import BlockEnds
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process

_MOST_PARTS = 3  # by themselves: more take longer, and what is before them is forgotten
_SHORTEST = 4  # steps of the last part where every step differs; the one before has twice as many, and so on
_MOST_BLOCKS = 8  # of a part, one by one
_MOST_ROUNDS, _SHORT = 24, (1, 2, 3, 4)  # and of the shortest blocks, the best of them in each round
_SETTLED = 1 - 1e-3  # of a profile: if a round leaves so much of it, more gain nothing
_SHORTER = 4  # times, than the longest block: the other length that is tried
_COARSE, _FILLED, _FINE = 32, 16, 100  # cells of grids of ε: a coarse one says where the fine one has to end
_SMALLEST, _FARTHEST = 1e-15, 80.0  # δ at its end, and ε at most


Blocks = dict[int, Callable[[], BlockEnds]]  # for each number of steps, d and M


@dataclass(frozen=True, eq=False)
class Part:
    """So many steps that are alike, or count as the worst of them."""

    steps: int
    blocks: Blocks
    _known: dict[int, BlockEnds] = field(default_factory=dict, init=False, repr=False)

    def after(self, grid: Floats, known: Floats, always: Floats) -> Floats:
        """A profile after the part, from one before it and one that holds at any time: the best of a few ways."""
        longest = max(self.blocks)
        layers: dict[int, Layers] = {}
        found = [self._one_by_one(length, grid, known, layers) for length in {longest, self._shorter(longest)}]
        return np.asarray(np.min([always, *found, self._any_of(grid, always, layers)], axis=0))

    def _shorter(self, longest: int) -> int:
        return longest // _SHORTER if longest // _SHORTER in self.blocks else longest

    def _one_by_one(self, length: int, grid: Floats, known: Floats, layers: dict[int, Layers]) -> Floats:
        """Blocks of this length, and a shorter one before them; too many are left to the other way."""
        count, rest = divmod(self.steps, length)
        if count > _MOST_BLOCKS:
            return np.ones_like(known)
        profile = known
        for one in ([rest] if rest else []) + [length] * count:
            profile = np.minimum(self._layers(one, grid, layers).after(profile), 1.0)
        return profile

    def _any_of(self, grid: Floats, always: Floats, layers: dict[int, Layers]) -> Floats:
        """Round after round the best of several lengths: a profile of round i holds from i times the longest on."""
        lengths = [one for one in _SHORT if one in self.blocks] or [max(self.blocks)]
        profile = always
        for _ in range(min(self.steps // lengths[-1], _MOST_ROUNDS)):
            before = profile
            profile = np.min([before, *(self._layers(one, grid, layers).after(before) for one in lengths)], axis=0)
            if (profile >= _SETTLED * before).all():
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
    """The better of what is `found` of the run as a whole and of its parts.

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
    """A fine grid that ends where the profile is negligible, found on a coarse one."""
    while True:
        coarse = even(reach, _COARSE)
        small = np.flatnonzero(on(coarse) <= _SMALLEST)
        if not small.size or small[0] > _FILLED or reach < 1e-6:
            return even(reach, _FINE)
        reach = float(coarse[max(small[0], 1)]) * 1.02


def part_ends(process: Process) -> list[int]:
    """Where the last parts begin, and the end: where steps change, if they do so a few times; else longer and longer."""
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
