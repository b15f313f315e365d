"""The state of an accountant in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lastiterate.adapters.opacus.setup import Circumstances
from lastiterate.adapters.opacus.steps import same
from lastiterate.errors import POSITIVE, RATE, InvalidInput, checked_count, checked_number
from lastiterate.runs.batches import Poisson
from lastiterate.runs.files import run_from_dict, run_to_dict
from lastiterate.runs.noise import OnGradientSum
from lastiterate.runs.run import Run

Span = tuple[float, float, int]
"""Noise multiplier, sample rate, and so many steps: as Opacus' accountants write it."""


@dataclass(frozen=True)
class StepHistory:
    """The steps that were executed, and the circumstances."""

    spans: tuple[Span, ...] = ()
    steps: int = 0
    circumstances: Circumstances = field(default_factory=Circumstances)

    def with_step(self, multiplier: float, rate: float, circumstances: Circumstances) -> StepHistory:
        spans = self.spans
        if spans and spans[-1][:2] == (multiplier, rate):
            spans, count = spans[:-1], spans[-1][2] + 1
        else:
            count = 1
        return replace(
            self, spans=(*spans, (multiplier, rate, count)), steps=self.steps + 1, circumstances=circumstances
        )

    def state(self, run: Run) -> dict[str, Any]:
        """Return the history as `torch.save` and JSON can hold it."""
        return {
            "history": list(self.spans),
            "run": run_to_dict(run),
            "circumstances": asdict(self.circumstances),
        }


def history_from(state: Any, mechanism: str, run: Run) -> StepHistory:
    """Return the history in a saved state, or raise an error if it is not about this run."""
    if not isinstance(state, Mapping):
        raise InvalidInput("opacus_state_kind", got=type(state).__name__)
    for name in ("history", "mechanism", "run", "circumstances"):
        if name not in state:
            raise InvalidInput("opacus_state_entry", field=name)
    if state["mechanism"] != mechanism:
        raise InvalidInput("opacus_state_mechanism", field="mechanism", allowed=mechanism, got=f"{state['mechanism']}")
    if run_from_dict(state["run"]) != run:
        raise InvalidInput("opacus_state_run", field="run")
    try:
        circumstances = replace(Circumstances(**state["circumstances"]), resumed=True)
        spans = tuple(_span(*one) for one in state["history"])
    except TypeError as error:
        raise InvalidInput("opacus_state_malformed") from error
    return _continued(StepHistory(spans, sum(count for _, _, count in spans), circumstances), run)


def _continued(history: StepHistory, run: Run) -> StepHistory:
    """Return the history, or an error in the middle of an epoch: a new loader would use records twice."""
    if history.steps > run.steps:
        raise InvalidInput("opacus_state_steps", most=run.steps, got=f"{history.steps}")
    left = history.steps % run.batches.per_epoch
    if run.batches.passes and left:
        raise InvalidInput("opacus_state_mid_epoch", field="history", steps=left, per_epoch=run.batches.per_epoch)
    return history


def _span(multiplier: Any, rate: Any, count: Any) -> Span:
    return (
        checked_number("noise_multiplier", multiplier, POSITIVE),
        checked_number("sample_rate", rate, RATE),
        checked_count("steps", count),
    )


# Multipliers that Opacus tries: `get_noise_multiplier` sets an accountant's history, and asks for ε.


def check_rate(run: Run, rate: float) -> None:
    """Raise an error unless the sample rate is that of the run."""
    if not any(same(rate, allowed) for allowed in _rates(run)):
        raise InvalidInput("opacus_sample_rate", field="sample_rate", needed=_rates(run)[0], got=f"{rate:.9g}")


def planned_run(run: Run, history: Any) -> Run:
    """Return the whole run with the multiplier of a history that Opacus has set."""
    try:
        ((multiplier, rate, steps),) = history
    except (TypeError, ValueError) as error:
        raise InvalidInput("opacus_history_kind", field="history") from error
    check_rate(run, rate)
    if not _meant(run, rate, steps):
        raise InvalidInput("opacus_epochs", field="epochs", needed=run.steps, got=f"{steps}")
    return with_multiplier(run, multiplier)


def with_multiplier(run: Run, multiplier: float) -> Run:
    """Return the run with this multiplier at every step."""
    checked_number("noise_multiplier", multiplier, POSITIVE)
    noise = run.noise
    if not isinstance(noise, OnGradientSum) or not isinstance(noise.multiplier, float):
        raise InvalidInput("opacus_multiplier_per_step", field="noise_multiplier")
    return replace(run, noise=replace(noise, multiplier=float(multiplier)))


def _rates(run: Run) -> tuple[float, ...]:
    """Sample rates of the run; for Poisson batches also 1/⌊1/rate⌋, as Opacus' sampler makes ⌊1/rate⌋ steps."""
    if isinstance(run.batches, Poisson):
        return run.batches.rate, 1 / int(1 / run.batches.rate)
    return (1 / run.batches.per_epoch,)


def _meant(run: Run, rate: float, steps: int) -> bool:
    """Whether these are the run's steps as Opacus plans them, ⌊epochs/rate⌋ or one too few, or ⌊1/rate⌋ an epoch."""
    epochs = round(steps * rate)
    return run.steps in (steps, steps + 1, epochs * int(1 / rate))
