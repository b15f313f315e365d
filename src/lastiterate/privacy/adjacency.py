"""What a guarantee compares, and how batches are drawn."""

from __future__ import annotations

from collections.abc import Iterable

from lastiterate.errors import Incompatible, PublicEnum


class Adjacency(PublicEnum):
    """Which pairs of data sets are neighbours. Only guarantees with the same adjacency can be combined."""

    REPLACE_ONE = "one record is replaced, the number of records is public"
    ZERO_OUT = "one record contributes nothing, sizes and divisors are public and stay"
    ADD_OR_REMOVE_ONE = "one record is added or removed"

    @property
    def said(self) -> str:
        """In reports and certificates."""
        return {
            Adjacency.REPLACE_ONE: "replace one record",
            Adjacency.ZERO_OUT: "zero out one record",
            Adjacency.ADD_OR_REMOVE_ONE: "add or remove one record",
        }[self]

    def said_of(self, records: int) -> str:
        """The same for a user with up to so many records."""
        return self.said if records == 1 else f"{self.verb} up to {records} records of one user"

    @property
    def verb(self) -> str:
        """What happens to a record."""
        return {
            Adjacency.REPLACE_ONE: "replace",
            Adjacency.ZERO_OUT: "zero out",
            Adjacency.ADD_OR_REMOVE_ONE: "add or remove",
        }[self]

    @property
    def changed(self) -> str:
        """What happens to a record, in sentences: 'a record was …', 'the … records of a user'."""
        return {
            Adjacency.REPLACE_ONE: "replaced",
            Adjacency.ZERO_OUT: "zeroed out",
            Adjacency.ADD_OR_REMOVE_ONE: "added or removed",
        }[self]

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
    """The one adjacency of all, or an error."""
    first, *others = adjacencies
    for other in others:
        if other is not first:
            raise Incompatible(
                f"guarantees with different adjacencies cannot be combined. Got {first!r} and {other!r}. "
                "Account for every part under one adjacency first."
            )
    return first
