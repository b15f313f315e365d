"""Batches that use a record as often as others do, and are drawn in another way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lastiterate.errors import LastIterateError
from lastiterate.runs.batches.balls_and_bins import BallsAndBins
from lastiterate.runs.batches.base import Batches
from lastiterate.runs.batches.fixed_size import FixedSize
from lastiterate.runs.batches.poisson import Poisson

_SAME_RATE: dict[type[Batches], Callable[[Batches], Batches]] = {
    Poisson: lambda batches: Poisson(batches.records, batches.divisor / batches.records),
    FixedSize: lambda batches: FixedSize(batches.records, round(batches.divisor)),
    BallsAndBins: lambda batches: BallsAndBins(batches.records, batches.per_epoch),
}


def drawn_otherwise(batches: Batches) -> Iterator[Batches]:
    """As large on average, of the same records; nothing beside full batches, and means over a batch's own size."""
    if batches.own_mean or batches.per_epoch == 1:
        return
    for kind, make in _SAME_RATE.items():
        if kind is not type(batches):
            try:
                yield make(batches)
            except LastIterateError:  # there are none of this size
                continue
