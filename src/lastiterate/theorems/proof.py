"""A guarantee by the shift engine, with the schedules that prove it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lastiterate.privacy.averaged import AveragedGaussianDP
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.shift.schedule import Schedule


@dataclass(frozen=True)
class Part:
    """One stretch between two releases: the schedule and the μ it certifies; no schedule where the record is absent."""

    mu: float
    schedule: Schedule | None


@dataclass(frozen=True)
class RecordProof:
    """For a record whose turn is at this place: its parts, and how likely that place is."""

    place: int
    weight: float
    parts: tuple[Part, ...]

    @property
    def mu(self) -> float:
        """Everything released, together."""
        return math.hypot(*(part.mu for part in self.parts)) * (1 + 1e-15)


@dataclass(frozen=True)
class Proof:
    """`averaged`: the place is random, the guarantee is the average; otherwise it is that of the worst place."""

    records: tuple[RecordProof, ...]
    averaged: bool

    @property
    def finite(self) -> bool:
        return all(math.isfinite(record.mu) for record in self.records)

    @property
    def notion(self) -> Notion:
        if not self.averaged:
            return GaussianDP(max(record.mu for record in self.records))
        return AveragedGaussianDP(
            mus=[record.mu for record in self.records], weights=[record.weight for record in self.records]
        )
