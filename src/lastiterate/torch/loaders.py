"""Does a loader hand out the batches that a run describes? What the account does not cover is refused beforehand."""

from __future__ import annotations

from typing import Any

from torch.utils.data import BatchSampler as InBatches
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from lastiterate.errors import InvalidInput, must_be
from lastiterate.facts import Fact, fact
from lastiterate.runs.batches import Batches, Cyclic, Shuffled
from lastiterate.runs.batches.passes import DROP, SMALLER
from lastiterate.runs.run import Run
from lastiterate.torch.sampler import BatchSampler, check_dataset
from lastiterate.torch.watched import unwatched

_PASSES: dict[type, type[Cyclic] | type[Shuffled]] = {RandomSampler: Shuffled, SequentialSampler: Cyclic}
OF_PYTORCH = fact("generator_unpredictable", drew="order")


def check_loader(loader: Any, run: Run) -> tuple[Fact, ...]:
    """An error, of one sentence, if it does not; what has to be assumed, if it does."""
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
    if not _same(found, run.batches):
        raise InvalidInput(
            "loader_batches_differ", field="loader", batches=run.batches.described, drawn=found.described
        )
    return (OF_PYTORCH,) if found.shuffled else ()


def batches_of(loader: Any) -> Batches:
    """What a run says for a loader of PyTorch."""
    batches = unwatched(loader.batch_sampler)
    if type(batches) is not InBatches:
        raise _unknown(type(loader.sampler if batches is None else batches).__name__)
    if not in_passes(batches.sampler, len(loader.dataset)):
        raise _unknown(type(batches.sampler).__name__)
    return passes_of(batches, len(loader.dataset))


def in_passes(sampler: Any, records: int) -> bool:
    """Whether it goes through so many records, each once an epoch."""
    return type(sampler) in _PASSES and len(sampler) == records and not getattr(sampler, "replacement", False)


def passes_of(batches: InBatches, records: int) -> Cyclic | Shuffled:
    """Batches of such a sampler."""
    last = DROP if batches.drop_last else SMALLER
    return _PASSES[type(batches.sampler)](records, batches.batch_size, last=last)


def lists_ahead(loader: Any) -> int:
    """How many lists of records workers ask for before they are needed."""
    return int(loader.num_workers * (loader.prefetch_factor or 0))


def generator_of(dealer: Any) -> Any:
    """Where a sampler of batches takes its random choices from: None for PyTorch's own, or where it makes none."""
    return getattr(dealer if hasattr(dealer, "generator") else getattr(dealer, "sampler", None), "generator", None)


def _same(found: Batches, said: Batches) -> bool:
    """But for `last`, where nothing is left over."""
    return type(found) is type(said) and found.described == said.described


def _unknown(name: str) -> InvalidInput:
    return InvalidInput("loader_unknown", field="loader", got=name)
