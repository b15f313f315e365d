"""Which data sets a guarantee compares, and how batches are drawn."""

from __future__ import annotations

from collections.abc import Iterable

from lastiterate.errors import Incompatible, PublicEnum
from lastiterate.facts import Fact, fact


class Adjacency(PublicEnum):
    """Which pairs of data sets are neighbours. Only guarantees with the same adjacency can be combined."""

    REPLACE_ONE = "one record is replaced, the number of records is public"
    ZERO_OUT = "one record contributes nothing, sizes and divisors are public and stay"
    ADD_OR_REMOVE_ONE = "one record is added or removed"

    def unit(self, user_records: int = 1, records: tuple[int, ...] = ()) -> Fact:
        """Return the privacy unit: one record, all records of a user with up to so many, or these records of one person."""
        return fact("neighbours", adjacency=self.name.lower(), user_records=user_records, records=records)

    @property
    def replaces(self) -> bool:
        """Whether the neighbour has another record in its place; if not, it has nothing there."""
        return self is Adjacency.REPLACE_ONE


class Sampling(PublicEnum):
    """How a step's batch is drawn."""

    POISSON = "each record joins independently"
    FIXED_SIZE = "a uniform batch of fixed size, without replacement"


REPLACE_ONE = Adjacency.REPLACE_ONE
ZERO_OUT = Adjacency.ZERO_OUT
ADD_OR_REMOVE_ONE = Adjacency.ADD_OR_REMOVE_ONE
POISSON = Sampling.POISSON
FIXED_SIZE = Sampling.FIXED_SIZE


def common_adjacency(adjacencies: Iterable[Adjacency]) -> Adjacency:
    """Return the one adjacency of all; raise if they differ."""
    first, *others = adjacencies
    for other in others:
        if other is not first:
            raise Incompatible("adjacencies_differ", first=first, other=other)
    return first
