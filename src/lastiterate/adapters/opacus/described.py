"""A training that was set up with Opacus, described as a run."""

from __future__ import annotations

import math
from typing import Any

from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, SequentialSampler

from lastiterate.adapters.opacus.steps import (
    check_setup,
    check_step,
    check_weights,
    divisor_of,
    executed_by,
    norm_of,
    same,
)
from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, ZERO_OUT, Adjacency
from lastiterate.errors import POSITIVE, InvalidInput, checked_count
from lastiterate.runs.batches import Batches, Cyclic, FullBatch, Poisson, Shuffled
from lastiterate.runs.domains import Unbounded
from lastiterate.runs.losses import Loss, network
from lastiterate.runs.noise import EXACT, OnGradientSum
from lastiterate.runs.per_step import checked_per_step, extremes, spread, times
from lastiterate.runs.run import Run, checked_run
from lastiterate.torch.sampling import LoaderWatch, in_passes, lists_ahead, passes_of, unwatched, watch_batches


def run_of(
    engine: PrivacyEngine,
    optimizer: DPOptimizer,
    loader: DataLoader[Any],
    *,
    epochs: int | None = None,
    steps: int | None = None,
    loss: Loss | None = None,
    adjacency: Adjacency | None = None,
    step_size: Any = None,
) -> Run:
    """The run that training for this many `epochs` or `steps` will execute, from what `make_private` returned.

    Call it before training. Batches come from the loader; noise, clip, update and weight decay from the optimiser. `loss`
    defaults to li.losses.network, which assumes nothing; a loss with more properties can give a smaller ε. The adjacency is
    li.ADD_OR_REMOVE_ONE with Poisson batches, else li.ZERO_OUT. `step_size` describes a scheduler, as li.cosine(0.1) or one
    number per step. Opacus divides gradient sums by ⌊records/batches⌋: if the run divides by another number, its step size
    and weight decay are scaled to match.
    """
    batches, executed = _seen(engine, optimizer, loader), executed_by(optimizer.original_optimizer)
    scale = batches.divisor / divisor_of(optimizer) if executed.scales else 1.0
    rates = _learning_rates(optimizer, executed.learning_rate, step_size)
    usual = ADD_OR_REMOVE_ONE if isinstance(batches, Poisson) else ZERO_OUT
    decay, known = (
        (executed.weight_decay or 0.0) / scale,
        network(clip=optimizer.max_grad_norm) if loss is None else loss,
    )
    run = covered(
        Run(
            loss=known,
            batches=batches,
            step_size=times(rates, scale) if scale != 1 else rates,
            noise=OnGradientSum(optimizer.noise_multiplier, optimizer.max_grad_norm),
            steps=_steps(loader, epochs, steps),
            domain=Unbounded(sum(one.numel() for one in optimizer.params)),
            weight_decay=0.0 if same(decay, known.l2) else decay,  # an l2 term of the loss is the same thing
            start_norm=norm_of(optimizer) if decay else 0.0,
            adjacency=usual if adjacency is None else adjacency,
            optimizer=executed.optimizer,
        )
    )
    if step_size is None:
        check_step(run, optimizer, 0)
    check_setup(run, optimizer)
    check_weights(run, optimizer, 0)
    return run


def _seen(engine: PrivacyEngine, optimizer: DPOptimizer, loader: DataLoader[Any]) -> Any:
    for name, value, kind in (
        ("engine", engine, PrivacyEngine),
        ("optimizer", optimizer, DPOptimizer),
        ("loader", loader, DataLoader),
    ):
        if not isinstance(value, kind):
            raise InvalidInput("opacus_setup_kind", field=name, allowed=kind.__name__, got=type(value).__name__)
    if engine.dataset is not None and engine.dataset is not loader.dataset:
        raise InvalidInput("opacus_other_loader", field="loader")
    if len(engine.accountant):
        raise InvalidInput("opacus_training_begun")
    return batches_of(loader)


def _learning_rates(optimizer: DPOptimizer, learning_rate: float | None, step_size: Any) -> Any:
    if step_size is not None:
        return checked_per_step("step_size", step_size, POSITIVE)
    if any("initial_lr" in group for group in optimizer.param_groups):
        raise InvalidInput("opacus_scheduler", field="step_size")
    return 1.0 if learning_rate is None else learning_rate  # of an optimiser that is only named, it says nothing


def _steps(loader: DataLoader[Any], epochs: int | None, steps: int | None) -> int:
    if (epochs is None) == (steps is None):
        raise InvalidInput("opacus_epochs_or_steps", field="epochs")
    if steps is not None:
        return checked_count("steps", steps)
    return checked_count("epochs", epochs) * len(dealer_of(loader))


# Runs that Opacus can execute.


_BATCHES = (Poisson, Shuffled, Cyclic, FullBatch)
_ROOM = 1e-5  # Opacus clips at max_grad_norm·norm/(norm + 1e-6), in single precision


def covered(run: Run) -> Run:
    """Return the run, or raise an error if Opacus could not have executed it."""
    checked_run(run)
    if not isinstance(run.noise, OnGradientSum):
        raise InvalidInput("opacus_noise_kind", field="noise", got=run.noise.described)
    if not isinstance(run.batches, _BATCHES):
        raise InvalidInput("opacus_batches_kind", field="batches", got=run.batches.called)
    if math.isfinite(run.domain.diameter) or run.prox is not None:
        raise InvalidInput("opacus_projection", field="domain" if run.prox is None else "prox")
    if run.arithmetic != EXACT:
        raise InvalidInput("opacus_arithmetic", field="arithmetic")
    _check_clipping(run)
    return run


def _check_clipping(run: Run) -> None:
    """Raise an error unless the run clips whole gradients, without a limit on the pull, as Opacus does."""
    if "pull" in run.loss.arguments:
        raise InvalidInput("opacus_pull", field="loss")
    by_class = run.loss.keeps_convexity and run.loss.arguments.get("classes") is not None
    shortest = extremes(spread("clip", run.clip or 0.0, run.steps))[0]
    if by_class and shortest * (1 - _ROOM) < run.loss.gradient_bound:
        raise InvalidInput("opacus_clip_per_class", field="loss", bound=run.loss.gradient_bound)


# Batches of a PyTorch loader, as a run describes them.


def batches_of(loader: DataLoader[Any]) -> Batches:
    """Return the batches that this loader deals, or raise an error if it is not known."""
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
    """Return the sampler that deals records to batches, before a BatchMemoryManager cuts them up."""
    dealer = getattr(loader, "batch_sampler", None)
    return unwatched(dealer.sampler if isinstance(dealer, BatchSplittingSampler) else dealer)


def check_batches(described: Batches, loader: DataLoader[Any]) -> None:
    """Raise an error unless the loader deals the run's batches, or parts of them if gradients accumulate."""
    dealt = batches_of(loader)
    if not _deals(dealt, described):
        poisson = isinstance(described, Poisson), isinstance(dealt, Poisson)
        raise InvalidInput(
            "opacus_batches", field="batches", run=described.described, loader=dealt.described, poisson=poisson
        )


def watch_of(loader: DataLoader[Any], described: Batches) -> LoaderWatch:
    """Return a watch that each step uses the next batch of this loader, or the next few."""
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
