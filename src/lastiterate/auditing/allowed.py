"""What a run's own assumptions leave to an adversary: which losses, and how far the gradients of a batch may push."""

from __future__ import annotations

import math

from lastiterate.algorithms.per_step import extremes, spread
from lastiterate.algorithms.run import Run


def allowed_hessians(run: Run) -> tuple[float, float] | None:
    """The least and the greatest Hessian of quadratic losses whose steps do not move iterates apart; None if there is none.

    Where gradients are bounded the losses are linear. So they are with Poisson batches, of which each has another size.
    """
    loss, decay = run.loss, run.decay
    longest = extremes(spread("step_size", run.step_size, run.steps))[1]
    if math.isfinite(half_gradient(run)) or not run.batches.constant_size:
        return (0.0, 0.0) if loss.curvature <= 0 <= loss.smoothness and longest * decay <= 2 else None
    low = max(loss.curvature, -decay)
    high = max(min(loss.smoothness, 1 / longest - decay), low)
    return (low, high) if longest * (low + decay) <= 2 else None


def half_gradient(run: Run) -> float:
    """A number such that every record may have any gradient up to it, in either direction; ∞ if gradients have no bound."""
    bound = run.loss.gradient_bound
    if run.clip is not None:
        bound = min(bound, extremes(spread("clip", run.clip, run.steps))[0])
    return bound if math.isinf(bound) else min(bound, run.loss.gradient_sensitivity / 2)


def allowed_splits(run: Run) -> tuple[tuple[float, float], ...]:
    """How far record and neighbour push, beyond the others and in units of the sensitivity.

    Both in opposite directions; or one and not the other, if the others push as it does. In a Poisson batch these must
    not push at all, because their number would be seen, and a bounded gradient does not reach that far alone.
    """
    opposite, one_sided = (0.5, -0.5), (1.0, 0.0)
    if not run.batches.constant_size and not run.batches.own_mean and math.isfinite(half_gradient(run)):
        return (opposite,)
    return opposite, one_sided


def curvature_may_change(run: Run) -> bool:
    """Whether quadratic losses whose Hessian is another one at each step are a limit of losses that the run allows.

    One fixed loss gets there if a second coordinate tells the time (docs/proofs.md, "A loss with a clock"). All records move
    that coordinate, without bound, and their loss is no loss of linear scores.
    """
    unbounded = math.isinf(half_gradient(run)) and math.isinf(run.domain.diameter) and run.domain.dimension != 1
    free = run.loss.model is None and run.prox is None and run.loss.curvature < run.loss.smoothness
    return unbounded and free and run.batches.constant_size and math.isfinite(run.loss.curvature)
