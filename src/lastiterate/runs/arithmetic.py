"""What the arithmetic of a machine adds to a run: how much more a record can move a sum, how far iterates stray."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lastiterate.errors import Interval, checked_number, must_be
from lastiterate.numerics.rounding import up

MOST_FACTOR = 1.001
_FACTORS = Interval(1.0, MOST_FACTOR, low_included=True, high_included=True)
_DISPLACEMENTS = Interval(0.0, 1e-3, low_included=True, high_included=True)


@dataclass(frozen=True)
class Arithmetic:
    """Floating-point rounding: a record changes a computed gradient sum by at most `factor` times its exact change.

    The iterates as they are computed, all of them together, differ from exact ones by a Gaussian mechanism with
    mu = `displacement`. (docs/numerics.md)
    """

    factor: float = 1.0
    displacement: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", checked_number("factor", self.factor, _FACTORS))
        object.__setattr__(self, "displacement", checked_number("displacement", self.displacement, _DISPLACEMENTS))

    def and_also(self, other: Arithmetic) -> Arithmetic:
        """The worse of both, in each respect."""
        if not isinstance(other, Arithmetic):
            raise must_be("other", "a li.training.Arithmetic", type(other).__name__)
        return Arithmetic(max(self.factor, other.factor), max(self.displacement, other.displacement))

    def then(self, other: Arithmetic) -> Arithmetic:
        """Of one training that goes on where another ended: displacements compose."""
        strays = up(math.hypot(self.displacement, other.displacement))
        return Arithmetic(max(self.factor, other.factor), strays)


EXACT = Arithmetic()
STRAYING = 2.0**-19  # by how much the iterates of a training may stray, as mu
STRAYING_OF_NETWORKS = 2.0**-15  # the same with tensors of millions of parameters
UNBOUNDED = Arithmetic(1 + 2.0**-17, STRAYING)  # of gradients without a bound, which are held to it as they come
WIDEST = 2.0**10  # times the clip: what the terms of a record's gradient may add up to before they cancel
PLACES_AT_ONCE = 2**12  # terms that are added up in one product of matrices
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53


@dataclass(frozen=True)
class Sums:
    """How sums of gradients are taken: `block` rows with this rounding unit, and these in double precision."""

    block: int
    unit: float

    def factor(self, batch: int, random: bool) -> float:
        """How much more a record can move the sum of so many gradients, relative to twice the longest of them.

        In a fixed batch a record touches its own block alone: `block` roundings, each at most a part `unit` of what the
        block's records can sum to. Random batches are compared with and without the record, and all blocks may differ.
        Clipping and scaling take a few more roundings of one record alone.
        """
        touched = batch if random else min(self.block, batch)
        additions = -(-batch // self.block)
        return 1 + 1.02 * (min(self.block, batch) * touched * self.unit + additions * batch * _DOUBLE) + 32 * self.unit


IN_SINGLE_PRECISION = Sums(64, _SINGLE)
IN_DOUBLE_PRECISION = Sums(1024, _DOUBLE)


def expected_arithmetic(batch: int, random: bool, linear: bool, bounded: bool, replaces: bool = True) -> Arithmetic:
    """The worst that a training may turn out to have, where it is good enough: `calibrate` leaves room for it.

    Rounding is as large whether the neighbour has another record or none, and moves half as far where it has none.
    """
    if not bounded:
        return UNBOUNDED
    sums = IN_SINGLE_PRECISION if linear and not random else IN_DOUBLE_PRECISION
    beyond = sums.factor(batch, random) - 1 + (0.0 if linear else lost_by_networks(batch))
    factor = 1 + beyond * (1 if replaces else 2)
    return Arithmetic(min(factor, MOST_FACTOR), STRAYING if linear else STRAYING_OF_NETWORKS)


def lost_by_networks(batch: int, processes: int = 1) -> float:
    """What sums of a network's gradients lose besides, relative to the longest of them.

    A record's gradient may be a sum of terms that cancel: `PLACES_AT_ONCE` of them are added up at once, up to `WIDEST`
    times the clip in all. Records may be looked at one by one: an addition for each, and for each process.
    """
    return (PLACES_AT_ONCE + processes + 1.02 * batch) * WIDEST * batch * _DOUBLE
