"""Multipliers that Opacus tries out: `get_noise_multiplier` sets the history of an accountant, and asks for ε."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lastiterate.adapters.opacus.steps import same
from lastiterate.algorithms.batches import Poisson
from lastiterate.algorithms.noise import OnGradientSum
from lastiterate.algorithms.run import Run
from lastiterate.errors import POSITIVE, InvalidInput, checked_number, must_be


def check_rate(run: Run, rate: float) -> None:
    """That a step is one of so many in an epoch as in the run."""
    if not any(same(rate, allowed) for allowed in _rates(run)):
        raise must_be(
            "sample_rate",
            f"1 / (steps per epoch), which is {_rates(run)[0]:.9g} in the run",
            f"{rate:.9g}",
            "Check the batch size, the number of records, and how many batches are accumulated in one step.",
        )


def planned_run(run: Run, history: Any) -> Run:
    """The whole run with the multiplier of such a history."""
    try:
        ((multiplier, rate, steps),) = history
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "history must be [(noise_multiplier, sample_rate, steps)], to try a noise multiplier. Use step or "
            "load_state_dict for executed steps.",
            field="history",
        ) from error
    check_rate(run, rate)
    if not _meant(run, rate, steps):
        raise InvalidInput(
            f"epochs must give the {run.steps} steps of the run. Got {steps} steps.",
            field="epochs",
        )
    return with_multiplier(run, multiplier)


def with_multiplier(run: Run, multiplier: float) -> Run:
    """The same run with this multiplier at every step."""
    checked_number("noise_multiplier", multiplier, POSITIVE)
    noise = run.noise
    if not isinstance(noise, OnGradientSum) or not isinstance(noise.multiplier, float):
        raise InvalidInput(
            "noise multipliers can be tried only if all steps have the same. Got a run with one per step.",
            field="noise_multiplier",
        )
    return replace(run, noise=replace(noise, multiplier=float(multiplier)))


def _rates(run: Run) -> tuple[float, ...]:
    """With Poisson batches also that of ⌊1/rate⌋ steps: Opacus' sampler makes so many, and rounding may take one away."""
    if isinstance(run.batches, Poisson):
        return run.batches.rate, 1 / int(1 / run.batches.rate)
    return (1 / run.batches.per_epoch,)


def _meant(run: Run, rate: float, steps: int) -> bool:
    """Opacus plans ⌊epochs/rate⌋ steps, one too few where rounding takes it away; its sampler makes ⌊1/rate⌋ in an epoch."""
    epochs = round(steps * rate)
    return run.steps in (steps, steps + 1, epochs * int(1 / rate))
