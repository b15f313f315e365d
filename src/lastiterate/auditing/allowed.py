"""What a run's own assumptions leave to an adversary: which losses, and how far the gradients of a batch may push."""

from __future__ import annotations

import math

from lastiterate.auditing.worst import WorstCase
from lastiterate.runs.per_step import extremes, spread
from lastiterate.runs.run import Run


def allowed_hessians(run: Run) -> tuple[float, float] | None:
    """The least and the greatest Hessian of quadratic losses whose steps do not move iterates apart; None if there is none.

    Where gradients are bounded the losses are linear. So they are in Poisson batches that are summed, each of another size.
    """
    loss, decay = run.loss, run.decay
    longest = extremes(spread("step_size", run.step_size, run.steps))[1]
    if math.isfinite(half_gradient(run)) or counted(run):
        linear = loss.curvature <= 0 <= loss.smoothness or clipped_flat(run)
        return (0.0, 0.0) if linear and longest * decay <= 2 else None
    low = max(loss.curvature, -decay)
    high = max(min(loss.smoothness, 1 / longest - decay), low)
    return (low, high) if longest * (low + decay) <= 2 else None


def counted(run: Run) -> bool:
    """Whether what the others do grows with their number, which is random."""
    return not run.batches.constant_size and not run.batches.own_mean


def empty_is_as_others(run: Run, hessian: float, record: float) -> bool:
    """Whether an empty batch, which moves nothing, does what a batch of others does."""
    return hessian == 0 and (record != 1 or math.isinf(half_gradient(run)))


def clipped_flat(run: Run) -> bool:
    """Whether strongly convex losses may have clipped gradients that are the same wherever iterates get.

    These are A·x + curvature·x²/2: with A large their gradient is clipped everywhere but far away. No record has the
    gradient 0 everywhere, so that the others push as hard as the record.
    """
    loss = run.loss
    if run.clip is None or loss.curvature <= 0 or math.isfinite(loss.gradient_bound) or counted(run):
        return False
    least, most = extremes(spread("clip", run.clip, run.steps))
    return least == most <= loss.gradient_sensitivity / 2


def losses_with(run: Run, hessian: float, **records: float | str) -> WorstCase:
    """The losses of an instance, and what its records do."""
    if clipped_flat(run):
        return WorstCase("clipped_losses", records)
    return WorstCase("quadratic_losses", {"hessian": hessian, **records})


def clipped_hessians(run: Run) -> tuple[float, float] | None:
    """The same where gradients are bounded, the record's is constant, and the others' is linear up to the bound."""
    loss, room = run.loss, half_gradient(run)
    if (
        math.isinf(room)
        or not run.batches.constant_size
        or run.batches.uneven
        or not math.isfinite(loss.smoothness)
        or run.batches.divisor < 2
    ):
        return None
    longest = extremes(spread("step_size", run.step_size, run.steps))[1]
    high = min(loss.smoothness, 1 / longest - run.decay)
    flat = loss.curvature <= 0 or clipped_flat(run)
    share = share_of_others(run)
    low = max(loss.curvature, share * loss.curvature)
    return (low, share * high) if flat and low < share * high else None


def share_of_others(run: Run) -> float:
    """Of a batch with the record."""
    return 1 - 1 / run.batches.divisor


def half_gradient(run: Run) -> float:
    """A number such that every record may have any gradient up to it, in either direction; ∞ if gradients have no bound."""
    bound = run.loss.gradient_bound
    if run.clip is not None:
        bound = min(bound, extremes(spread("clip", run.clip, run.steps))[0])
    return bound if math.isinf(bound) else min(bound, run.loss.gradient_sensitivity / 2)


def allowed_splits(run: Run) -> tuple[tuple[float, float], ...]:
    """How far record and neighbour push, beyond the others and in units of the sensitivity.

    Both in opposite directions; or one and not the other, if the others push as it does. In a Poisson batch these must
    not push at all, because their number would be seen, and a bounded gradient does not reach that far alone. A neighbour
    that contributes nothing does not push; where it is another record's place, that one may push against the record.
    """
    opposite, one_sided, against = (0.5, -0.5), (1.0, 0.0), (2.0, 1.0)
    if not run.adjacency.replaces:
        return (one_sided,) if counted(run) else (against,) if clipped_flat(run) else (one_sided, against)
    if clipped_flat(run):
        return (one_sided,)
    return (opposite,) if counted(run) and math.isfinite(half_gradient(run)) else (opposite, one_sided)


def curvature_may_change(run: Run) -> bool:
    """Whether quadratic losses whose Hessian is another one at each step are a limit of losses that the run allows.

    One fixed loss gets there if a second coordinate tells the time (docs/proofs.md, "A loss with a clock"). All records move
    that coordinate, without bound, and their loss is no loss of linear scores.
    """
    unbounded = math.isinf(half_gradient(run)) and math.isinf(run.domain.diameter) and run.domain.dimension != 1
    free = run.loss.model is None and run.prox is None and run.loss.curvature < run.loss.smoothness
    return unbounded and free and run.batches.constant_size and math.isfinite(run.loss.curvature)
