"""The batches of a run as a sampler of PyTorch: every kind of batches, any data set with places, any number of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, IterableDataset, Sampler, default_collate

from lastiterate.errors import InvalidInput, checked_count
from lastiterate.numerics.randomness import Source
from lastiterate.runs.run import Run, checked_run
from lastiterate.torch.team import ALONE, Team


class BatchSampler(Sampler[list[int]]):  # type: ignore[misc]
    """Batch sampler for `DataLoader(dataset, batch_sampler=...)`: the positions of each step's records, drawn as in the run.

    Batches are secret and drawn by a cryptographic generator, unless `source` has a seed. Iterate over it once. With
    `at_once`, a batch comes in lists of at most this length; `ahead` lists are drawn before they are used. Poisson batches
    can be empty, so the loader's `collate_fn` must accept an empty list; that of `li.torch.loader` does.
    """

    def __init__(
        self,
        run: Run,
        *,
        source: Source | None = None,
        begin: int = 0,
        order: Any = None,
        at_once: int | None = None,
        team: Team = ALONE,
        ahead: int = 0,
    ) -> None:
        self.run, self.begin, self.team, self.ahead = checked_run(run), begin, team, ahead
        self.source = Source() if source is None else source
        self.at_once = run.batches.records if at_once is None else checked_count("at_once", at_once)
        # Of each step to come: the size of its batch, and in how many lists.
        self.drawn: deque[tuple[int, int]] = deque()
        self._orders = {} if order is None else {begin: order}
        self._asked = False

    def __len__(self) -> int:
        """Lists in all, where that is known; batches of random size may come in more or fewer."""
        share = -(-self.run.batches.largest // self.team.size)
        each = -(-share // self.at_once) if self.run.batches.constant_size else 1
        return (self.run.steps - self.begin) * max(each, 1)

    def __iter__(self) -> Iterator[list[int]]:
        if self._asked:  # who begins again in the middle uses records more often than the run says
            raise InvalidInput("loader_iterated_again", field="loader")
        self._asked = True
        order = next(iter(self._orders.values()), None)
        for step in range(self.begin, self.run.steps):
            order, chosen = self.team.drawn(partial(self._draw, step, order))
            lists = _lists(self.team.share(chosen), self.at_once, -(-len(chosen) // self.team.size))
            self.drawn.append((len(chosen), len(lists)))
            yield from lists

    def go_on(self, step: int, order: Any) -> None:
        """From this step on, in this order; before the first batch was asked for."""
        self.begin, self._orders = step, {} if order is None else {step: order}

    @property
    def is_new(self) -> bool:
        """Whether no batch was asked for yet."""
        return not self._asked

    def order_at(self, step: int) -> Any:
        """The order of the records after so many steps, as it has to be kept to go on from there."""
        known = [first for first in self._orders if first < step or first == self.begin]
        return self._orders[max(known)] if known and step > 0 else None

    def _draw(self, step: int, order: Any) -> tuple[Any, Any]:
        batches = self.run.batches
        after = batches.order(step, self.source, order)
        if after is not order:
            needed = step - 4 * batches.per_epoch - self.ahead
            self._orders = {first: one for first, one in self._orders.items() if first > needed}
            self._orders[step] = after
        chosen = batches.batch(step, self.source, after)
        return after, np.arange(*chosen.indices(batches.records)) if isinstance(chosen, slice) else np.asarray(chosen)


def loader(
    dataset: Any,
    run: Run,
    *,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    source: Source | None = None,
    **more: Any,
) -> DataLoader[Any]:
    """A DataLoader that draws one batch for each step of the run. An empty batch is None."""
    check_dataset(dataset, run)
    for name in ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"):
        if name in more:
            raise InvalidInput("loader_option_of_run", field=name)
    return DataLoader(
        dataset,
        batch_sampler=BatchSampler(run, source=source),
        num_workers=num_workers,
        collate_fn=OrNone(collate_fn),
        **more,
    )


class OrNone:
    """A collate function that takes no records, too."""

    def __init__(self, collate_fn: Callable[[list[Any]], Any] | None) -> None:
        self.collate_fn = default_collate if collate_fn is None else collate_fn

    def __call__(self, records: list[Any]) -> Any:
        return self.collate_fn(records) if records else None


def check_dataset(dataset: Any, run: Run) -> None:
    """It has places, and as many records as the run."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise InvalidInput("dataset_without_index", field="dataset", got=type(dataset).__name__)
    if isinstance(dataset, tuple):
        raise InvalidInput("dataset_is_tuple", field="dataset")
    if len(dataset) != run.batches.records:
        raise InvalidInput("dataset_length_differs", field="dataset", records=run.batches.records, length=len(dataset))


def _lists(chosen: Any, most: int, longest: int) -> list[list[int]]:
    """At least one, if empty. As many in all processes, so that all of them come to the next batch at the same place."""
    return [chosen[first : first + most].tolist() for first in range(0, max(longest, 1), most)]
