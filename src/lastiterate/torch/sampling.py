"""The batches of a run as a sampler of PyTorch: every kind of batches, any data set with places, any number of workers."""

from __future__ import annotations

import copy
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler as InBatches
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler, default_collate

from lastiterate.errors import InvalidInput, checked_count, must_be
from lastiterate.facts import Basis, Fact, fact
from lastiterate.numerics.randomness import Source
from lastiterate.runs.batches import Batches, Cyclic, Shuffled
from lastiterate.runs.batches.passes import DROP, SMALLER
from lastiterate.runs.run import Run, checked_run
from lastiterate.torch.agreement import tolerance_of
from lastiterate.torch.network import Network, NotByRecord, moved, pair_of, pieces
from lastiterate.torch.team import ALONE, Team
from lastiterate.torch.working_copy import WithoutDropout


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
        """Number of lists of records in all; batches of random size may come in more or fewer."""
        share = -(-self.run.batches.largest // self.team.size)
        each = -(-share // self.at_once) if self.run.batches.constant_size else 1
        return (self.run.steps - self.begin) * max(each, 1)

    def __iter__(self) -> Iterator[list[int]]:
        if self._asked:  # who begins again in the middle uses records more often than the run says
            raise InvalidInput("loader_iterated_again", field="loader")
        self._asked = True
        order = next(iter(self._orders.values()), None)
        for step in range(self.begin, self.run.steps):
            order, chosen = self.team.draw(partial(self._draw, step, order))
            lists = _lists(self.team.share(chosen), self.at_once, -(-len(chosen) // self.team.size))
            self.drawn.append((len(chosen), len(lists)))
            yield from lists

    def go_on(self, step: int, order: Any) -> None:
        """Continue at this step and in this order; must be called before the first batch is drawn."""
        self.begin, self._orders = step, {} if order is None else {step: order}

    @property
    def is_new(self) -> bool:
        """Whether no batch was asked for yet."""
        return not self._asked

    def order_at(self, step: int) -> Any:
        """Return the order of the records after `step` steps, as a state must keep it."""
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
    """A collate function that also takes no records, and returns None for them."""

    def __init__(self, collate_fn: Callable[[list[Any]], Any] | None) -> None:
        self.collate_fn = default_collate if collate_fn is None else collate_fn

    def __call__(self, records: list[Any]) -> Any:
        return self.collate_fn(records) if records else None


def check_dataset(dataset: Any, run: Run) -> None:
    """Raise an error unless the data set can be indexed and has as many records as the run."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise InvalidInput("dataset_without_index", field="dataset", got=type(dataset).__name__)
    if isinstance(dataset, tuple):
        raise InvalidInput("dataset_is_tuple", field="dataset")
    if len(dataset) != run.batches.records:
        raise InvalidInput("dataset_length_differs", field="dataset", records=run.batches.records, length=len(dataset))


def _lists(chosen: Any, most: int, longest: int) -> list[list[int]]:
    """Split the chosen places into lists of at most `most`, as many in all processes, and at least one."""
    return [chosen[first : first + most].tolist() for first in range(0, max(longest, 1), most)]


# Check of a loader: does it hand out the batches that the run describes?


_PASSES: dict[type, type[Cyclic] | type[Shuffled]] = {RandomSampler: Shuffled, SequentialSampler: Cyclic}
OF_PYTORCH = fact("generator_unpredictable", drew="order")


def check_loader(loader: Any, run: Run) -> tuple[Fact, ...]:
    """Facts to assume of a loader; an error if it does not hand out the batches of the run."""
    if not isinstance(loader, DataLoader):
        raise must_be("loader", "a torch.utils.data.DataLoader", type(loader).__name__)
    check_dataset(loader.dataset, run)
    sampler = loader.batch_sampler
    if isinstance(sampler, BatchSampler):
        if sampler.run.batches != run.batches or sampler.run.steps != run.steps:
            raise InvalidInput(
                "loader_of_another_run",
                field="loader",
                batches=run.batches.described,
                steps=run.steps,
                drawn=sampler.run.batches.described,
                drawn_steps=sampler.run.steps,
            )
        if sampler.begin:
            raise InvalidInput("loader_begins_late", field="loader", begin=sampler.begin)
        return ()
    found = batches_of(loader)
    # `last` may differ where no record is left over: then batches are described alike.
    if type(found) is not type(run.batches) or found.described != run.batches.described:
        raise InvalidInput(
            "loader_batches_differ", field="loader", batches=run.batches.described, drawn=found.described
        )
    return (OF_PYTORCH,) if found.shuffled else ()


def batches_of(loader: Any) -> Batches:
    """Return the batches of a run for a loader of PyTorch."""
    batches = unwatched(loader.batch_sampler)
    if type(batches) is not InBatches:
        raise _unknown(type(loader.sampler if batches is None else batches).__name__)
    if not in_passes(batches.sampler, len(loader.dataset)):
        raise _unknown(type(batches.sampler).__name__)
    return passes_of(batches, len(loader.dataset))


def in_passes(sampler: Any, records: int) -> bool:
    """Whether a sampler goes through `records` records, each once an epoch."""
    return type(sampler) in _PASSES and len(sampler) == records and not getattr(sampler, "replacement", False)


def passes_of(batches: InBatches, records: int) -> Cyclic | Shuffled:
    """Return the batches of a run for a batch sampler of PyTorch."""
    last = DROP if batches.drop_last else SMALLER
    return _PASSES[type(batches.sampler)](records, batches.batch_size, last=last)


def lists_ahead(loader: Any) -> int:
    """Number of lists of records that workers request before they are needed."""
    return int(loader.num_workers * (loader.prefetch_factor or 0))


def generator_of(dealer: Any) -> Any:
    """Return the generator of a batch sampler's random choices; None for PyTorch's own, or if it makes none."""
    return getattr(dealer if hasattr(dealer, "generator") else getattr(dealer, "sampler", None), "generator", None)


def _unknown(name: str) -> InvalidInput:
    return InvalidInput("loader_unknown", field="loader", got=name)


# Watch on a loader: a loop that leaves out a batch, or takes one from elsewhere, is seen.


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
    """Return the sampler itself, without the wrapper that watches it."""
    return sampler.inner if isinstance(sampler, Watched) else sampler


def watch_batches(holder: Any, name: str) -> Watched:
    """Replace the batch sampler that `holder` has under this name by a counter of the same kind.

    A loader forbids the assignment, because it would not change its other attributes; here the batches stay what they are.
    """
    inner = unwatched(getattr(holder, name))
    kind: Any = type("Watched", (Watched, type(inner)), {})
    watched: Watched = kind.__new__(kind)
    watched.__dict__.update({**inner.__dict__, "inner": inner, "sizes": []})
    holder.__dict__[name] = watched
    return watched


class LoaderWatch:
    """Watch that a loop takes one step for each batch of a loader, or for `together` of them.

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
        """Return the records drawn for this step, counted from 0; an error unless its batch is the next."""
        new = self.begins_pass
        place = (0 if new else self._used) if self._per_epoch is None else step % self._per_epoch
        used, drawn = self._together * place, len(self.watched.sizes)
        if new != (place == 0) or not used < drawn <= used + self._together + self._ahead:
            raise InvalidInput("batch_not_next", field="loader")
        self._pass, self._used = self.watched.latest, place + 1
        return sum(self.watched.sizes[used : used + self._together])


# Check of a collate function: a record must not depend on the others of its batch.
#
# Padding to the longest record of the batch is the usual case: a model that does not ignore it gives every record another
# gradient where one record is long.


Collate = Callable[[list[Any]], Any]
_RECORDS = 6
COMPARED = fact("collate_separate", compared="once").on(Basis.CHECKED)
NOT_COMPARED = fact("collate_separate", compared="impossible")
_CANNOT = (TypeError, ValueError, LookupError, RuntimeError, AttributeError)


def check_collate(network: Network, dataset: Any, collate_fn: Collate | None) -> tuple[Fact, ...]:
    """Facts about a collate function; an error if it changes some record's loss when records are collated together.

    A few records are compared once. Where chance changes the loss of a record by more than rounding does, nothing can be.
    """
    if collate_fn is None or collate_fn is default_collate or len(dataset) < 2:
        return ()
    places = secrets.SystemRandom().sample(range(len(dataset)), min(len(dataset), _RECORDS))
    records = [dataset[place] for place in places]
    try:
        alone, again = ([_collated(network, collate_fn, [one]) for one in records] for _ in range(2))
        together = list(pieces(*_collated(network, collate_fn, records), 1))
        if not _alike(network, alone, again):
            return (NOT_COMPARED,)
        differ = not _alike(network, alone, together)
    except _CANNOT:  # that batches are what they have to be is seen when they come
        return (NOT_COMPARED,)
    if differ:
        raise NotByRecord("collate_mixes_records", field="collate_fn")
    return (COMPARED,)


def _collated(network: Network, collate_fn: Collate, records: list[Any]) -> tuple[Any, Any]:
    inputs, targets = pair_of(collate_fn(copy.deepcopy(records)))
    return moved(inputs, network.device, network.dtype), moved(targets, network.device, network.dtype)


def _alike(network: Network, alone: list[Any], together: list[Any]) -> bool:
    network.renew()
    with WithoutDropout(), torch.no_grad():
        first, second = (torch.cat([network.losses(*one) for one in each]) for each in (alone, together))
    network.renew()
    if len(first) != len(second) or not bool(first.isfinite().all()):
        raise InvalidInput("losses_not_comparable")
    return bool(((first - second).abs() <= tolerance_of(network) * (1 + first.abs().max())).all())
