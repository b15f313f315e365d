"""The processes that train together. One of them draws batches and noise; what it draws, all of them use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Facts = dict[str, Any]
"""What has to be the same in all processes, by the name that a message calls it."""


class Team:
    """One process alone."""

    rank = 0
    size = 1

    @property
    def leads(self) -> bool:
        """Whether this process draws what is random, and writes files."""
        return self.rank == 0

    def met(self, make: Callable[[], tuple[Any, Facts]]) -> Any:
        """The network that each process makes, with the leader's numbers. An error in one, or other facts, ends all."""
        return make()[0]

    def led(self, make: Callable[[], Any]) -> Any:
        """What the leader makes. An error there ends all."""
        return make()

    @contextmanager
    def together(self, facts: Facts) -> Iterator[None]:
        """While they train: whatever ends one process ends all."""
        yield

    def total(self, counted: Callable[[], int]) -> int:
        """Of the numbers that all processes find. An error in one of them is an error in all."""
        return counted()

    def summed(self, vector: Any) -> Any:
        """Of the vectors of all processes."""
        return vector

    def told(self, vector: Any) -> Any:
        """The leader's vector."""
        return vector

    def drawn(self, draw: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        """An order, which the leader alone knows, and the records of a batch, which all learn."""
        return draw()

    def agreed(self, state: Any) -> Any:
        """The state that the leader found."""
        return state

    def finished(self, last: Callable[[], None]) -> None:
        """What the leader does when all have come to the end, and before any of them goes on."""
        last()

    def share(self, chosen: Any) -> Any:
        """Of these records, those of this process."""
        return chosen[self.rank :: self.size]


ALONE = Team()
