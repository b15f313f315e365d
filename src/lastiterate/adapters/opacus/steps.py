"""Comparison of a step of Opacus with the same step of the run: a difference is refused before the weights move."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import torch
from opacus.optimizers import (
    AdaClipDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    DPPerLayerOptimizer,
    SimpleDistributedPerLayerOptimizer,
)

from lastiterate.errors import InvalidInput, must_be
from lastiterate.runs.optimizers import SGD, Optimizer, OtherOptimizer
from lastiterate.runs.per_step import at_step
from lastiterate.runs.run import Run
from lastiterate.torch.steps import optimizer_of_group

_PLAIN = (DPOptimizer, DPOptimizerFastGradientClipping)
_PER_LAYER = (DPPerLayerOptimizer, SimpleDistributedPerLayerOptimizer)
_PRECISIONS = (torch.float32, torch.float64)
_NINE_DIGITS = 1e-9


def check_setup(run: Run, optimizer: DPOptimizer) -> None:
    """Check what does not change during a training: how gradients are clipped, and what is made of them."""
    if isinstance(optimizer, _PER_LAYER):
        raise InvalidInput("opacus_clipping_per_layer", field="clipping")
    if isinstance(optimizer, AdaClipDPOptimizer) or hasattr(optimizer, "_adjusted_noise_multiplier"):
        raise InvalidInput("opacus_clipping_adaptive", field="clipping")
    if type(optimizer) not in _PLAIN:
        raise InvalidInput("opacus_optimizer_kind", field="optimizer", got=type(optimizer).__name__)
    if isinstance(optimizer, DPOptimizerFastGradientClipping) and not isinstance(run.clip, float):
        raise InvalidInput("opacus_ghost_clip_scheduled", field="clip")
    executed = executed_by(optimizer.original_optimizer)
    if not _same_optimizer(executed, run):
        raise InvalidInput(
            "opacus_optimizer",
            field="optimizer",
            allowed=run.optimizer.described,
            got=executed.optimizer.described,
            written=as_written(executed.optimizer),
        )


def check_step(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """Raise an error unless the optimiser makes the run's step of this number, counted from 0."""
    check_setup(run, optimizer)
    clip = at_step(run.clip or 0.0, step)
    if not same(optimizer.max_grad_norm, clip):
        got = f"{optimizer.max_grad_norm}"
        raise InvalidInput("opacus_clip", field="max_grad_norm", needed=clip, got=got, step=step + 1)
    _check_sizes(run, optimizer, step)


def check_multiplier(needed: float, multiplier: Any, step: int) -> None:
    """Raise an error unless the noise of this step, counted from 0, has the multiplier that is needed."""
    if not same(multiplier, needed):
        raise InvalidInput(
            "opacus_multiplier", field="noise_multiplier", needed=needed, got=f"{multiplier}", step=step + 1
        )


