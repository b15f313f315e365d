"""Which records each step uses, drawn as the run's batches say."""

from __future__ import annotations

import numpy as np

from lastiterate.algorithms.batches import Batches, Cyclic, FixedSize, FullBatch, Poisson, PoissonMean, Shuffled
from lastiterate.errors import InvalidInput
from lastiterate.numerics.randomness import Source, coins, permutation, subset
from lastiterate.training.data import Indices


class Sampler:
    """Asked for one batch after the other. `order` is all that it remembers: that of the epoch, for shuffled batches."""

    def __init__(self, batches: Batches, source: Source, order: np.ndarray | None = None) -> None:
        self.batches = batches
        self.source = source
        self.order = order

    def batch(self, step: int) -> Indices:
        """The records of this step, counted from 0."""
        match self.batches:
            case FullBatch():
                return slice(None)
            case Cyclic():
                return self._cut(step)
            case Shuffled():
                return self._from_order(step)[self._cut(step)]
            case FixedSize():
                return subset(self.source, self.batches.records, self.batches.batch_size)
            case Poisson() | PoissonMean():
                return np.flatnonzero(coins(self.source, self.batches.records, self.batches.rate))
        raise InvalidInput(f"no sampler is known for batches of kind {type(self.batches).__name__}.")

    def _cut(self, step: int) -> slice:
        place, size = step % self.batches.per_epoch, self.batches.records // self.batches.per_epoch
        return slice(place * size, (place + 1) * size)

    def _from_order(self, step: int) -> np.ndarray:
        same = step % self.batches.per_epoch or not self.batches.reshuffled
        if self.order is None or not same:
            self.order = permutation(self.source, self.batches.records)
        return self.order
