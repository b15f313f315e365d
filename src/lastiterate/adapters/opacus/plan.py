"""Multipliers that Opacus tries out: `get_noise_multiplier` sets the history of an accountant, and asks for ε."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lastiterate.adapters.opacus.steps import same
from lastiterate.errors import POSITIVE, InvalidInput, checked_number
from lastiterate.runs.batches import Poisson
from lastiterate.runs.noise import OnGradientSum
from lastiterate.runs.run import Run


def check_rate(run: Run, rate: float) -> None:
    """That a step is one of so many in an epoch as in the run."""
    if not any(same(rate, allowed) for allowed in _rates(run)):
        raise InvalidInput("opacus_sample_rate", field="sample_rate", needed=_rates(run)[0], got=f"{rate:.9g}")


def planned_run(run: Run, history: Any) -> Run:
    """The whole run with the multiplier of such a history."""
    try:
        ((multiplier, rate, steps),) = history
    except (TypeError, ValueError) as error:
        raise InvalidInput("opacus_history_kind", field="history") from error
    check_rate(run, rate)
    if not _meant(run, rate, steps):
        raise InvalidInput("opacus_epochs", field="epochs", needed=run.steps, got=f"{steps}")
    return with_multiplier(run, multiplier)


def with_multiplier(run: Run, multiplier: float) -> Run:
    """The same run with this multiplier at every step."""
    checked_number("noise_multiplier", multiplier, POSITIVE)
    noise = run.noise
    if not isinstance(noise, OnGradientSum) or not isinstance(noise.multiplier, float):
        raise InvalidInput("opacus_multiplier_per_step", field="noise_multiplier")
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
