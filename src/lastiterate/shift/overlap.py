"""The turns of a record under a linear optimiser, each paid for over several epochs: payments of one step add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.shift.momentum import Hidden, best_path, one_push

# Epochs over which a turn is paid for, tried one after the other until two are no better: a choice of effort.
_EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_LONGEST = 20_000  # steps of one path: a tenth of a second


@lru_cache(maxsize=256)
def paid(hidden: Hidden, length: int, zeros: int, period: int) -> Floats:
    """The payments for one push, over so many steps."""
    asked = one_push(min(length, _LONGEST), min(zeros, length), min(period, _LONGEST))
    found = hidden.payments(best_path(hidden, asked), asked.pushes)
    found.setflags(write=False)
    return found


def square_of(hidden: Hidden, length: int, zeros: int) -> float:
    """Σ payments² for one push over so many steps; 1 where it is paid for at once."""
    return min(up(float(np.square(paid(hidden, length, zeros, length)).sum())), 1.0)


_Key = tuple[Hidden, int] | None


@dataclass(frozen=True)
class TurnsOfRecord:
    """`turns` of a record, `every` steps apart, the last of them `left` steps before the end of `steps`.

    Up to `begins` the state is that of `before`, and then of `after`, which also averages. A push before that is paid for
    until then. All payments are in units of the push.
    """

    before: Hidden
    after: Hidden
    begins: int
    steps: int
    every: int
    left: int

    @property
    def turns(self) -> int:
        return (self.steps - 1 - self.left) // self.every + 1

    def square(self) -> float:
        """The least Σ payments² of those that are tried, all turns together."""
        return self._best[0]

    def payments(self, last: int) -> Floats:
        """For each step, what is paid there for all turns but the last so many; 0 where each is paid for at once."""
        epochs, total = self._best[1], np.zeros(self.steps)
        for index in range(last, self.turns):
            first, key = self._time(index) - 1, self._key(index, epochs) if epochs else None
            if key is None:
                total[first] += 1.0
            else:
                part = paid(*key, key[0].order, self.every)
                total[first : first + len(part)] += part
        return up(total)

    @cached_property
    def _best(self) -> tuple[float, int]:
        """That, and over how many epochs each push is then paid for; 0 for at once."""
        least, chosen, worse = float(self.turns), 0, 0
        for epochs in _EPOCHS:
            if epochs > max(self.turns - 1, 1) or (epochs > 1 and epochs * self.every > _LONGEST):
                break
            found = self._square_over(epochs)
            least, chosen, worse = (found, epochs, 0) if found < least else (least, chosen, worse + 1)
            if worse == 2 + 4 * (self.every == 1):
                break
        return least, chosen

    def _square_over(self, epochs: int) -> float:
        """With each push paid for over so many epochs, or as many as are left."""
        total = min(self._last_square(), 1.0)
        for index, count in self._different(epochs):
            total += count * self._block(tuple(self._key(index + ago, epochs) for ago in range(epochs)))
        return up(total)

    def _last_square(self) -> float:
        room = self.begins - self._time(0) + 1
        if room > 0:
            return square_of(self.before, room, self.before.order)
        return square_of(self.after, self.left + 1, self.after.linear.taps)

    def _time(self, index: int) -> int:
        """The step of a turn, counted from the last."""
        return self.steps - self.left - index * self.every

    def _key(self, index: int, epochs: int) -> _Key:
        """Of a turn but the last: which path it is paid along."""
        if index >= self.turns:
            return None
        room = self.begins - self._time(index) + 1
        if room <= 0:
            return self.after, min(epochs, index) * self.every
        whole = min(epochs, index, room // self.every)
        return self.before, whole * self.every if whole else room

    def _block(self, keys: tuple[_Key, ...]) -> float:
        """Σ payments² of the steps from one turn to the next: what is paid there for it, and for turns before."""
        total = np.zeros(min(self.every, _LONGEST))
        for ago, key in enumerate(keys):
            if key is not None:
                hidden, length = key
                part = paid(hidden, length, hidden.order, self.every)[ago * self.every : (ago + 1) * self.every]
                total[: len(part)] += part
        return float(np.square(total).sum())

    def _different(self, epochs: int) -> Iterator[tuple[int, int]]:
        """Turns but the last, and how many are like them: only near the ends, and where averaging begins, do they differ."""
        begun = -(-(self.steps - self.left - self.begins) // self.every)  # the first turn that is before it
        near = {*range(1, epochs + 3), *range(self.turns - epochs - 1, self.turns)}
        near |= set(range(begun - epochs - 2, begun + epochs + 3))
        inside = sorted(index for index in near if 1 <= index < self.turns)
        for index, following in pairwise([*inside, self.turns]):
            yield index, 1
            if following > index + 1:
                yield index + 1, following - index - 1
