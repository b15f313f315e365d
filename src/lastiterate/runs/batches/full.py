"""Every record at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source
from lastiterate.runs.batches.base import Batches, Turns, always, checked_records
from lastiterate.runs.named import names_arguments


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
