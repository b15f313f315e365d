"""How much of its passes a loader of PyTorch has handed out: a loop that leaves one in the middle is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import BatchSampler as InBatches
from torch.utils.data import Sampler

from lastiterate.algorithms.batches import Batches
from lastiterate.errors import InvalidInput


class Watched(Sampler[int]):  # type: ignore[misc]
    """The places that another sampler hands out, counted: passes that were begun, and records of the last of them."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.passes, self.handed = inner, 0, 0

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[int]:
        self.passes, self.handed = self.passes + 1, 0
        begun = self.passes
        for place in self.inner:
            self.handed += begun == self.passes
            yield place


def unwatched(sampler: Any) -> Any:
    """The sampler itself."""
    return sampler.inner if isinstance(sampler, Watched) else sampler


class PassWatch:
    """Holds a loader of PyTorch to one step for each of its batches, pass after pass. `ahead`: what workers fetch early."""

    def __init__(self, batches: InBatches, said: Batches, ahead: int) -> None:
        batches.sampler = self.watched = Watched(unwatched(batches.sampler))
        self._size, self._per_epoch, self._ahead = batches.batch_size, said.per_epoch, ahead
        self._pass = 0

    def check(self, step: int) -> None:
        """The batch of this step, counted from 0, is the next of the pass that was begun last."""
        place, fetched = step % self._per_epoch, -(-self.watched.handed // self._size)
        new = self.watched.passes != self._pass
        if new != (place == 0) or not place < fetched <= place + 1 + self._ahead:
            raise InvalidInput(
                "this step has not the next batch of the loader: a pass was left in the middle, a batch was left out or "
                "used twice, or came from elsewhere. Take one step for each batch of the loader, to the end of each pass.",
                field="loader",
            )
        self._pass = self.watched.passes
