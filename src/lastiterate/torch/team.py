"""The processes that train together. One of them draws batches and noise; what it draws, all of them use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Team:
    """One process alone."""

    rank = 0
    size = 1

    @property
    def leads(self) -> bool:
        """Whether this process draws what is random, and writes files."""
        return self.rank == 0

    def total(self, count: int) -> int:
        """Of the numbers of all processes."""
        return count

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

    def share(self, chosen: Any) -> Any:
        """Of these records, those of this process."""
        return chosen[self.rank :: self.size]


ALONE = Team()
