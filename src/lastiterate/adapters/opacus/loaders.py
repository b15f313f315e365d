"""A PyTorch loader in the words of a run: which records the steps of an epoch use."""

from __future__ import annotations

from typing import Any

from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, SequentialSampler

from lastiterate.adapters.opacus.steps import same
from lastiterate.errors import InvalidInput
from lastiterate.runs.batches import Batches, Cyclic, FullBatch, Poisson, Shuffled
from lastiterate.torch.loaders import in_passes, lists_ahead, passes_of
from lastiterate.torch.watched import LoaderWatch, unwatched, watch_batches


def batches_of(loader: DataLoader[Any]) -> Batches:
    """The batches that this loader deals, or a refusal."""
    dealer = dealer_of(loader)
    if type(dealer) is UniformWithReplacementSampler:
        if getattr(loader.collate_fn, "rand_on_empty", False):
            raise InvalidInput("opacus_rand_on_empty", field="rand_on_empty")
        return Poisson(dealer.num_samples, dealer.sample_rate)
    if type(dealer) is not BatchSampler:
        raise _unknown(dealer)
    sampler, size, records = dealer.sampler, dealer.batch_size, len(loader.dataset)
    if isinstance(sampler, DistributedSampler):
        repeated = max(sampler.total_size - len(sampler.dataset), 0)
        raise InvalidInput("opacus_sampler_distributed", field="loader", repeated=repeated)
    if type(sampler) not in (RandomSampler, SequentialSampler):
        raise _unknown(sampler)
    if not in_passes(sampler, records):
        raise InvalidInput("opacus_sampler_passes", field="loader", records=records, got=type(sampler).__name__)
    if size >= records and (size == records or not dealer.drop_last):
        return FullBatch(records)
    return passes_of(dealer, records)


def dealer_of(loader: DataLoader[Any]) -> Any:
    """What deals records to batches; of batches that a BatchMemoryManager cuts up, before they are."""
    dealer = getattr(loader, "batch_sampler", None)
    return unwatched(dealer.sampler if isinstance(dealer, BatchSplittingSampler) else dealer)


def check_batches(described: Batches, loader: DataLoader[Any]) -> None:
    """That this loader deals what the run describes, several of its batches to one step where gradients accumulate."""
    dealt = batches_of(loader)
    if not _deals(dealt, described):
        poisson = isinstance(described, Poisson), isinstance(dealt, Poisson)
        raise InvalidInput(
            "opacus_batches", field="batches", run=described.described, loader=dealt.described, poisson=poisson
        )


def watch_of(loader: DataLoader[Any], described: Batches) -> LoaderWatch:
    """Sees to it that each step uses the next batch of this loader, or the next few where gradients accumulate."""
    split = loader.batch_sampler if isinstance(loader.batch_sampler, BatchSplittingSampler) else None
    watched = watch_batches(loader, "batch_sampler") if split is None else watch_batches(split, "sampler")
    together = 1 if described.random else max(1, described.largest // getattr(watched, "batch_size", described.largest))
    return LoaderWatch(watched, described, together, lists_ahead(loader))


def _deals(dealt: Batches, described: Batches) -> bool:
    if dealt.records != described.records:
        return False
    if isinstance(dealt, Poisson):
        return isinstance(described, Poisson) and same(dealt.rate, described.rate)
    one_order = (
        isinstance(described, Shuffled) and not described.each_epoch
    )  # the file was shuffled once, its owner says
    kind = Cyclic if one_order else type(described)
    if type(dealt) is not kind or isinstance(dealt, FullBatch):
        return type(dealt) is kind
    together, rest = divmod(described.largest, dealt.largest)
    same_end = (dealt.uneven, dealt.last_size) == (described.uneven, described.last_size)
    return not rest and dealt.per_epoch == together * described.per_epoch and (together > 1 or same_end)


def _unknown(sampler: Any) -> InvalidInput:
    return InvalidInput("opacus_sampler_kind", field="loader", got=type(sampler).__name__)
