"""How a record's push turns as the iterate moves: what prepayment has to know of a run, or why it does not apply.

At a turn the two runs differ by s·U(x). For smooth losses U is Lipschitz, and it sees the iterate through few directions if
the loss is one of scores that are linear in the weights: those of the record and of its neighbour.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import each, extremes

if TYPE_CHECKING:
    from lastiterate.runs.quantities import Quantities
    from lastiterate.runs.run import Run

_ROUNDED = 2.0**-49  # of numbers around 1: what the centre of a ball may be off by, and its radius
_UNCOUNTED = fact("dimension_unknown")


def smooth_push(given: Quantities) -> Smooth | Fact:
    """The facts, or the reason why there are none."""
    rank = _rank(given)
    reason = _missing(given, rank)
    if reason is not None or rank is None:
        return reason or _UNCOUNTED
    run = given.run
    low, high, turning = hessians(given)
    change, eta, decay = extremes(np.asarray(given.gradient_change))[0], given.step_sizes, given.run.decay
    middle, half = each(lambda a, b: (a + b) / 2, low, high), each(lambda a, b: (b - a) / 2, low, high)
    factor, share = run.arithmetic.factor, given.shares[1]
    return Smooth(
        center=each(lambda size, m: 1 - size * decay - size * m, eta, middle),
        radius=each(lambda size, m, h: size * h + _ROUNDED * (1 + size * (decay + abs(m) + h)), eta, middle, half),
        movement=each(lambda size, g, part: up(size * g * part * factor), eta, given.gradient_bound, share),
        decay=each(lambda size: np.minimum(up(size * decay), 1.0), eta),
        rough=each(lambda s: up(s * (factor - 1)), given.sensitivity),
        turning=up(turning / change),
        rank=rank,
        start=run.start_norm if decay else 0.0,
    )


def not_smooth(run: Run) -> Fact | None:
    """Why a step is no smooth map of the iterate before it, or not known to be."""
    if math.isfinite(run.domain.diameter):
        return fact("run_projects")
    if run.prox is not None:
        return fact("run_has_prox")
    if not math.isfinite(run.loss.smoothness):
        return fact("loss_not_smooth")
    return None


def _missing(given: Quantities, rank: int | None) -> Fact | None:
    run = given.run
    if (reason := not_smooth(run)) is not None:
        return reason
    if not math.isfinite(extremes(np.asarray(given.gradient_bound))[1]):
        return fact("gradients_unbounded")
    if run.clip is not None and not isinstance(run.clip, float):
        return fact("clip_changes")
    if rank is None:
        return _UNCOUNTED
    low, high, _ = hessians(given)
    largest = extremes(given.step_sizes)[1]
    if not largest * run.decay <= 1:
        return fact("decay_above_one", product=largest * run.decay)
    if not extremes(each(lambda a, b: 1 - largest * (run.decay + (a + b) / 2), low, high))[0] > 0:
        return fact("step_size_too_large", step_size=largest)
    return None


def hessians(given: Quantities) -> tuple[Floats, Floats, float]:
    """Between which the Hessian of a batch lies, without decay, and how fast what the record adds or changes may turn."""
    loss, clipped, (least, most) = given.run.loss, given.run.clip is not None, given.shares
    steepest, replaced = max(abs(loss.curvature), loss.smoothness), given.run.adjacency.replaces
    if clipped and not loss.keeps_convexity:
        ends = [each(np.multiply, most, side * steepest) for side in (-1, 1)]
        return ends[0], ends[1], 2 * steepest if replaced else steepest
    low = 0.0 if clipped else loss.curvature
    ends = [each(np.multiply, share, bound) for bound in (low, loss.smoothness) for share in (least, most)]
    lowest, highest = each(np.minimum, ends[0], ends[1]), each(np.maximum, ends[2], ends[3])
    return lowest, highest, loss.smoothness - low if replaced else steepest


def _rank(given: Quantities) -> int | None:
    """The record, and another in its place, each seen through its own scores; any other loss through all parameters."""
    model = given.run.loss.model
    directions = None if model is None else model.directions
    records = 2 if given.run.adjacency.replaces else 1
    return given.run.domain.dimension if directions is None else records * directions
