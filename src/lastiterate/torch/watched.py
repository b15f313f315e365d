"""Which batches a loader of PyTorch has handed out: a loop that leaves one out, or takes one from elsewhere, is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.runs.batches import Batches


class Watched:
    """The batches of another sampler, counted: which pass has handed out the last one, and the sizes of its batches.

    Somebody may look at a batch, or at all of them, while a pass is under way that goes on afterwards.
    """

    inner: Any
    latest = 0
    sizes: list[int]
    _begun = 0

    def __iter__(self) -> Iterator[list[int]]:
        self._begun += 1
        own, sizes = self._begun, list[int]()
        for batch in self.inner:
            sizes.append(len(batch))
            self.latest, self.sizes = own, sizes
            yield batch


def unwatched(sampler: Any) -> Any:
    """The sampler itself."""
    return sampler.inner if isinstance(sampler, Watched) else sampler


def watch_batches(holder: Any, name: str) -> Watched:
    """Put a counter of the same kind in the place of the sampler of batches that `holder` has under this name.

    A loader forbids the assignment, because it would not change its other attributes; here the batches stay what they are.
    """
    inner = unwatched(getattr(holder, name))
    kind: Any = type("Watched", (Watched, type(inner)), {})
    watched: Watched = kind.__new__(kind)
    watched.__dict__.update({**inner.__dict__, "inner": inner, "sizes": []})
    holder.__dict__[name] = watched
    return watched


class LoaderWatch:
    """Holds a loop to one step for each batch of a loader, or for `together` of them.

    Passes go to their end. Batches that are drawn anew for each step may end anywhere, but none is left out or used twice.
    `ahead`: how many batches workers fetch early.
    """

    def __init__(self, watched: Watched, said: Batches, together: int, ahead: int) -> None:
        self.watched, self._together, self._ahead = watched, together, ahead
        self._per_epoch = said.per_epoch if said.passes else None
        self._pass, self._used = 0, 0

    @property
    def begins_pass(self) -> bool:
        """Whether the next step is the first that uses a batch of the latest pass."""
        return self.watched.latest != self._pass

    def check(self, step: int) -> int:
        """Records drawn for this step, counted from 0; an error unless its batch is the next of its pass."""
        new = self.begins_pass
        place = (0 if new else self._used) if self._per_epoch is None else step % self._per_epoch
        used, drawn = self._together * place, len(self.watched.sizes)
        if new != (place == 0) or not used < drawn <= used + self._together + self._ahead:
            raise InvalidInput("batch_not_next", field="loader")
        self._pass, self._used = self.watched.latest, place + 1
        return sum(self.watched.sizes[used : used + self._together])
