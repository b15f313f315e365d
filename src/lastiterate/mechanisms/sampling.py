"""The exponential mechanism, and Langevin Monte Carlo, which takes a fixed number of steps towards it. (Bok2024, §5)

F is a potential that depends on the data; between neighbours F − F' is L-Lipschitz. The exponential mechanism draws from
e^{−F}; its guarantee needs m-strong convexity, or a convex F on a set of diameter D.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.accounting.report import Report
from lastiterate.curves.minimum import best
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import BoundedRange
from lastiterate.display import summary
from lastiterate.errors import FINITE, NON_NEGATIVE, POSITIVE, InvalidInput, checked_array, checked_number
from lastiterate.facts import Fact, fact
from lastiterate.mechanisms.additive import LEAST, checked_function, gaussian
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import up
from lastiterate.plots import draw_trace
from lastiterate.runs.batches import FullBatch
from lastiterate.runs.domains import Ball, Unbounded
from lastiterate.runs.losses import general
from lastiterate.runs.noise import STRAYING, Arithmetic, Langevin
from lastiterate.runs.run import Run
from lastiterate.training.checkpoint import State
from lastiterate.training.objectives import Objective
from lastiterate.training.steps import take_steps
from lastiterate.training.train import SEEDED, report_of

Gradient = Callable[[Floats], Floats]

TRACED = fact("trace_kept")
_SUMMED_BY_THE_USER = Arithmetic(1.0, STRAYING)


def exponential_mechanism(
    *, lipschitz: float, strong_convexity: float | None = None, diameter: float | None = None
) -> Notion:
    """The guarantee of one draw from e^{−F}: μ = L/√m if F is m-strongly convex. (Corollary 5.2)

    On a set of diameter D it is the better of two bounds at every δ: μ = 2√(LD) (Corollary 5.4), and a privacy loss in an
    interval of length LD, because F − F' varies by at most LD there, whether F is convex or not (docs/proofs.md).
    """
    change = checked_number("lipschitz", lipschitz, POSITIVE)
    found: list[Notion] = []
    if strong_convexity is not None:
        modulus = checked_number("strong_convexity", strong_convexity, POSITIVE)
        found.append(gaussian(change / math.sqrt(modulus)))
    if diameter is not None:
        width = checked_number("diameter", diameter, POSITIVE)
        found.append(gaussian(2 * math.sqrt(change) * math.sqrt(width)))
        found.append(BoundedRange(max(up(change * width), LEAST)))
    if not found:
        raise InvalidInput("exponential_unbounded")
    return found[0] if len(found) == 1 else best(found)


@dataclass(frozen=True, eq=False)
class Sample:
    """The last iterate of Langevin Monte Carlo, and its run. `private` is False after a seed or with a trace.

    Then `caveats` hold the reasons, and the report starts with them.
    """

    value: Floats
    run: Run
    caveats: tuple[Fact, ...] = ()
    trace: Floats | None = None

    def __repr__(self) -> str:
        return summary(self, *map(str, self.caveats[:1]), f"value of shape {self.value.shape}", repr(self.run))

    @property
    def private(self) -> bool:
        return not self.caveats

    def report(self, delta: float) -> Report:
        """The privacy report for releasing the last iterate only."""
        return report_of(self.run, delta, (), self.caveats)

    def plot(self, path: Any = None, *, ax: Any = None) -> Any:
        """Plot the trace of every coordinate; for public or synthetic data only. Returns matplotlib axes."""
        if self.trace is None:
            raise InvalidInput("trace_not_kept")
        return draw_trace(self.trace, path, ax)


def langevin(
    gradient: Gradient,
    start: Any,
    *,
    lipschitz: float,
    step_size: float,
    steps: int,
    smoothness: float,
    strong_convexity: float = 0.0,
    radius: float | None = None,
    seed: int | None = None,
    trace: bool = False,
) -> Sample:
    """Run x ← x − step_size·∇F(x) + √(2·step_size)·N(0, 1) `steps` times; with `radius`, project onto this ball around 0.

    Replacing a record must change the gradient by at most `lipschitz`. Neither the number of steps nor the start may depend
    on the data; a start outside the ball is projected. With strong_convexity = 0, the default, F is assumed to be convex.
    """
    checked_function("gradient", gradient)
    checked_number("step_size", step_size, POSITIVE)
    checked_number("lipschitz", lipschitz, POSITIVE)
    checked_number("smoothness", smoothness, NON_NEGATIVE)
    loss = general(smoothness=smoothness, strong_convexity=strong_convexity, gradient_sensitivity=lipschitz)
    domain = Unbounded() if radius is None else Ball(radius=radius)
    run = Run(loss, FullBatch(records=1), step_size, Langevin(std=1.0), steps, domain, arithmetic=_SUMMED_BY_THE_USER)
    source, first = Source(seed), domain.projected(np.array(checked_array("start", start, FINITE), float))
    kept = [first]
    state = State(0, first, randomness=source.state())
    last = take_steps(run, _Potential(gradient), state, source, (), watch=kept.append if trace else None)
    caveats = (() if source.private else (SEEDED,)) + ((TRACED,) if trace else ())
    return Sample(last.weights, run, caveats, np.stack(kept) if trace else None)


@dataclass(frozen=True, eq=False)
class _Potential(Objective):
    """Objective with the user's own gradient of all records together."""

    gradient: Gradient

    @property
    def precision(self) -> Any:
        return np.float64

    def arithmetic(self, run: Run, parameters: int) -> Arithmetic:
        return _SUMMED_BY_THE_USER

    def gradient_sum(self, weights: Floats, chosen: Indices, clip: float | None) -> Floats:
        try:
            found = np.array(self.gradient(weights.copy()), float)  # a new one, whatever the user keeps
        except (TypeError, ValueError) as error:
            raise InvalidInput("gradient_raised", field="gradient", shape=weights.shape, error=str(error)) from error
        if found.shape != weights.shape or not np.isfinite(found).all():
            raise InvalidInput("gradient_shape", field="gradient", got=f"{found.shape}", shape=weights.shape)
        return found
