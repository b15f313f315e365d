"""One step of Opacus beside the same step of the run: what differs is refused before the weights move."""

from __future__ import annotations

import math
from typing import Any

import torch
from opacus.optimizers import (
    AdaClipDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    DPPerLayerOptimizer,
    SimpleDistributedPerLayerOptimizer,
)

from lastiterate.adapters.opacus.updates import Executed, as_written, executed_by
from lastiterate.algorithms.optimizers import OtherOptimizer
from lastiterate.algorithms.per_step import at_step
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput, must_be

_PLAIN = (DPOptimizer, DPOptimizerFastGradientClipping)
_PER_LAYER = (DPPerLayerOptimizer, SimpleDistributedPerLayerOptimizer)
_PRECISIONS = (torch.float32, torch.float64)
_NINE_DIGITS = 1e-9


def check_setup(run: Run, optimizer: DPOptimizer) -> None:
    """What does not change during a training: how gradients are clipped, and what is made of them."""
    if isinstance(optimizer, _PER_LAYER):
        raise InvalidInput(
            'clipping must be "flat", one clip for the whole gradient of a record. Got clipping per layer.',
            field="clipping",
        )
    if isinstance(optimizer, AdaClipDPOptimizer) or hasattr(optimizer, "_adjusted_noise_multiplier"):
        raise InvalidInput(
            'clipping must be "flat": an adaptive clip depends on the data. Fix max_grad_norm before training.',
            field="clipping",
        )
    if type(optimizer) not in _PLAIN:
        raise must_be(
            "optimizer",
            "DPOptimizer, or the one for ghost clipping, in a single process",
            type(optimizer).__name__,
            called="the optimiser",
        )
    if isinstance(optimizer, DPOptimizerFastGradientClipping) and not isinstance(run.clip, float):
        raise InvalidInput(
            "clip must be constant with ghost clipping: a schedule would change the noise but not the clip.",
            field="clip",
        )
    executed = executed_by(optimizer.original_optimizer)
    if not _same_optimizer(executed, run):
        raise must_be(
            "optimizer",
            f"the run's, {run.optimizer.described}",
            f"{executed.optimizer.described}; use {as_written(executed.optimizer)} in the run",
            called="the optimiser",
        )


