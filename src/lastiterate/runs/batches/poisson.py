"""Batches of random size: every record by its own coin, or each in a bin of its own choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, POISSON, REPLACE_ONE, ZERO_OUT, Adjacency, Sampling
from lastiterate.errors import Interval, LastIterateError, checked_count, checked_number, must_be, worded
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source, choices, coins
from lastiterate.numerics.tails import binomial_levels, binomial_range
from lastiterate.runs.batches.base import Batches, Sizes, Turns, always, checked_records
from lastiterate.runs.batches.passes import FixedSize
from lastiterate.runs.named import names_arguments
from lastiterate.runs.per_step import each

# Poisson batches.


_RATE = Interval(1e-12, 1.0, low_included=True, high_included=True)


@dataclass(frozen=True)
class _Independent(Batches):
    """At each step every record joins independently with probability `rate`."""

    records: int
    rate: float
    called: ClassVar[str] = "Poisson batches"
    constant_size: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", checked_records(self.records))
        object.__setattr__(self, "rate", checked_number("rate", self.rate, _RATE))

    @property
    def turns(self) -> Turns:
        return Turns.FRESH

    def others(self, log_probability: float) -> tuple[int, int]:
        """Least and greatest number of other records in a batch, except with this probability."""
        return binomial_range(self.records - 1, self.rate, log_probability)

    @property
    def per_epoch(self) -> int:
        return max(1, round(1 / self.rate))

    def resized(self, size: int) -> _Independent:
        return replace(self, rate=size / self.records)

    def inclusion(self, steps: int) -> Floats:
        return always(self.rate, steps)

    def batch(self, step: int, source: Source, order: Indices | None) -> Indices:
        return np.flatnonzero(coins(source, self.records, self.rate))


@names_arguments
@dataclass(frozen=True)
class Poisson(_Independent):
    """Each step includes every record independently with probability `rate`; gradient sums are divided by rate·records."""

    kind: ClassVar[str] = "poisson"
    sampling: ClassVar[Sampling] = POISSON
    adjacencies: ClassVar[tuple[Adjacency, ...]] = (REPLACE_ONE, ZERO_OUT, ADD_OR_REMOVE_ONE)

    @property
    def described(self) -> str:
        return worded("poisson_described", rate=self.rate, records=self.records)

    @property
    def divisor(self) -> float:
        return self.rate * self.records

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.divisor, float(self.rate == 1), 1.0 / self.rate)

    def usual_sizes(self, log_probability: float) -> Sizes:
        fewest, most = self.others(log_probability)
        return Sizes(self.divisor, fewest / self.divisor, (most + 1) / self.divisor)

    def sampled_change(
        self, change: Floats | float, bound: Floats | float, sizes: Sizes, adjacency: Adjacency
    ) -> Floats | float:
        """Norm of the record's gradient, plus its neighbour's if it is replaced, since sums have a fixed divisor."""
        return each(lambda c: 2 * c, bound) if adjacency.replaces else bound


@names_arguments
@dataclass(frozen=True)
class PoissonMean(_Independent):
    """Like `Poisson`, but gradient sums are divided by the size of the batch; an empty batch adds only noise."""

    kind: ClassVar[str] = "poisson_mean"
    own_mean: ClassVar[bool] = True
    adjacencies: ClassVar[tuple[Adjacency, ...]] = (REPLACE_ONE,)
    other_neighbours: ClassVar[str] = "divisor_would_change"

    @property
    def described(self) -> str:
        return worded("poisson_mean_described", rate=self.rate, records=self.records)

    @property
    def divisor(self) -> float:
        return 1.0

    def divisor_of(self, count: int) -> float:
        return float(max(count, 1))

    @property
    def sizes(self) -> Sizes:
        return Sizes(1.0, float(self.rate == 1))

    def usual_sizes(self, log_probability: float) -> Sizes:
        fewest, most = self.others(log_probability)
        levels = binomial_levels(self.records - 1, self.rate, fewest, most)
        shares = tuple(((fewest + 1) / (others + 1), probability) for others, probability in levels)
        return Sizes(float(fewest + 1), float(fewest > 0), levels=shares)

    def sampled_change(
        self, change: Floats | float, bound: Floats | float, sizes: Sizes, adjacency: Adjacency
    ) -> Floats | float:
        """Return `change`, and at least `bound` where a batch may hold the record alone: without it the mean is 0."""
        return each(np.maximum, change, bound) if sizes.divisor == 1 else change


# Balls and bins.


@names_arguments
@dataclass(frozen=True)
class BallsAndBins(Batches):
    """In each epoch every record goes to one of `batches` batches, uniformly and independently of all others.

    Gradient sums are divided by records/batches, whatever the size of the batch; batches may be empty.
    """

    records: int
    batches: int
    kind: ClassVar[str] = "balls_and_bins"
    called: ClassVar[str] = "balls and bins"
    constant_size: ClassVar[bool] = False
    adjacencies: ClassVar[tuple[Adjacency, ...]] = (REPLACE_ONE, ZERO_OUT, ADD_OR_REMOVE_ONE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", checked_records(self.records))
        object.__setattr__(self, "batches", checked_count("batches", self.batches))
        if self.batches > self.records:
            raise must_be("batches", "at most the number of records", f"{self.batches} and {self.records} records")

    @property
    def described(self) -> str:
        return worded("balls_and_bins_described", records=self.records, batches=self.batches)

    @property
    def turns(self) -> Turns:
        return Turns.OWN_PLACE

    @property
    def divisor(self) -> float:
        return self.records / self.batches

    @property
    def per_epoch(self) -> int:
        return self.batches

    def resized(self, size: int) -> BallsAndBins:
        return BallsAndBins(self.records, round(self.records / size))

    def inclusion(self, steps: int) -> Floats:
        return always(1.0 / self.batches, steps)

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.divisor, float(self.batches == 1), float(self.batches))

    def usual_sizes(self, log_probability: float) -> Sizes:
        fewest, most = binomial_range(self.records - 1, 1.0 / self.batches, log_probability)
        return Sizes(self.divisor, fewest / self.divisor, (most + 1) / self.divisor)

    def order(self, step: int, source: Source, before: Any) -> Any:
        """Return the batch of each record, drawn anew in each epoch."""
        return choices(source, self.records, self.batches) if step % self.batches == 0 or before is None else before

    def allows_order(self, order: Any) -> bool:
        return len(order) == self.records and bool((order >= 0).all() and (order < self.batches).all())

    def batch(self, step: int, source: Source, order: Any) -> Indices:
        return np.flatnonzero(order == step % self.batches)


# Batches of the same rate that are drawn in another way.


_SAME_RATE: dict[type[Batches], Callable[[Batches], Batches]] = {
    Poisson: lambda batches: Poisson(batches.records, batches.divisor / batches.records),
    FixedSize: lambda batches: FixedSize(batches.records, round(batches.divisor)),
    BallsAndBins: lambda batches: BallsAndBins(batches.records, batches.per_epoch),
}


def drawn_otherwise(batches: Batches) -> Iterator[Batches]:
    """Yield batches of the other kinds with the same records and mean size; none for full batches and own means."""
    if batches.own_mean or batches.per_epoch == 1:
        return
    for kind, make in _SAME_RATE.items():
        if kind is not type(batches):
            try:
                yield make(batches)
            except LastIterateError:  # there are none of this size
                continue
