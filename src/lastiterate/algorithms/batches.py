"""Which records each step looks at."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lastiterate.errors import Interval, InvalidInput, checked_count, checked_number, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.tails import binomial_range

RARE = 1e-30  # a batch is of unusual size with no greater probability
_MOST_RECORDS = 10**15
_RATE = Interval(1e-12, 1.0, low_included=True, high_included=True)


@dataclass(frozen=True)
class Sizes:
    """How large batches are. The gradient sum of a batch with the record is divided by `divisor`, or by more.

    `smallest_share`, `largest_share`: a batch, over what its own sum is divided by.
    """

    divisor: float
    smallest_share: float = 1.0
    largest_share: float = 1.0


def _checked_records(records: int) -> int:
    """So that places in the data can be counted in 64 bits."""
    count = checked_count("records", records)
    if count > _MOST_RECORDS:
        raise InvalidInput(f"records must be at most {_MOST_RECORDS:g}. Got {shown(records)}.", field="records")
    return count


class Batches(ABC):
    """How records are dealt to the steps. `divisor` is what the sum of the batch's gradients is divided by, at least."""

    records: int
    promise: ClassVar[str]

    @property
    @abstractmethod
    def divisor(self) -> float: ...

    @property
    def largest(self) -> int:
        """The largest number of records that a batch can have."""
        return self.records

    @property
    def random(self) -> bool:
        """Whether the law of sampling compares batches with and without the record."""
        return False

    @property
    def sizes(self) -> Sizes:
        """Of every batch there can be."""
        return Sizes(self.divisor)

    @property
    def usual_sizes(self) -> Sizes:
        """Of all batches but those that are drawn with probability at most RARE."""
        return self.sizes

    @property
    def per_epoch(self) -> int:
        """Steps in one pass over the data."""
        return 1

    @property
    def reshuffled(self) -> bool:
        """Whether each epoch has an order of its own."""
        return False

    @abstractmethod
    def inclusion(self, steps: int) -> Floats:
        """For each step, how likely it is to see the record."""


@dataclass(frozen=True)
class FullBatch(Batches):
    """Every step sees every record."""

    records: int
    promise: ClassVar[str] = "Every step uses every record."

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _checked_records(self.records))

    @property
    def divisor(self) -> float:
        return float(self.records)

    def inclusion(self, steps: int) -> Floats:
        return np.broadcast_to(1.0, steps)


@dataclass(frozen=True)
class _Partition(Batches):
    records: int
    batch_size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _checked_records(self.records))
        object.__setattr__(self, "batch_size", checked_count("batch_size", self.batch_size))
        if self.batch_size > self.records:
            raise InvalidInput(
                f"batch_size must be at most records = {self.records}. Got {self.batch_size}.", field="batch_size"
            )

    @property
    def divisor(self) -> float:
        return float(self.batch_size)

    @property
    def largest(self) -> int:
        return self.batch_size


class _Passes(_Partition):
    """Whole passes: the data is cut into equal batches, each used once an epoch."""

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


@dataclass(frozen=True)
class Cyclic(_Passes):
    """Batches are fixed and used in the same order in every epoch: record i is in batch i // batch_size."""

    promise: ClassVar[str] = "Batches and their order are fixed before training, without looking at the data."

    def inclusion(self, steps: int) -> Floats:
        """Of the record in the batch that the last step uses."""
        present = np.zeros(steps)
        present[(steps - 1) % self.per_epoch :: self.per_epoch] = 1.0
        return present


@dataclass(frozen=True)
class Shuffled(_Passes):
    """As `Cyclic`, after a random permutation: a new one each epoch (what most loaders do), or one for the whole run."""

    each_epoch: bool = True
    promise: ClassVar[str] = "Permutations are uniformly random, independent of the data, and never released."

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.each_epoch, bool):
            raise InvalidInput(f"each_epoch must be True or False. Got {shown(self.each_epoch)}.", field="each_epoch")

    @property
    def reshuffled(self) -> bool:
        return self.each_epoch

    def inclusion(self, steps: int) -> Floats:
        return np.broadcast_to(1.0 / self.per_epoch, steps)


@dataclass(frozen=True)
class FixedSize(_Partition):
    """At each step a uniformly random batch of this size, without replacement, independent of all other steps."""

    promise: ClassVar[str] = "Each step draws its batch afresh, uniformly, and the batches are never released."

    @property
    def random(self) -> bool:
        return True

    @property
    def per_epoch(self) -> int:
        return -(-self.records // self.batch_size)

    def inclusion(self, steps: int) -> Floats:
        return np.broadcast_to(self.batch_size / self.records, steps)


@dataclass(frozen=True)
class _Independent(Batches):
    """At each step every record joins independently with probability `rate`."""

    records: int
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _checked_records(self.records))
        object.__setattr__(self, "rate", checked_number("rate", self.rate, _RATE))

    @property
    def random(self) -> bool:
        return True

    @property
    def others(self) -> tuple[int, int]:
        """The least and the greatest number of other records in a batch, but for a probability of RARE."""
        return binomial_range(self.records - 1, self.rate, math.log(RARE))

    @property
    def per_epoch(self) -> int:
        return max(1, round(1 / self.rate))

    def inclusion(self, steps: int) -> Floats:
        return np.broadcast_to(self.rate, steps)


@dataclass(frozen=True)
class Poisson(_Independent):
    """At each step every record joins independently with probability `rate`; sums are divided by rate·records."""

    promise: ClassVar[str] = (
        "Each step draws its batch afresh, every record independently; the gradient sum is divided by rate·records, "
        "whatever the size of the batch; batches are never released."
    )

    @property
    def divisor(self) -> float:
        return self.rate * self.records

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.divisor, float(self.rate == 1), 1.0 / self.rate)

    @property
    def usual_sizes(self) -> Sizes:
        fewest, most = self.others
        return Sizes(self.divisor, fewest / self.divisor, (most + 1) / self.divisor)


@dataclass(frozen=True)
class PoissonMean(_Independent):
    """As `Poisson`, but sums are divided by the number of records in the batch; an empty batch moves nothing."""

    promise: ClassVar[str] = (
        "Each step draws its batch afresh, every record independently; the gradient sum is divided by the size of the "
        "batch, an empty batch moves nothing but its noise; batches and their sizes are never released."
    )

    @property
    def divisor(self) -> float:
        return 1.0

    @property
    def sizes(self) -> Sizes:
        return Sizes(1.0, float(self.rate == 1))

    @property
    def usual_sizes(self) -> Sizes:
        fewest, _ = self.others
        return Sizes(float(fewest + 1), float(fewest > 0))
