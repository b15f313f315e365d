"""What a run makes of its noisy gradients, as theorems see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lastiterate.facts import Fact, fact
from lastiterate.numerics.rounding import up
from lastiterate.runs.optimizers import PLAIN, Optimizer
from lastiterate.runs.per_step import extremes, is_constant
from lastiterate.runs.released import LAST, Released
from lastiterate.runs.smooth_push import hessians, not_smooth

if TYPE_CHECKING:
    from lastiterate.runs.quantities import Quantities

_LONGEST = (
    8.0  # half of step size times Hessians: to carry a push over one step costs far more than to pay for it at once
)
_ROUNDED = 2.0**-49  # of numbers around 1: what the middle may be off by


_PLAIN_STEPS = fact("plain_steps")


@dataclass(frozen=True)
class Update:
    """The optimiser and what is released.

    `curvature`: step size times Hessian, decay included, lies within the second number of the first; or why that
    is not known, or why the optimiser is no linear filter.
    """

    optimizer: Optimizer = PLAIN
    released: Released = LAST
    curvature: tuple[float, float] | Fact = _PLAIN_STEPS

    @property
    def plain(self) -> bool:
        """Whether each step is a gradient step with noise, and the last iterate is what is released."""
        return self.optimizer.plain and self.released.plain

    @property
    def described(self) -> str:
        return f"{self.optimizer.described}, with {self.released.called} released"


PLAIN_UPDATE = Update()


def update_of(given: Quantities) -> Update:
    """Of a run."""
    run = given.run
    if run.optimizer.plain and run.released.plain:
        return PLAIN_UPDATE
    return Update(run.optimizer, run.released, _curvature(given))


def _curvature(given: Quantities) -> tuple[float, float] | Fact:
    run = given.run
    if run.optimizer.linear is None:
        return fact("optimizer_not_linear", optimizer=run.optimizer.fact)
    if (reason := not_smooth(run)) is not None:
        return reason
    if not is_constant(given.step_sizes):
        return fact("step_size_changes")
    lowest, highest, _ = hessians(given)
    low, high = extremes(lowest)[0], extremes(highest)[1]
    size = float(given.step_sizes[0])
    middle, half = size * (run.decay + (low + high) / 2), size * (high - low) / 2
    if half > _LONGEST:
        return fact("step_size_gains_nothing", product=2 * half)
    return middle, up(half + _ROUNDED * (abs(middle) + half))
