"""The problem that plans are tried on: a quadratic that stands for data nobody has looked at.

Its curvatures fade like 1/j over the features, and in its solution every direction has the same part. A wrong guess costs
accuracy, never privacy, because the noise of whatever is chosen is calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lastiterate.errors import Interval, Unavailable, checked_number
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.losses import Loss

_DIRECTIONS = 40


@dataclass(frozen=True)
class Guess:
    """Guess for a kind of loss and rows of norm about 1: its second derivative in a score; how far scores lie from 0;
    the noise that a weight bears before it does more harm than further steps do good; the longest steady step."""

    curvature: float
    score: float
    spread: float
    longest_step: float

    def for_rows_of(self, norm: float) -> Guess:
        """Return the guess for rows whose norm is about `norm`."""
        return Guess(self.curvature * norm**2, self.score / norm, self.spread / norm, self.longest_step / norm**2)


@dataclass(frozen=True)
class Problem:
    """Public numbers of data. `clip` bounds gradients if every step is paid for; `change` and `smoothness` are those of
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
        """Distance by which one record moves a sum of clipped gradients, at most."""
        return 2 * self.clip if self.replaces else self.clip

    def error(self, missing: Floats, variance: Floats) -> Floats:
        """The loss beyond the best, if so large a part of the solution is missing in each direction, and with this variance
        of a weight; directions are along the last axis."""
        curvatures, multiplicity = spectrum(self)
        square = np.square(self.guess.score * missing) + variance
        return np.asarray(self.columns / 2 * (square @ (multiplicity * curvatures)))


def spectrum(problem: Problem) -> tuple[Floats, Floats]:
    """Return curvatures that fall like 1/j over the features, and how many directions each stands for."""
    edges = np.unique(np.round(np.geomspace(1, problem.features + 1, _DIRECTIONS)))
    multiplicity = np.diff(edges)
    fading = 1 / np.sqrt(edges[:-1] * (edges[1:] - 1))
    shares = fading / np.sum(fading * multiplicity)
    return problem.guess.curvature * shares, multiplicity


def geometric(ratio: Floats, count: Floats) -> Floats:
    """Sum 1 + ratio + … of `count` terms."""
    near = 1 - ratio < 1e-12
    return np.where(near, count, (1 - ratio**count) / np.where(near, 1.0, 1 - ratio))


# Guesses about unseen data, for each kind of loss.


CLIP = 0.3  # of the norm of a row, or of the longest gradient: small clips do best, by what was tried on simulated problems
_LINEAR_CLIP = {"ridge": 0.25, "huber": 0.25}
_NORMS = Interval(1e-100, 1e100)  # beyond, squares of norms are no floats
PULL = 0.3  # of the softmax, where iterates are hidden


def columns_of(loss: Loss) -> int:
    """Number of columns of scores."""
    return int(loss.arguments.get("classes") or 1)


def clip_of(loss: Loss) -> float:
    """Clip of gradients if every iterate is accounted for; ∞ if nothing is known of them."""
    if loss.clip is not None:
        return loss.clip if isinstance(loss.clip, float) else max(loss.clip)
    unit = loss.gradient_bound if loss.feature_norm is None else loss.feature_norm
    return _LINEAR_CLIP.get(loss.kind, CLIP) * unit


def guess_of(loss: Loss) -> Guess:
    """Return the guess for a loss in its own units, with rows about as long as they may be."""
    if loss.kind in _GUESSES and loss.feature_norm is not None:
        checked_number("feature_norm", loss.feature_norm, _NORMS)
        return guess_for_scaled_rows(loss).for_rows_of(loss.feature_norm)
    return _of_facts(loss)


def guess_for_scaled_rows(loss: Loss) -> Guess:
    """Return the guess for a loss of scores and rows whose norm is about 1, whatever their bound is."""
    return _GUESSES[loss.kind](loss)


def _logistic(loss: Loss) -> Guess:
    return Guess(curvature=0.1, score=4.0 if columns_of(loss) == 1 else 2.0, spread=1.8, longest_step=600.0)


def _hinge(loss: Loss) -> Guess:
    return Guess(curvature=0.3 / loss.arguments["width"], score=2.0, spread=0.8, longest_step=600.0)


def _squares(loss: Loss) -> Guess:
    return Guess(curvature=1.0, score=0.5, spread=0.5, longest_step=20.0)


def _of_facts(loss: Loss) -> Guess:
    """Guess as for the logistic loss from smoothness and longest gradient; steps stay below 2/smoothness."""
    longest = min(loss.gradient_bound, loss.gradient_sensitivity, clip_of(loss))
    if not (math.isfinite(loss.smoothness) and loss.smoothness > 0 and math.isfinite(longest)):
        raise Unavailable("loss_not_planned", field="loss", kind=loss.kind)
    length = longest / loss.smoothness
    return Guess(0.4 * loss.smoothness, length, 0.45 * length, 20 / loss.smoothness)


_GUESSES: dict[str, Callable[[Loss], Guess]] = {
    "logistic": _logistic,
    "softmax": _logistic,
    "smooth_hinge": _hinge,
    "ridge": _squares,
    "huber": _squares,
}
