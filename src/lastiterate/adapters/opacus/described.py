"""A training that was set up with Opacus, described as a run."""

from __future__ import annotations

from typing import Any

from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader

from lastiterate.adapters.opacus.covered import covered
from lastiterate.adapters.opacus.loaders import batches_of, dealer_of
from lastiterate.adapters.opacus.steps import check_setup, check_step, check_weights, divisor_of, norm_of, same
from lastiterate.adapters.opacus.updates import executed_by
from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, ZERO_OUT, Adjacency
from lastiterate.errors import POSITIVE, InvalidInput, checked_count
from lastiterate.runs.batches import Poisson
from lastiterate.runs.domains import Unbounded
from lastiterate.runs.losses import Loss, network
from lastiterate.runs.noise import OnGradientSum
from lastiterate.runs.per_step import checked_per_step, times
from lastiterate.runs.run import Run


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
