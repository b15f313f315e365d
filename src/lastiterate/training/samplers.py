"""Which records each step uses, drawn as the run's batches say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lastiterate.algorithms.batches import Batches, Cyclic, FixedSize, FullBatch, Poisson, PoissonMean, Shuffled
from lastiterate.errors import InvalidInput
from lastiterate.numerics.randomness import Source

Indices = np.ndarray | slice


def batches_of(batches: Batches, steps: int, source: Source) -> Iterator[Indices]:
    """One set of records for each step."""
    match batches:
        case FullBatch():
            return (slice(None) for _ in range(steps))
        case Cyclic():
            return (_cut(step % batches.per_epoch, batches.batch_size) for step in range(steps))
        case Shuffled():
            return _in_orders(batches, steps, source)
        case FixedSize():
            return (_chosen(batches.records, batches.batch_size, source) for _ in range(steps))
        case Poisson() | PoissonMean():
            return (np.flatnonzero(source.uniform(batches.records) < batches.rate) for _ in range(steps))
    raise InvalidInput(f"no sampler is known for batches of kind {type(batches).__name__}.")


def _cut(place: int, size: int) -> slice:
    return slice(place * size, (place + 1) * size)


def _in_orders(batches: Shuffled, steps: int, source: Source) -> Iterator[Indices]:
    order = np.arange(0)
    for step in range(steps):
        place = step % batches.per_epoch
        if step == 0 or (place == 0 and batches.each_epoch):
            order = np.argsort(source.uniform(batches.records), kind="stable")
        yield order[_cut(place, batches.batch_size)]


def _chosen(records: int, size: int, source: Source) -> np.ndarray:
    """A uniform subset: those with the smallest of independent numbers."""
    return np.argpartition(source.uniform(records), size - 1)[:size]
