"""The problem that plans are tried on: a quadratic that stands for data nobody has looked at.

Its curvatures fade like 1/j over the features, and in its solution every direction has the same part. A wrong guess costs
accuracy, never privacy, because the noise of whatever is chosen is calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lastiterate.numerics.arrays import Floats

_DIRECTIONS = 40


@dataclass(frozen=True)
class Guess:
    """Of a kind of loss, for rows whose norm is about 1: its second derivative in a score; how far scores lie from 0;
    the noise that a weight bears before it does more harm than further steps do good; the longest steady step."""

    curvature: float
    score: float
    spread: float
    longest_step: float

    def for_rows_of(self, norm: float) -> Guess:
        """The same, for rows whose norm is about this."""
        return Guess(self.curvature * norm**2, self.score / norm, self.spread / norm, self.longest_step / norm**2)


@dataclass(frozen=True)
class Problem:
    """Public numbers. `clip` is where gradients are cut if every step is paid for; `change` and `smoothness` are those of
    the convex loss that hidden steps take. `mu` is what may be spent; `replaces`, whether the neighbour has another record
    or none."""

    records: int
    features: int
    columns: int
    mu: float
    replaces: bool
    guess: Guess
    clip: float
    change: float
    smoothness: float

    @property
    def clipped_change(self) -> float:
        """How far one record moves a sum of clipped gradients."""
        return 2 * self.clip if self.replaces else self.clip

    def error(self, missing: Floats, variance: Floats) -> Floats:
        """The loss beyond the best, if so large a part of the solution is missing in each direction, and with this variance
        of a weight; directions are along the last axis."""
        curvatures, multiplicity = spectrum(self)
        square = np.square(self.guess.score * missing) + variance
        return np.asarray(self.columns / 2 * (square @ (multiplicity * curvatures)))


def spectrum(problem: Problem) -> tuple[Floats, Floats]:
    """Curvatures that fade like 1/j over the features, and how many directions each stands for."""
    edges = np.unique(np.round(np.geomspace(1, problem.features + 1, _DIRECTIONS)))
    multiplicity = np.diff(edges)
    fading = 1 / np.sqrt(edges[:-1] * (edges[1:] - 1))
    shares = fading / np.sum(fading * multiplicity)
    return problem.guess.curvature * shares, multiplicity


def geometric(ratio: Floats, count: Floats) -> Floats:
    """1 + ratio + … , so many terms."""
    near = 1 - ratio < 1e-12
    return np.where(near, count, (1 - ratio**count) / np.where(near, 1.0, 1 - ratio))
