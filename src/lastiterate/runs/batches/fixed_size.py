"""A random batch of fixed size at each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lastiterate.errors import worded
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source, subset
from lastiterate.runs.batches.base import Turns, always
from lastiterate.runs.batches.sized import Sized
from lastiterate.runs.named import names_arguments


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
