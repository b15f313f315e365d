"""Everything that the accountant takes from Opacus and from the script, in one table.

Each entry is checked at every step, before the weights move. What nobody can check is a line of the report.
"""

from __future__ import annotations

from dataclasses import dataclass

from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping

from lastiterate.adapters.opacus.plan import check_rate
from lastiterate.adapters.opacus.setup import Setup
from lastiterate.adapters.opacus.steps import check_batch_size, check_multiplier, check_step, check_weights
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput
from lastiterate.torch.trusted import Trusted


@dataclass(frozen=True)
class SeenStep:
    """One step that Opacus is about to take: `number` steps were counted before it.

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
        raise InvalidInput(
            "an accountant must count one training only. Got steps of two optimisers; use one engine for each.",
            field="optimizer",
        )
    check_step(step.run, step.optimizer, step.number)


def _check_criterion(step: SeenStep) -> None:
    """Where `make_private` was seen, gradients were looked at whenever Opacus added them up."""
    if step.setup is None and isinstance(step.optimizer, DPOptimizerFastGradientClipping):
        raise InvalidInput(
            "ghost clipping must be set up by make_private, with this accountant in its engine: otherwise nothing shows "
            "that gradients were clipped.",
            field="criterion",
        )


def _check_loader(step: SeenStep) -> None:
    if step.setup is not None:
        step.setup.new_pass = step.setup.batches.begins_pass
        step.setup.drawn = step.setup.batches.check(step.number)


def _check_batch(step: SeenStep) -> None:
    """Of a loader that was not seen, the last part of a batch is compared with the run."""
    if step.setup is None:
        check_batch_size(step.run, step.optimizer, step.number)
    elif step.setup.added != step.setup.drawn:
        raise InvalidInput(
            f"step {step.number + 1} must use each of the {step.setup.drawn} records that the loader drew for it once. Got "
            f"{step.setup.added} records. Train with the loader that make_private returns.",
            field="batch",
        )


TRUSTED: tuple[Trusted, ...] = (
    Trusted(
        "sample rate",
        "1 / (steps per epoch) of the run, for all batches of a step together",
        lambda step: check_rate(step.run, step.sample_rate),
    ),
    Trusted(
        "optimiser",
        "one DPOptimizer in one process, flat clipping; update, learning rate, weight decay and clip of the run",
        _check_optimizer,
        ("steps_unseen",),
    ),
    Trusted(
        "weights",
        "single or double precision; at the first step also their number and norm, where the account uses them",
        lambda step: check_weights(step.run, step.optimizer, step.number),
    ),
    Trusted(
        "criterion",
        "with ghost clipping, all gradients come from the criterion that make_private returned, and nothing changes them",
        _check_criterion,
        ("criterion_reduction",),
    ),
    Trusted(
        "loader",
        "each step uses the next batch of the loader that make_private returned, and none is left out or used twice",
        _check_loader,
        ("loader_to_model", "loader_unseen"),
    ),
    Trusted(
        "batch",
        "gradients of as many records as the loader drew for the step, however they are split",
        _check_batch,
    ),
    Trusted(
        "noise",
        "the noise multiplier of the run, or the one that make_private_with_epsilon found",
        lambda step: check_multiplier(step.multiplier, step.optimizer.noise_multiplier, step.number),
    ),
    Trusted(
        "state",
        "loaded before the first step, with the weights and the optimiser that belong to it",
        None,
        ("resumed_as_saved",),
    ),
    Trusted(
        "seeds",
        "generators seeded by the operating system, before training, and not again",
        None,
        ("generator_unpredictable",),
    ),
    Trusted(
        "collate function",
        "what it makes of a record does not depend on the rest of the batch",
        None,
        ("collate_separate",),
    ),
    Trusted("arithmetic", "what rounding adds to gradients, sums and noise is negligible", None, ("exact_arithmetic",)),
)
