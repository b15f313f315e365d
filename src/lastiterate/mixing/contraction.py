"""Hockey-stick contraction by Gaussian noise on a bounded state: linear (Asoodeh2023), and the exact curve (Balle2019).

With θ = θ_ε(r), r the diameter of what the noise is added to, over the noise: two laws at hockey-stick distance x are at
most x·θ apart after the noise, and at most g(x) = x·θ_{ε(x)}(r), ε(x) = log(1 + (e^ε − 1)/x), which is never more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.conversions import log_expm1
from lastiterate.curves.notion import Notion
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.roots import FARTHEST, decreasing_root
from lastiterate.numerics.rounding import down, up

# Of the logarithms of two numbers, to a relative 1e-12: 690 at most, over 2⁵⁰; fewer are looser, never wrong.
_HALVINGS = 50
# A distance below it counts as this, before it is multiplied: the logarithm of 0 is not a number to work with.
_TINY = 1e-300
_MOST_STEPS = 100  # beyond, the fixed point takes less time, and loses what so many steps have not reached yet


def linear_contraction(epsilons: Floats, ratio: float, rate: float, steps: int) -> Floats:
    """p·θ·(1 − ((1−p)θ)^T)/(1 − (1−p)θ): δ_t = (1 − p)·θ·δ_{t−1} + p·θ from δ_0 = 0."""
    theta = np.exp(log_gap_above(epsilons, ratio))
    lost = rate * theta + (1 - theta)  # 1 − (1 − p)·θ, without rounding a small p away
    if not steps:
        return np.zeros_like(epsilons)
    with np.errstate(divide="ignore"):
        terms = -np.expm1(steps * np.log1p(-lost)) / lost
    return np.minimum(up(rate * theta * terms), 1.0)


def contracted(distances: Floats, epsilons: Floats, ratio: float) -> Floats:
    """g(x): the exact curve; convex and increasing in x, g(0) = 0."""
    # In logarithms, in which neither ε nor x has a limit; rounded down, as a smaller ε(x) has a larger θ.
    lifted = down(np.logaddexp(0.0, log_expm1(epsilons) - np.log(np.maximum(distances, _TINY))))
    return np.minimum(up(distances * np.exp(log_gap_above(lifted, ratio))), 1.0)


def curved_contraction(epsilons: Floats, ratio: float, rate: float, steps: int) -> Floats:
    """δ_t = (1 − p)·g(δ_{t−1}) + p·g(1) from δ_0 = 0; of many steps, the fixed point, which bounds them all."""

    fresh = contracted(np.ones_like(epsilons), epsilons, ratio)

    def after(distances: Floats) -> Floats:
        return _after(distances, epsilons, ratio, rate, fresh)

    if steps <= _MOST_STEPS:
        reached = np.zeros_like(epsilons)
        for _ in range(steps):
            reached = after(reached)
        return reached
    return _fixed_point(after, np.ones_like(epsilons))


@dataclass(frozen=True, eq=False)
class CurvedContraction(Notion):
    """The guarantee of so many steps, each with this inclusion and ratio."""

    ratio: float
    rate: float
    steps: int
    adjacency: Adjacency = REPLACE_ONE

    def _log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(curved_contraction(epsilons, self.ratio, self.rate, self.steps))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        """Where δ is not raised by a step, it bounds any number of them: no fixed point has to be found."""
        deltas = down(np.exp(log_deltas), operations=500)

        def raised(epsilons: Floats) -> Floats:
            fresh = contracted(np.ones_like(epsilons), epsilons, self.ratio)
            return _after(deltas, epsilons, self.ratio, self.rate, fresh) - deltas

        high = np.ones_like(deltas)
        while (short := (raised(high) > 0) & (high < FARTHEST)).any():
            high = np.where(short, 2 * high, high)
        for_ever = decreasing_root(raised, np.zeros_like(high), high)
        if self.steps > _MOST_STEPS:
            return np.where(raised(for_ever) <= 0, for_ever, np.inf)
        if (raised(for_ever) > 0).any():
            return super()._epsilon(log_deltas)

        def lacking(epsilons: Floats) -> Floats:
            return self._log_delta(epsilons) - log_deltas

        return decreasing_root(lacking, np.zeros_like(high), for_ever)


def _after(distances: Floats, epsilons: Floats, ratio: float, rate: float, fresh: Floats) -> Floats:
    """What a step makes of these distances; `fresh`, of two states that may be anything."""
    return np.minimum(up((1 - rate) * contracted(distances, epsilons, ratio) + rate * fresh), 1.0)


def _fixed_point(after, high: Floats) -> Floats:  # type: ignore[no-untyped-def]
    """A point that the map does not raise: the map is convex and above the identity at 0, so there is one crossing."""
    low = after(np.zeros_like(high))
    for _ in range(_HALVINGS):
        middle = np.sqrt(low) * np.sqrt(high)
        falls = after(middle) <= middle
        low, high = np.where(falls, low, middle), np.where(falls, middle, high)
    return high
