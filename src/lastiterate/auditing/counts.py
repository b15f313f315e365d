"""How many other records are in a batch, and how far they move the iterate where that is by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.tails import binomial_range
from lastiterate.runs.batches import RARE, Batches

Moves = tuple[Floats, Floats]  # lengths, and their probabilities


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of other records with their probabilities; with probability `left_out`, one of none of these."""

    numbers: Floats
    probabilities: Floats
    left_out: float = 0.0

    @property
    def never_empty(self) -> Counts:
        """Batches without any other record are left out, too."""
        if self.numbers[0] > 0:
            return self
        empty = float(self.probabilities[0])
        if len(self.numbers) == 1:
            return Counts(np.ones(1), np.ones(1), 1.0)
        return Counts(self.numbers[1:], self.probabilities[1:] / (1 - empty), self.left_out + empty)

    def always(self, move: float) -> Moves:
        return np.array([move]), np.ones(1)

    def summed(self, each: float, own: float) -> Moves:
        """Every other record moves it by `each`, the record by `own`."""
        return (self.numbers * each + own, self.probabilities) if each else self.always(own)

    def averaged(self, others: float, own: float) -> Moves:
        """The mean of `others` and of what the record does beyond them."""
        return others + own / (self.numbers + 1), self.probabilities

    def unless_empty(self, move: float) -> Moves:
        """An empty batch moves nothing."""
        if self.numbers[0] > 0 or move == 0:
            return self.always(move)
        empty = float(self.probabilities[0])
        return np.array([0.0, move]), np.array([empty, 1 - empty])


def counts_of(batches: Batches, rare: float = RARE) -> Counts:
    """Of the batches that hold a given record, or do not: all but those that are drawn with probability `rare`."""
    if batches.constant_size:
        return Counts(np.array([batches.divisor - 1]), np.ones(1))
    rate, others = float(batches.inclusion(1)[0]), batches.records - 1
    fewest, most = binomial_range(others, rate, math.log(rare))
    numbers = np.arange(fewest, most + 1, dtype=float)
    # From one number to the next, so that no error is that of a large logarithm.
    ratios = (others - numbers[:-1]) / numbers[1:] * (rate / (1 - rate)) if rate < 1 else np.ones(0)
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    found = np.exp(logs - logs.max())
    whole = fewest == 0 and most == others
    return Counts(numbers, found / found.sum(), 0.0 if whole else rare)
