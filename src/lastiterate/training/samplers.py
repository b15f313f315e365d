"""Which records each step uses, drawn as the run's batches say."""

from __future__ import annotations

from typing import Any

from lastiterate.numerics.arrays import Indices
from lastiterate.numerics.randomness import Source
from lastiterate.runs.batches import Batches


class Sampler:
    """Asked for one batch after the other. `order` is all that it remembers: that of the epoch, for shuffled batches."""

    def __init__(self, batches: Batches, source: Source, order: Any = None) -> None:
        self.batches = batches
        self.source = source
        self.order = order

    def batch(self, step: int) -> Indices:
        """The records of this step, counted from 0."""
        self.order = self.batches.order(step, self.source, self.order)
        return self.batches.batch(step, self.source, self.order)