def _check_sizes(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """Raise an error unless learning rate, divisor and weight decay are those of the run."""
    executed = executed_by(optimizer.original_optimizer)
    if executed.learning_rate is None or executed.weight_decay is None:
        return
    size, scale = at_step(run.step_size, step), scale_of(run, optimizer, executed)
    if not same(executed.learning_rate * scale, size):
        raise _other_step_size(run, optimizer, executed, size, step)
    if not same(executed.weight_decay, scale * run.decay):
        got = f"{executed.weight_decay}"
        raise InvalidInput(
            "opacus_weight_decay", field="weight_decay", needed=run.decay * scale, got=got, step=step + 1
        )


def scale_of(run: Run, optimizer: DPOptimizer, executed: Executed) -> float:
    """Factor from learning rates to step sizes of the run, whose sums are divided by another number.

    Opacus divides by ⌊records/batches⌋, runs by batch_size or rate·records. Where steps are not proportional to gradients
    (Adam), the division is part of what is computed from noisy gradients.
    """
    return run.batches.divisor / divisor_of(optimizer) if executed.scales else 1.0


def divisor_of(optimizer: DPOptimizer) -> float:
    if optimizer.loss_reduction == "sum":
        return 1.0
    return float(optimizer.expected_batch_size * _accumulated(optimizer))


def check_weights(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """Check the weights' precision and, before the first step, their norm and number where the account uses these."""
    weights = optimizer.params
    if precision := next((one.dtype for one in weights if one.dtype not in _PRECISIONS), None):
        raise InvalidInput("opacus_precision", field="module", got=f"{precision}")
    if step:
        return
    count, dimension = sum(one.numel() for one in weights), run.domain.dimension
    if dimension is not None and dimension != count:
        raise must_be("dimension", f"the number of weights, {count}", f"{dimension}")
    if run.decay > 0 and (norm := norm_of(optimizer)) > run.start_norm:
        raise InvalidInput("opacus_start_norm", field="start_norm", needed=norm, got=f"{run.start_norm:g}")


def check_batch_size(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """Raise an error unless the batch is as large as the run says; of a cut batch only the last part is seen."""
    size, seen = run.batches.size_at(step), seen_records(optimizer)
    if seen is None or size is None:
        return
    if seen > size or (seen < size and not optimizer._is_last_step_skipped):
        raise InvalidInput("opacus_batch_size", field="the batch", needed=size, got=f"{seen}", step=step + 1)


def seen_records(optimizer: DPOptimizer) -> int | None:
    """Return the number of records whose gradients the step has at hand, or None if it is not known."""
    first = optimizer.params[0]
    gradients = getattr(first, "grad_sample", None)
    if isinstance(gradients, list):
        return sum(map(len, gradients))
    found = getattr(first, "_norm_sample", None) if gradients is None else gradients  # ghost clipping keeps norms alone
    return None if found is None else len(found)


def norm_of(optimizer: DPOptimizer) -> float:
    """Norm of all weights, rounded up."""
    with torch.no_grad():
        squares = sum(float(one.double().square().sum()) for one in optimizer.params)
    return math.sqrt(squares) * (1 + _NINE_DIGITS)


def same(one: Any, two: float) -> bool:
    """Whether two numbers agree to nine digits; anything but a number differs."""
    try:
        return math.isclose(float(one), two, rel_tol=_NINE_DIGITS)
    except (TypeError, ValueError):
        return False


def _same_optimizer(executed: Executed, run: Run) -> bool:
    if isinstance(executed.optimizer, OtherOptimizer) and isinstance(run.optimizer, OtherOptimizer):
        return executed.optimizer.name.lower() == run.optimizer.name.strip().lower()
    return executed.optimizer == run.optimizer


def _accumulated(optimizer: DPOptimizer) -> int:
    """Return the number of batches between two steps; before the first, one."""
    gradients = getattr(optimizer.params[0], "grad_sample", None)
    return len(gradients) if isinstance(gradients, list) else 1


def _other_step_size(run: Run, optimizer: DPOptimizer, executed: Executed, size: float, step: int) -> InvalidInput:
    rate, scale = executed.learning_rate or 0.0, scale_of(run, optimizer, executed)
    if not same(rate, size) or not executed.scales:
        return InvalidInput("opacus_lr", field="lr", size=size, scale=scale, got=f"{rate}", step=step + 1)
    return InvalidInput(
        "opacus_divisor",
        field="step_size",
        divisor=None if optimizer.loss_reduction == "sum" else divisor_of(optimizer),
        needed=run.batches.divisor,
        rate=rate,
        step_size=rate * scale,
    )


# PyTorch optimisers, as a run describes them.


@dataclass(frozen=True)
class Executed:
    """An optimiser and its numbers as they are now; without numbers if it is only known by name."""

    optimizer: Optimizer
    learning_rate: float | None = None
    weight_decay: float | None = None

    @property
    def scales(self) -> bool:
        """Whether steps are proportional to gradients, so that divisor and learning rate act as one number."""
        return isinstance(self.optimizer, SGD)


def executed_by(optimizer: torch.optim.Optimizer) -> Executed:
    """Return the optimiser as it is now: learning rates may change from step to step."""
    groups = {_group(optimizer, group) for group in optimizer.param_groups}
    if len(groups) > 1:
        return Executed(OtherOptimizer(f"{type(optimizer).__name__} with parameter groups"))
    return groups.pop()


def _group(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> Executed:
    found = optimizer_of_group(optimizer, group)
    if isinstance(found, SGD) and found.dampening:
        # PyTorch's first step is not dampened, li.SGD's is: as one more optimiser that is only named it is covered.
        found = OtherOptimizer("SGD with dampening")
    if isinstance(found, OtherOptimizer):
        return Executed(found)
    return Executed(found, float(group["lr"]), float(group["weight_decay"]))


def as_written(optimizer: Optimizer) -> str:
    """Return the optimiser as a run writes it."""
    if isinstance(optimizer, OtherOptimizer):
        return f"optimizer={optimizer.name!r}"
    given = {one.name: getattr(optimizer, one.name) for one in fields(optimizer)}  # type: ignore[arg-type]
    told = (f"{name}={value}" for name, value in given.items() if value != getattr(type(optimizer)(), name))
    return f"optimizer=li.{type(optimizer).__name__}({', '.join(told)})"
