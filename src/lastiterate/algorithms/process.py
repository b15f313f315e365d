"""A run as theorems see it: everything on the iterate, one entry per step, no step size and no convention left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lastiterate.algorithms.batches import Batches
from lastiterate.algorithms.per_step import extremes, is_constant
from lastiterate.numerics.arrays import Floats


@dataclass(frozen=True, eq=False)
class Process:
    """X_t = Π(φ_t(X_{t−1}) + N(0, noise_t²)); the neighbour runs φ'_t.

    `sensitivity` bounds ‖φ_t − φ'_t‖ at a step that sees the record, `lipschitz` is a Lipschitz constant of both maps, and
    ‖φ_t(x) − φ'_t(y)‖ ≤ ‖x − y‖ + drift whatever the curvature (∞ where gradients are not bounded). A contracting
    proximal map is counted into its own step: it scales all four. `releases`: after so many steps the iterate is published,
    the end of the run left out.
    """

    batches: Batches
    sensitivity: Floats
    noise: Floats
    lipschitz: Floats
    drift: Floats
    diameter: float
    reason: str
    releases: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.noise)

    @property
    def inclusion(self) -> Floats:
        """For each step, how likely it is to see the record; for cyclic batches, a record that the last step sees."""
        return self.batches.inclusion(len(self))

    @property
    def constant(self) -> bool:
        """Whether all steps are alike."""
        return all(is_constant(values) for values in (self.sensitivity, self.noise, self.lipschitz))

    @property
    def step_mu(self) -> float:
        """sensitivity/noise of the first step, and of every other where all are alike."""
        return float(self.sensitivity[0]) / float(self.noise[0])

    @property
    def contraction(self) -> float:
        """The largest Lipschitz constant."""
        return extremes(self.lipschitz)[1]

    @property
    def segments(self) -> list[tuple[int, int]]:
        """From one released iterate to the next."""
        ends = (0, *self.releases, len(self))
        return list(pairwise(ends))
