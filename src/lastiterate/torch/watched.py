"""How much of its passes a loader of PyTorch has handed out: a loop that leaves one in the middle is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import BatchSampler as InBatches
from torch.utils.data import Sampler

from lastiterate.algorithms.batches import Batches
from lastiterate.errors import InvalidInput


class Watched(Sampler[int]):  # type: ignore[misc]
    """The places that another sampler hands out, counted: which pass has handed out the last, and how many before.

    Somebody may look at a batch, or at all of them, while a pass is under way that goes on afterwards.
    """

    def __init__(self, inner: Any) -> None:
        self.inner, self.latest, self.handed = inner, 0, 0
        self._begun = 0

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[int]:
        self._begun += 1
        own = self._begun
        for count, place in enumerate(self.inner, start=1):
            self.latest, self.handed = own, count
            yield place


def unwatched(sampler: Any) -> Any:
    """The sampler itself."""
    return sampler.inner if isinstance(sampler, Watched) else sampler


class PassWatch:
    """Holds a loader of PyTorch to one step for each of its batches, or for several, pass after pass.

    `ahead`: how many batches workers fetch early.
    """

    def __init__(self, batches: InBatches, said: Batches, ahead: int) -> None:
        batches.sampler = self.watched = Watched(unwatched(batches.sampler))
        self._size, self._per_epoch, self._ahead = batches.batch_size, said.per_epoch, ahead
        self._together = max(1, said.largest // batches.batch_size)
        self._pass = 0

    def check(self, step: int) -> None:
        """The batch of this step, counted from 0, is the next of its pass, which has begun if it is the first."""
        place, fetched = step % self._per_epoch, -(-self.watched.handed // self._size)
        new, used = self.watched.latest != self._pass, self._together * place
        if new != (place == 0) or not used < fetched <= used + self._together + self._ahead:
            raise InvalidInput(
                "each step must use the next batch of the loader. Got another one: a pass was stopped early, or a batch was "
                "skipped, used twice or taken from elsewhere. Take one step per batch, to the end of each pass.",
                field="loader",
            )
        self._pass = self.watched.latest
