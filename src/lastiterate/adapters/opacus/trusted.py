"""Table of everything that the accountant takes from Opacus and from the script.

Each entry is checked at every step, before the weights move. What nobody can check is a line of the report.
"""

from __future__ import annotations

from dataclasses import dataclass

from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping

from lastiterate.adapters.opacus.setup import Setup
from lastiterate.adapters.opacus.state import check_rate
from lastiterate.adapters.opacus.steps import check_batch_size, check_multiplier, check_step, check_weights
from lastiterate.errors import InvalidInput
from lastiterate.runs.run import Run
from lastiterate.torch.trusted import Trusted


@dataclass(frozen=True)
class SeenStep:
    """A step that Opacus is about to take, after `number` others.

    `setup` is None if the accountant was not attached by make_private; `multiplier` is the one that the step must have.
    """

    run: Run
    number: int
    optimizer: DPOptimizer
    first: DPOptimizer | None
    sample_rate: float
    multiplier: float
    setup: Setup | None


def _check_optimizer(step: SeenStep) -> None:
    known = [step.first, None if step.setup is None else step.setup.optimizer]
    if any(one is not None and one is not step.optimizer for one in known):
        raise InvalidInput("opacus_two_optimizers", field="optimizer")
    check_step(step.run, step.optimizer, step.number)


def _check_criterion(step: SeenStep) -> None:
    """Refuse ghost clipping if `make_private` was not seen, since nobody has looked at its gradients."""
    if step.setup is None and isinstance(step.optimizer, DPOptimizerFastGradientClipping):
        raise InvalidInput("opacus_ghost_unseen", field="criterion")


def _check_loader(step: SeenStep) -> None:
    if step.setup is not None:
        step.setup.new_pass = step.setup.batches.begins_pass
        step.setup.drawn = step.setup.batches.check(step.number)


def _check_batch(step: SeenStep) -> None:
    """Check the number of records of a batch: against those drawn, or, of an unseen loader, against the run."""
    if step.setup is None:
        check_batch_size(step.run, step.optimizer, step.number)
    elif step.setup.added != step.setup.drawn:
        drawn, got = step.setup.drawn, f"{step.setup.added}"
        raise InvalidInput("opacus_batch_records", field="batch", step=step.number + 1, drawn=drawn, got=got)


TRUSTED: tuple[Trusted, ...] = (
    Trusted(
        "sample rate",
        "opacus_trusted_rate",
        lambda step: check_rate(step.run, step.sample_rate),
    ),
    Trusted(
        "optimiser",
        "opacus_trusted_optimizer",
        _check_optimizer,
        ("steps_unseen",),
    ),
    Trusted(
        "weights",
        "opacus_trusted_weights",
        lambda step: check_weights(step.run, step.optimizer, step.number),
    ),
    Trusted(
        "criterion",
        "opacus_trusted_criterion",
        _check_criterion,
        ("criterion_reduction",),
    ),
    Trusted(
        "loader",
        "opacus_trusted_loader",
        _check_loader,
        ("loader_to_model", "loader_unseen"),
    ),
    Trusted(
        "batch",
        "opacus_trusted_batch",
        _check_batch,
    ),
    Trusted(
        "noise",
        "opacus_trusted_noise",
        lambda step: check_multiplier(step.multiplier, step.optimizer.noise_multiplier, step.number),
    ),
    Trusted(
        "state",
        "opacus_trusted_state",
        None,
        ("resumed_as_saved",),
    ),
    Trusted(
        "seeds",
        "opacus_trusted_seeds",
        None,
        ("generator_unpredictable",),
    ),
    Trusted(
        "collate function",
        "opacus_trusted_collate",
        None,
        ("collate_separate",),
    ),
    Trusted("arithmetic", "opacus_trusted_arithmetic", None, ("exact_arithmetic",)),
)
