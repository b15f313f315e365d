"""Kinds of batches: how records are dealt to the steps, and all that the library asks of a kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

import numpy as np

from lastiterate.curves.adjacency import FIXED_SIZE, REPLACE_ONE, ZERO_OUT, Adjacency, Sampling
from lastiterate.errors import checked_count, must_be, shown
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source
from lastiterate.runs.per_step import each

RARE = 1e-30  # of a batch: what is as unlikely as that, no δ feels in any number of steps
_MOST_RECORDS = 10**15


class Turns(Enum):
    """The steps at which a record is used. Theorems ask for this, not for the class of the batches."""

    EVERY_STEP = auto()
    FIXED_ORDER = auto()  # once an epoch, always at the same place, which is public
    ONE_ORDER = auto()  # once an epoch, always at the same place, which is random and secret
    NEW_ORDERS = auto()  # once an epoch, at a place that is random, secret, and new in each
    OWN_PLACE = auto()  # once an epoch, at a place that each record draws for itself, secret, and new in each
    FRESH = auto()  # at each step by chance, independently of all others


SHUFFLED = (Turns.ONE_ORDER, Turns.NEW_ORDERS)
SECRET_PLACES = (*SHUFFLED, Turns.OWN_PLACE)
ONCE_AN_EPOCH = (Turns.FIXED_ORDER, *SECRET_PLACES)


@dataclass(frozen=True)
class Sizes:
    """Sizes of batches. The gradient sum of a batch with the record is divided by `divisor`, or by more.

    `smallest_share`, `largest_share`: a batch, over what its own sum is divided by. `levels`: how likely it is that a sum is
    divided by more, whatever the data: (`divisor` over that, probability), from 1 on. `last`: those of the last batch of
    each epoch, where it is smaller.
    """

    divisor: float
    smallest_share: float = 1.0
    largest_share: float = 1.0
    levels: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    last: Sizes | None = None


class Batches(ABC):
    """A kind of batches: all that the rest of the library knows about it, it says here.

    `kind` is its name in files and facts, `called` in sentences.
    """

    kind: ClassVar[str]
    called: ClassVar[str]
    records: int

    @property
    @abstractmethod
    def described(self) -> str:
        """Describe the batches in a few words, with their numbers."""

    @property
    @abstractmethod
    def turns(self) -> Turns:
        """The steps at which a record is used."""

    @abstractmethod
    def inclusion(self, steps: int) -> Floats:
        """Probability of a record's being used at each step; in a fixed order, for a record that the last step uses."""

    @property
    @abstractmethod
    def divisor(self) -> float:
        """Smallest number by which the gradient sum of a batch is divided."""

    @abstractmethod
    def batch(self, step: int, source: Source, order: Indices | None) -> Indices:
        """Return the records of this step, counted from 0."""

    def order(self, step: int, source: Source, before: Any) -> Any:
        """Return the order of all records at this step from the one before, which is all that a trainer remembers."""
        return None

    def allows_order(self, order: Any) -> bool:
        """Whether `order` could have returned this array of whole numbers."""
        return np.array_equal(np.sort(order), np.arange(self.records))

    def place(self, record: Any) -> Any:
        """Place in its epoch of the step that uses each of these records; 0 for all where chance decides."""
        return 0 * record

    def divisor_of(self, count: int) -> float:
        """Number by which the gradient sum of a batch with `count` records is divided."""
        return self.divisor

    def also_promised(self, on_sum: bool) -> tuple[Fact, ...]:
        """Facts that a run assumes of these batches besides their kind; `on_sum`: noise enters before the division."""
        return ()

    @property
    def largest(self) -> int:
        """The largest number of records that a batch can have."""
        return self.records

    @property
    def per_epoch(self) -> int:
        """Steps in one pass over the data."""
        return 1

    @property
    def last_size(self) -> int:
        """Records in the last batch of an epoch."""
        return self.largest

    @property
    def other_sizes(self) -> Sequence[int]:
        """All batch sizes that this kind can have, in order; of random ones, on average."""
        return range(1, self.records + 1)

    @abstractmethod
    def resized(self, size: int) -> Batches:
        """Return batches of the same kind with `size` records each."""

    def size_at(self, step: int) -> int | None:
        """Number of records in the batch of this step, counted from 0; None where chance decides."""
        if not self.constant_size:
            return None
        return self.last_size if (step + 1) % self.per_epoch == 0 else self.largest

    @property
    def uneven(self) -> bool:
        """Whether the last batch of each epoch is smaller than the others."""
        return False

    @property
    def unused(self) -> int:
        """Number of records, the last of the data, that no step uses."""
        return 0

    def pattern(self, usual: float, last: float | None, steps: int) -> Floats:
        """Return one entry per step: `usual`, and `last` at the last step of each epoch if that differs."""
        if last is None or last == usual or steps < self.per_epoch:
            return always(usual, steps)
        values = np.full(steps, usual)
        values[self.per_epoch - 1 :: self.per_epoch] = last
        return values

    constant_size: ClassVar[bool] = True
    """Whether no batch has a random number of records."""

    own_mean: ClassVar[bool] = False
    """Whether sums are divided by the size of the batch as it was drawn, so that noise on a sum would shrink with it."""

    adjacencies: ClassVar[tuple[Adjacency, ...]] = (REPLACE_ONE, ZERO_OUT)
    """Which neighbours there can be, if the batches of all other records are to stay as they are."""

    other_neighbours: ClassVar[str] = "records_would_move"
    """The code of the error that says why there are no others, and what to do."""

    sampling: ClassVar[Sampling] = FIXED_SIZE
    """Of turns that are FRESH: what a batch with the record is compared with, without it or with another in its place."""

    @property
    def sizes(self) -> Sizes:
        """Sizes that every possible batch has."""
        return Sizes(self.divisor)

    def sizes_under(self, on_sum: bool) -> Sizes:
        """Sizes of all batches, with noise on the sum (`on_sum`), which one number divides, or after the division."""
        return self.sizes

    def usual_sizes(self, log_probability: float) -> Sizes:
        """Sizes of all batches but those drawn with at most this probability."""
        return self.sizes

    def sampled_change(
        self, change: Floats | float, bound: Floats | float, sizes: Sizes, adjacency: Adjacency
    ) -> Floats | float:
        """Largest distance between gradient sums of a batch with the record, with its neighbour and without either.

        `change` is how far apart the gradients of two records can be, `bound` how long one can be.
        """
        return change if adjacency.replaces else each(np.maximum, change, bound)

    @property
    def random(self) -> bool:
        """Whether the law of sampling compares batches with and without the record."""
        return self.turns is Turns.FRESH

    @property
    def shuffled(self) -> bool:
        """Whether each record has a secret place in an epoch."""
        return self.turns in SECRET_PLACES

    @property
    def reshuffled(self) -> bool:
        """Whether each epoch has an order of its own, or places of its own."""
        return self.turns in (Turns.NEW_ORDERS, Turns.OWN_PLACE)

    @property
    def passes(self) -> bool:
        """Whether each record is used once an epoch."""
        return self.turns in ONCE_AN_EPOCH


def checked_records(records: int) -> int:
    """Return `records` as an int whose places in the data can be counted in 64 bits."""
    count = checked_count("records", records)
    if count > _MOST_RECORDS:
        raise must_be("records", f"at most {_MOST_RECORDS:g}", shown(records))
    return count


def always(probability: float, steps: int) -> Floats:
    """Return the same probability at every step, stored once."""
    return np.broadcast_to(probability, steps)
