"""Each epoch every record goes to one of the batches by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.errors import checked_count, must_be, worded
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source, choices
from lastiterate.numerics.tails import binomial_range
from lastiterate.runs.batches.base import Batches, Sizes, Turns, always, checked_records
from lastiterate.runs.named import names_arguments


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
        """The batch of each record."""
        return choices(source, self.records, self.batches) if step % self.batches == 0 or before is None else before

    def allows_order(self, order: Any) -> bool:
        return len(order) == self.records and bool((order >= 0).all() and (order < self.batches).all())

    def batch(self, step: int, source: Source, order: Any) -> Indices:
        return np.flatnonzero(order == step % self.batches)