def check_step(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """That this optimiser, as it is now, makes the step of the run that is counted so from 0."""
    check_setup(run, optimizer)
    clip = at_step(run.clip or 0.0, step)
    if not same(optimizer.max_grad_norm, clip):
        raise _other("max_grad_norm", f"the clip of the run, {clip:g}", optimizer.max_grad_norm, step)
    _check_sizes(run, optimizer, step)


def check_multiplier(needed: float, multiplier: Any, step: int) -> None:
    """An error unless the noise of this step, counted from 0, has the multiplier that is needed."""
    if not same(multiplier, needed):
        raise _other("noise_multiplier", f"that of the run, {needed:g}", multiplier, step)


def _check_sizes(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """Learning rate, divisor and weight decay."""
    executed = executed_by(optimizer.original_optimizer)
    if executed.learning_rate is None or executed.weight_decay is None:
        return
    size, scale = at_step(run.step_size, step), scale_of(run, optimizer, executed)
    if not same(executed.learning_rate * scale, size):
        raise _other_step_size(run, optimizer, executed, size, step)
    if not same(executed.weight_decay, scale * run.decay):
        raise _other("weight_decay", f"{run.decay * scale:g}, as in the run", executed.weight_decay, step)


def scale_of(run: Run, optimizer: DPOptimizer, executed: Executed) -> float:
    """By what learning rates are multiplied to become step sizes of the run, whose sums are divided by another number.

    Opacus divides by ⌊records/batches⌋, runs by batch_size or rate·records. Where steps are not proportional to gradients
    (Adam), the division is part of what is computed from noisy gradients.
    """
    return run.batches.divisor / divisor_of(optimizer) if executed.scales else 1.0


def divisor_of(optimizer: DPOptimizer) -> float:
    if optimizer.loss_reduction == "sum":
        return 1.0
    return float(optimizer.expected_batch_size * _accumulated(optimizer))


def check_weights(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """Their precision; and at the first step their norm and number, where the account uses these."""
    weights = optimizer.params
    if precision := next((one.dtype for one in weights if one.dtype not in _PRECISIONS), None):
        raise must_be(
            "module",
            "in single or double precision",
            f"{precision}, whose rounding is not negligible",
            called="weights",
        )
    if step:
        return
    count, dimension = sum(one.numel() for one in weights), run.domain.dimension
    if dimension is not None and dimension != count:
        raise must_be("dimension", f"the number of weights, {count}", f"{dimension}")
    if run.decay > 0 and (norm := norm_of(optimizer)) > run.start_norm:
        raise must_be(
            "start_norm", f"at least the norm of the weights before training, {norm:.6g}", f"{run.start_norm:g}"
        )


def check_batch_size(run: Run, optimizer: DPOptimizer, step: int) -> None:
    """That the batch has as many records as the run says; of a batch that is cut up, only the last part is seen."""
    size, seen = run.batches.size_at(step), seen_records(optimizer)
    if seen is None or size is None:
        return
    if seen > size or (seen < size and not optimizer._is_last_step_skipped):
        raise _other("the batch", f"{size} records, as in the run", seen, step)


def seen_records(optimizer: DPOptimizer) -> int | None:
    """Records whose gradients the step has at hand."""
    first = optimizer.params[0]
    gradients = getattr(first, "grad_sample", None)
    if isinstance(gradients, list):
        return sum(map(len, gradients))
    found = getattr(first, "_norm_sample", None) if gradients is None else gradients  # ghost clipping keeps norms alone
    return None if found is None else len(found)


def norm_of(optimizer: DPOptimizer) -> float:
    """Of all weights; rounded up."""
    with torch.no_grad():
        squares = sum(float(one.double().square().sum()) for one in optimizer.params)
    return math.sqrt(squares) * (1 + _NINE_DIGITS)


def same(one: Any, two: float) -> bool:
    """To nine digits; anything but a number is different."""
    try:
        return math.isclose(float(one), two, rel_tol=_NINE_DIGITS)
    except (TypeError, ValueError):
        return False


def _same_optimizer(executed: Executed, run: Run) -> bool:
    if isinstance(executed.optimizer, OtherOptimizer) and isinstance(run.optimizer, OtherOptimizer):
        return executed.optimizer.name.lower() == run.optimizer.name.strip().lower()
    return executed.optimizer == run.optimizer


def _accumulated(optimizer: DPOptimizer) -> int:
    """Batches between two steps; before the first, one."""
    gradients = getattr(optimizer.params[0], "grad_sample", None)
    return len(gradients) if isinstance(gradients, list) else 1


def _other_step_size(run: Run, optimizer: DPOptimizer, executed: Executed, size: float, step: int) -> InvalidInput:
    rate = executed.learning_rate or 0.0
    if not same(rate, size) or not executed.scales:
        said = "" if scale_of(run, optimizer, executed) == 1 else ", divided as Opacus divides"
        return _other(
            "lr", f"{size / scale_of(run, optimizer, executed):.9g}, the step_size of the run{said}", rate, step
        )
    divides = (
        'loss_reduction="sum" divides by nothing'
        if optimizer.loss_reduction == "sum"
        else f"Opacus divides gradient sums by expected_batch_size = {divisor_of(optimizer):g}"
    )
    needed = rate * scale_of(run, optimizer, executed)
    return InvalidInput(
        f"{divides}, but the run divides by {run.batches.divisor:g}. For lr = {rate:g} use step_size = {needed!r} in the "
        "run, as li.adapters.opacus.run_of does.",
        field="step_size",
    )


def _other(name: str, needed: str, got: Any, step: int) -> InvalidInput:
    return must_be(name, f"{needed}, at step {step + 1}", f"{got}")
