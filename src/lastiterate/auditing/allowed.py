"""Losses and gradient pushes that a run's own assumptions leave to an adversary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lastiterate.errors import worded
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.tails import binomial_range
from lastiterate.runs.batches import RARE, Batches
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
    """Whether the move by the other records grows with their number, which is random."""
    return not run.batches.constant_size and not run.batches.own_mean


def empty_is_as_others(run: Run, hessian: float, record: float) -> bool:
    """Whether an empty batch, which moves nothing, has the same effect as a batch of other records."""
    return hessian == 0 and (record != 1 or math.isinf(half_gradient(run)))


def clipped_flat(run: Run) -> bool:
    """Whether strongly convex losses may have clipped gradients that are constant wherever iterates get.

    These are A·x + curvature·x²/2: with A large their gradient is clipped everywhere but far away. No record has the
    gradient 0 everywhere, so that the others push as hard as the record.
    """
    loss = run.loss
    if run.clip is None or loss.curvature <= 0 or math.isfinite(loss.gradient_bound) or counted(run):
        return False
    least, most = extremes(spread("clip", run.clip, run.steps))
    return least == most <= loss.gradient_sensitivity / 2


def losses_with(run: Run, hessian: float, **records: float | str) -> WorstCase:
    """Return the worst case with the losses of this Hessian and these records."""
    if clipped_flat(run):
        return WorstCase("clipped_losses", records)
    return WorstCase("quadratic_losses", {"hessian": hessian, **records})


def clipped_hessians(run: Run) -> tuple[float, float] | None:
    """Hessians for bounded gradients: the record's is constant, the others' are linear up to the bound."""
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
    """Share of a batch with the record that the other records make up."""
    return 1 - 1 / run.batches.divisor


def half_gradient(run: Run) -> float:
    """Norm up to which a record may have any gradient, in either direction; ∞ if gradients have no bound."""
    bound = run.loss.gradient_bound
    if run.clip is not None:
        bound = min(bound, extremes(spread("clip", run.clip, run.steps))[0])
    return bound if math.isinf(bound) else min(bound, run.loss.gradient_sensitivity / 2)


def allowed_splits(run: Run) -> tuple[tuple[float, float], ...]:
    """Pairs of pushes of record and neighbour beyond the others, in units of the sensitivity.

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
    """Whether quadratic losses with a Hessian that changes with the step are a limit of losses that are allowed.

    One fixed loss gets there if a second coordinate tells the time (docs/proofs.md, "A loss with a clock"). All records move
    that coordinate, without bound, and their loss is no loss of linear scores.
    """
    unbounded = math.isinf(half_gradient(run)) and math.isinf(run.domain.diameter) and run.domain.dimension != 1
    free = run.loss.model is None and run.prox is None and run.loss.curvature < run.loss.smoothness
    return unbounded and free and run.batches.constant_size and math.isfinite(run.loss.curvature)


# Worst cases as data; `report/messages` has their words.


@dataclass(frozen=True)
class WorstCase:
    """A loss and data that a run allows, by a code and its values; `str` describes it in English."""

    code: str
    values: Mapping[str, float | str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return worded(self.code, **self.values)

    def to_dict(self) -> dict[str, Any]:
        """The code with its values, for JSON."""
        return {"code": self.code, **self.values}


# Maximisation of a function of one number.


def greatest(function: Callable[[float], float], places: Sequence[float], most: int = 500) -> tuple[float, float]:
    """Return the greatest value, and its place, of a function at these places and near the best of them."""
    values = [function(place) for place in places]
    top = int(np.argmax(values))
    around = places[max(top - 1, 0)], places[min(top + 1, len(places) - 1)]
    if around[0] < around[1] and values[top] > 0:
        refined = minimize_scalar(
            lambda place: -function(place), bounds=around, method="bounded", options={"maxiter": most}
        )
        if -refined.fun > values[top]:
            return -float(refined.fun), float(refined.x)
    return values[top], places[top]


# Numbers of other records in a random batch.


Moves = tuple[Floats, Floats]  # lengths, and their probabilities


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of other records with their probabilities; with probability `left_out`, one of none of these."""

    numbers: Floats
    probabilities: Floats
    left_out: float = 0.0

    @property
    def never_empty(self) -> Counts:
        """Return the numbers without empty batches, whose probability is added to `left_out`."""
        if self.numbers[0] > 0:
            return self
        empty = float(self.probabilities[0])
        if len(self.numbers) == 1:
            return Counts(np.ones(1), np.ones(1), 1.0)
        return Counts(self.numbers[1:], self.probabilities[1:] / (1 - empty), self.left_out + empty)

    def always(self, move: float) -> Moves:
        return np.array([move]), np.ones(1)

    def summed(self, each: float, own: float) -> Moves:
        """Moves of the iterate if every other record moves it by `each` and the record by `own`."""
        return (self.numbers * each + own, self.probabilities) if each else self.always(own)

    def averaged(self, others: float, own: float) -> Moves:
        """Moves of a mean: `others`, plus what the record does beyond them over the batch size."""
        return others + own / (self.numbers + 1), self.probabilities

    def unless_empty(self, move: float) -> Moves:
        """Moves by `move`, or by nothing if the batch is empty."""
        if self.numbers[0] > 0 or move == 0:
            return self.always(move)
        empty = float(self.probabilities[0])
        return np.array([0.0, move]), np.array([empty, 1 - empty])


def counts_of(batches: Batches, rare: float = RARE) -> Counts:
    """Numbers of other records in a batch with or without the record, except those of probability below `rare`."""
    if batches.constant_size:
        return Counts(np.array([batches.divisor - 1]), np.ones(1))
    rate, others = float(batches.inclusion(1)[0]), batches.records - 1
    fewest, most = binomial_range(others, rate, math.log(rare))
    numbers = np.arange(fewest, most + 1, dtype=float)
    # From one number to the next, so that no error is that of a large logarithm.
    ratios = (others - numbers[:-1]) / numbers[1:] * (rate / (1 - rate)) if rate < 1 else np.ones(0)
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    found = np.exp(logs - logs.max())
    whole = fewest == 0 and most == others
    return Counts(numbers, found / found.sum(), 0.0 if whole else rare)
