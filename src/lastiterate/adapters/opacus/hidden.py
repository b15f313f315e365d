"""The rounding of hidden weights: bounded at every step beside the noise, and charged where that is little."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum, auto

import torch
from opacus.optimizers import DPOptimizer

from lastiterate.accounting.account import account, account_by
from lastiterate.accounting.report import Report
from lastiterate.adapters.opacus.steps import norm_of
from lastiterate.adapters.opacus.updates import executed_by
from lastiterate.runs.arithmetic import STRAYING, Arithmetic
from lastiterate.runs.optimizers import SGD
from lastiterate.runs.per_step import extremes
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import OF_EVERY_ITERATE
from lastiterate.theorems.evidence import About

_UNITS = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}
_LIMITS = {"float32": 1e-3, "float64": STRAYING}
_ROUNDINGS = 9  # of a step: noise and decay are added, it is divided, multiplied, added to the weights; some to spare
COARSEST = max(_LIMITS.values())


class Hiding(Enum):
    """What became of the guarantees that rely on hidden iterates."""

    UNUSED = auto()  # all iterates together are as good
    CHARGED = auto()  # the rounding of hidden weights is in ε
    ASSUMED = auto()  # it is little, but of other steps than plain ones no bound is known
    TOO_COARSE = auto()  # it is too much beside the noise, or was not seen: all iterates count


def limit_of(precision: str, straying: float) -> float | None:
    """What is charged if weights of this precision have strayed by so much, as mu; None for too much."""
    limit = _LIMITS.get(precision, 0.0)
    return limit if straying <= limit else None


def accounted(run: Run, delta: float, releases: Iterable[int], limit: float | None) -> tuple[Report, Hiding]:
    """The account of a run whose hidden weights strayed by at most `limit`, or by too much."""
    at, plain = (delta, tuple(releases)), run.process.update.plain
    if limit is not None and plain and _may_hide(run):
        charged = account(replace(run, arithmetic=Arithmetic(displacement=limit)), *at)
        if _hides(charged):
            return charged, Hiding.CHARGED
    report = account(run, *at)
    if not _hides(report):
        return report, Hiding.UNUSED
    if limit is not None and not plain:
        return report, Hiding.ASSUMED
    return account_by(OF_EVERY_ITERATE, run, *at), Hiding.TOO_COARSE


def _hides(report: Report) -> bool:
    return report.best.evidence.about is not About.EVERY_ITERATE


def _may_hide(run: Run) -> bool:
    """Whether any theorem could make use of hidden iterates: where steps may do anything to them, none can."""
    return isinstance(run.optimizer, SGD) and (math.isfinite(extremes(run.process.lipschitz)[1]) or run.decay > 0)


def precision_of(optimizer: DPOptimizer) -> torch.dtype:
    """Of the weights; the coarser where there are two."""
    return max((one.dtype for one in optimizer.params), key=lambda one: _UNITS[one])


def squared_straying(run: Run, optimizer: DPOptimizer, step: int, multiplier: float) -> float:
    """(e/ν)², where the weights after this step are off by at most e, and the next noise on the weights is ν.

    What is off in a hidden iterate moves the mean of the next Gaussian by that much, times the Lipschitz constant where the
    account uses one. At the step the noisy gradient is there, and the weights have not moved yet.
    """
    expansion = extremes(run.process.lipschitz)[1]
    executed = executed_by(optimizer.original_optimizer)
    if not _may_hide(run):
        return 0.0
    weights, decay, rate = norm_of(optimizer), executed.weight_decay or 0.0, executed.learning_rate or 0.0
    moved = rate * (_length(optimizer, "grad") + decay * weights + _length(optimizer, "momentum_buffer"))
    error = _UNITS[precision_of(optimizer)] * (weights + _ROUNDINGS * 2 * moved)
    noise = float(run.process.noise[min(step + 1, run.steps - 1)]) * multiplier / run.noise.at(step)
    return float((max(1.0, expansion if math.isfinite(expansion) else 1.0) * error / noise) ** 2)


def _length(optimizer: DPOptimizer, name: str) -> float:
    """Of the noisy gradient, or of what the optimiser remembers."""
    held = [one.grad if name == "grad" else optimizer.state.get(one, {}).get(name) for one in optimizer.params]
    return math.sqrt(sum(float(one.detach().double().square().sum()) for one in held if one is not None))
