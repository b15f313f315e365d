"""Is a trainer about to do what the run says? Its steps, its records and its batches, as far as its loader tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

from lastiterate.errors import InvalidInput
from lastiterate.runs.batches import Turns
from lastiterate.runs.run import Run
from lastiterate.torch.sampler import BatchSampler, check_dataset

_RANDOM, _FIXED, _NO_PASSES = "random", "fixed", "no passes"
_ORDERS = {Turns.NEW_ORDERS: _RANDOM, Turns.ONE_ORDER: _FIXED, Turns.FIXED_ORDER: _FIXED}
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Planned:
    """So many steps, each of `accumulated` batches of the loader on `devices`."""

    steps: float
    loader: Any
    accumulated: int
    devices: int

    def check(self, run: Run) -> None:
        """An error, of one sentence, where this is not the run."""
        if self.steps != run.steps:
            raise InvalidInput("trainer_steps_differ", field="steps", steps=run.steps, planned=self.steps)
        check_dataset(getattr(self.loader, "dataset", None), run)
        sampler = _innermost(getattr(self.loader, "batch_sampler", None))
        if isinstance(sampler, BatchSampler):
            _check_own(sampler, run)
        elif hasattr(sampler, "sample_rate"):
            self._check_rate(sampler.sample_rate, run)
        elif (order := _order(getattr(sampler, "sampler", None))) is not None:
            self._check_passes(sampler, order, run)

    def _check_rate(self, rate: float, run: Run) -> None:
        """Of Opacus, which draws every record of a batch by itself."""
        declared = getattr(run.batches, "rate", None)
        if declared is None or abs(declared - rate) > _CLOSE * rate:
            raise InvalidInput("loader_rate_differs", field="batches", rate=rate, batches=run.batches.described)
        if self.accumulated > 1:
            raise InvalidInput("poisson_batches_accumulated", field="batches", accumulated=self.accumulated)

    def _check_passes(self, sampler: Any, order: str, run: Run) -> None:
        size, records = sampler.batch_size * self.accumulated * self.devices, run.batches.records
        if run.batches.turns is Turns.EVERY_STEP:
            matches = order in (_RANDOM, _FIXED) and size >= records
        else:
            matches = order == _ORDERS.get(run.batches.turns) and size == run.batches.largest
        if not matches:
            raise InvalidInput(
                "trainer_batches_differ",
                field="batches",
                batches=run.batches.described,
                size=sampler.batch_size,
                accumulated=self.accumulated,
                devices=self.devices,
                order=order,
            )
        if records % self.devices and not sampler.drop_last:
            raise InvalidInput("records_used_twice", field="batches", devices=self.devices, records=records)
        dropped = records % (sampler.batch_size * self.devices) if sampler.drop_last else 0
        dropped = records % (sampler.batch_size * self.devices) if sampler.drop_last else 0
        if dropped != (planned := records - _used(run)):
            raise InvalidInput("dropped_records_differ", field="batches", dropped=dropped, planned=planned)


def _order(sampler: Any) -> str | None:
    """In which passes over the data come; None for a sampler of the user's own, of which nothing is known."""
    if isinstance(sampler, DistributedSampler):
        return _RANDOM if sampler.shuffle else _FIXED
    if isinstance(sampler, RandomSampler):
        whole = not sampler.replacement and sampler.num_samples == len(sampler.data_source)
        return _RANDOM if whole else _NO_PASSES
    return _FIXED if isinstance(sampler, SequentialSampler) else None


def _innermost(sampler: Any) -> Any:
    """Accelerate wraps the sampler of a loader."""
    while hasattr(sampler, "batch_sampler"):
        sampler = sampler.batch_sampler
    return sampler


def _check_own(sampler: BatchSampler, run: Run) -> None:
    if sampler.run.batches != run.batches:
        raise InvalidInput(
            "sampler_batches_differ",
            field="batches",
            batches=run.batches.described,
            drawn=sampler.run.batches.described,
        )


def _used(run: Run) -> int:
    """Records in an epoch."""
    return (run.batches.per_epoch - 1) * run.batches.largest + run.batches.last_size
