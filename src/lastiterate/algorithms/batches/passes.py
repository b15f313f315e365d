"""Whole passes over the data, in a fixed order or in random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lastiterate.algorithms.batches.base import Turns, always
from lastiterate.algorithms.batches.sized import Sized
from lastiterate.errors import InvalidInput, shown
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source, permutation


class _Passes(Sized):
    """The data is cut into equal batches, each used once an epoch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        left_over = self.records % self.batch_size
        if left_over:
            raise InvalidInput(
                f"batch_size must divide records, so that no batch is smaller than the others. Got {self.batch_size} "
                f"and {self.records}. Leave {left_over} records out before training, and say "
                f"records={self.records - left_over}.",
                field="batch_size",
            )

    @property
    def per_epoch(self) -> int:
        return self.records // self.batch_size

    def _cut(self, step: int) -> slice:
        first = step % self.per_epoch * self.batch_size
        return slice(first, first + self.batch_size)


@dataclass(frozen=True)
class Cyclic(_Passes):
    """Batches are fixed and used in the same order in every epoch: record i is in batch i // batch_size."""

    kind: ClassVar[str] = "cyclic"
    called: ClassVar[str] = "cyclic batches"
    promise: ClassVar[str] = "Batches and their order are fixed before training, without looking at the data."

    @property
    def described(self) -> str:
        return f"batches of {self.batch_size} of {self.records} records in a fixed order"

    @property
    def turns(self) -> Turns:
        return Turns.FIXED_ORDER

    def inclusion(self, steps: int) -> Floats:
        """Of the record in the batch that the last step uses."""
        present = np.zeros(steps)
        present[(steps - 1) % self.per_epoch :: self.per_epoch] = 1.0
        return present

    def place(self, record: Any) -> Any:
        return record // self.batch_size

    def batch(self, step: int, source: Source, order: Indices | None) -> Indices:
        return self._cut(step)


@dataclass(frozen=True)
class Shuffled(_Passes):
    """As `Cyclic`, after a random permutation: a new one each epoch (what most loaders do), or one for the whole run."""

    each_epoch: bool = True
    kind: ClassVar[str] = "shuffled"
    called: ClassVar[str] = "shuffled batches"
    promise: ClassVar[str] = "Permutations are uniformly random, independent of the data, and never released."

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.each_epoch, bool):
            raise InvalidInput(f"each_epoch must be True or False. Got {shown(self.each_epoch)}.", field="each_epoch")

    @property
    def described(self) -> str:
        how = "a new random order each epoch" if self.each_epoch else "one random order"
        return f"batches of {self.batch_size} of {self.records} records in {how}"

    @property
    def turns(self) -> Turns:
        return Turns.NEW_ORDERS if self.each_epoch else Turns.ONE_ORDER

    def inclusion(self, steps: int) -> Floats:
        return always(1.0 / self.per_epoch, steps)

    def order(self, step: int, source: Source, before: Any) -> Any:
        new = step % self.per_epoch == 0 and self.each_epoch
        return permutation(source, self.records) if new or before is None else before

    def batch(self, step: int, source: Source, order: Any) -> Indices:
        return np.asarray(order[self._cut(step)])
