"""Batches with a number of records that does not change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lastiterate.errors import checked_count, must_be
from lastiterate.runs.batches.base import Batches, checked_records


@dataclass(frozen=True)
class Sized(Batches):
    """So many records at each step."""

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
