"""Batches that take every record once in an epoch: all at once, in order, shuffled; and those of one size, drawn anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lastiterate.errors import InvalidInput, checked_count, must_be, shown, worded
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats, Indices, divisors
from lastiterate.numerics.randomness import Source, permutation, subset
from lastiterate.runs.batches.base import Batches, Sizes, Turns, always, checked_records
from lastiterate.runs.named import names_arguments

# Full batches.


@names_arguments
@dataclass(frozen=True)
class FullBatch(Batches):
    """Every step uses every record."""

    records: int
    kind: ClassVar[str] = "full"
    called: ClassVar[str] = "full batches"

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", checked_records(self.records))

    @property
    def described(self) -> str:
        return f"every step on all {self.records} records"

    @property
    def turns(self) -> Turns:
        return Turns.EVERY_STEP

    @property
    def divisor(self) -> float:
        return float(self.records)

    @property
    def other_sizes(self) -> Sequence[int]:
        return (self.records,)

    def resized(self, size: int) -> FullBatch:
        return self

    def inclusion(self, steps: int) -> Floats:
        return always(1.0, steps)

    def batch(self, step: int, source: Source, order: Indices | None) -> Indices:
        return slice(None)


# Batches of constant size.


@dataclass(frozen=True)
class Sized(Batches):
    """Batches with `batch_size` records at each step."""

    records: int
    batch_size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", checked_records(self.records))
        object.__setattr__(self, "batch_size", checked_count("batch_size", self.batch_size))
        if self.batch_size > self.records:
            raise must_be("batch_size", f"at most records = {self.records}", f"{self.batch_size}")

    def resized(self, size: int) -> Sized:
        return replace(self, batch_size=size)

    @property
    def divisor(self) -> float:
        return float(self.batch_size)

    @property
    def largest(self) -> int:
        return self.batch_size


# Passes over the data, in a fixed order or in random orders.


SMALLER, DROP = "smaller", "drop"


class _Passes(Sized):
    """The data is cut into batches, each used once an epoch. What is left over is a smaller batch, or is dropped."""

    last: str | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last not in (None, SMALLER, DROP):
            raise must_be("last", f'"{SMALLER}" or "{DROP}"', shown(self.last))
        if self.left_over and self.last is None:
            size, records, left = self.batch_size, self.records, self.left_over
            raise InvalidInput("records_left_over", field="batch_size", size=size, records=records, left_over=left)

    @property
    def left_over(self) -> int:
        """Number of records at the end of an epoch that do not fill a batch."""
        return self.records % self.batch_size

    @property
    def other_sizes(self) -> Sequence[int]:
        return divisors(self.records) if self.last is None else super().other_sizes

    @property
    def uneven(self) -> bool:
        return bool(self.left_over) and self.last == SMALLER

    @property
    def last_size(self) -> int:
        return self.left_over if self.uneven else self.batch_size

    @property
    def per_epoch(self) -> int:
        return self.records // self.batch_size + self.uneven

    def also_promised(self, on_sum: bool) -> tuple[Fact, ...]:
        if not self.uneven:
            return ()
        divided_by = self.batch_size if on_sum else self.last_size
        return (fact("smaller_batch_divisor", divided_by=divided_by, own_size=not on_sum),)

    def _described(self, order: str) -> str:
        numbers = {"size": self.batch_size, "records": self.records, "left_over": self.left_over}
        return worded("passes_described", order=order, uneven=self.uneven, **numbers)

    def divisor_of(self, count: int) -> float:
        return float(count)

    def sizes_under(self, on_sum: bool) -> Sizes:
        if not self.uneven:
            return self.sizes
        share = self.last_size / self.batch_size
        last = Sizes(self.divisor, share, share) if on_sum else Sizes(float(self.last_size))
        return Sizes(self.divisor, last=last)

    def _cut(self, step: int) -> slice:
        first = step % self.per_epoch * self.batch_size
        return slice(first, min(first + self.batch_size, self.records))


@names_arguments
@dataclass(frozen=True)
class Cyclic(_Passes):
    """Batches are fixed and used in the same order in every epoch: record i is in batch i // batch_size.

    If batch_size does not divide the number of records, `last="smaller"` makes the last batch of each epoch smaller and
    `last="drop"` skips the records at the end.
    """

    last: str | None = None
    kind: ClassVar[str] = "cyclic"
    called: ClassVar[str] = "cyclic batches"

    @property
    def described(self) -> str:
        return self._described("fixed")

    @property
    def turns(self) -> Turns:
        return Turns.FIXED_ORDER

    def inclusion(self, steps: int) -> Floats:
        """Whether each step uses a record of the batch that the last step uses."""
        present = np.zeros(steps)
        present[(steps - 1) % self.per_epoch :: self.per_epoch] = 1.0
        return present

    def place(self, record: Any) -> Any:
        """Return the batch of each record; that of dropped records is the one after the last."""
        return record // self.batch_size

    @property
    def unused(self) -> int:
        return 0 if self.uneven else self.left_over

    def batch(self, step: int, source: Source, order: Indices | None) -> Indices:
        return self._cut(step)


@names_arguments
@dataclass(frozen=True)
class Shuffled(_Passes):
    """Like `Cyclic`, after a random permutation: a new one each epoch, as in most data loaders, or one for the whole run.

    If batch_size does not divide the number of records, `last="smaller"` makes the last batch of each epoch smaller and
    `last="drop"` leaves out the records at the end, like a DataLoader with drop_last=False or True.
    """

    each_epoch: bool = True
    last: str | None = None
    kind: ClassVar[str] = "shuffled"
    called: ClassVar[str] = "shuffled batches"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.each_epoch, bool):
            raise must_be("each_epoch", "True or False", shown(self.each_epoch))

    @property
    def described(self) -> str:
        return self._described("new" if self.each_epoch else "one")

    @property
    def turns(self) -> Turns:
        return Turns.NEW_ORDERS if self.each_epoch else Turns.ONE_ORDER

    def inclusion(self, steps: int) -> Floats:
        last = (self.last_size / self.records) if self.uneven else None
        return self.pattern(self.batch_size / self.records, last, steps)

    def order(self, step: int, source: Source, before: Any) -> Any:
        new = step % self.per_epoch == 0 and self.each_epoch
        return permutation(source, self.records) if new or before is None else before

    def batch(self, step: int, source: Source, order: Any) -> Indices:
        return np.asarray(order[self._cut(step)])


# Random batches of fixed size.


@names_arguments
@dataclass(frozen=True)
class FixedSize(Sized):
    """Each step draws a uniformly random batch of this size, without replacement, independently of all other steps."""

    kind: ClassVar[str] = "fixed_size"
    called: ClassVar[str] = "random batches of fixed size"

    @property
    def described(self) -> str:
        return worded("fixed_size_described", size=self.batch_size, records=self.records)

    @property
    def turns(self) -> Turns:
        return Turns.FRESH

    @property
    def per_epoch(self) -> int:
        return -(-self.records // self.batch_size)

    def inclusion(self, steps: int) -> Floats:
        return always(self.batch_size / self.records, steps)

    def batch(self, step: int, source: Source, order: Indices | None) -> Indices:
        return subset(source, self.records, self.batch_size)
