"""How to train, chosen from what is public: the number of records and of features, ε, δ, the l2 term, the feature norm.

Every plan within reach is tried on a problem that is solved on paper, and the one with the least expected error wins: part
of the error is that training stops before it is done, part is the l2 term, part is noise. The problem is a quadratic with
the curvatures of features whose directions fade like 1/j, and a solution in which every direction has the same part. It is a
guess about data that was not looked at: a wrong one costs accuracy, never privacy, because the noise is calibrated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from lastiterate.algorithms.losses import Loss
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import shift_below

_BATCHES = (1, 2, 5, 10, 20, 50, 100)
# Of the largest step size that brings iterates together. Small ones are rewarded: earlier noise hides a record better.
_FRACTIONS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02)
_TURNING = 1.5  # times step size and smoothness is about what a step loses of what is prepaid
_FEWEST_IN_A_BATCH = 20
_DIRECTIONS = 40
_EPOCH_COUNTS = 25


@dataclass(frozen=True)
class Wishes:
    """What the user has fixed; None is left to choose."""

    batches: int | None = None
    epochs: int | None = None
    step_size: float | None = None
    l2: float | None = None
    most_epochs: int = 100


_NO_WISHES = Wishes()


@dataclass(frozen=True)
class Problem:
    """The facts of the loss without its l2 term, and two guesses: `score` is how far scores will lie from 0, `curvature` the
    second derivative of the loss there. `replaces`: whether the neighbour has another record, or none."""

    records: int
    features: int
    columns: int
    loss: Loss
    feature_norm: float
    curvature: float
    score: float
    replaces: bool = True


@dataclass(frozen=True)
class Plan:
    """`error`: the expected loss beyond the best, on the problem that stands for the data."""

    batches: int
    epochs: int
    step_size: float
    l2: float
    error: float


@dataclass(frozen=True, eq=False)
class _Plans:
    """Many plans, one entry each."""

    batches: Floats
    epochs: Floats
    step_size: Floats
    l2: Floats


@lru_cache(maxsize=256)
def chosen_plan(problem: Problem, epsilon: float, delta: float, wishes: Wishes = _NO_WISHES) -> Plan:
    """The plan with the least expected error."""
    plans = _within_reach(problem, wishes)
    errors = expected_errors(problem, float(shift_below(math.log(delta), epsilon)), plans)
    best = int(np.argmin(errors))
    return Plan(
        int(plans.batches[best]),
        int(plans.epochs[best]),
        float(plans.step_size[best]),
        float(plans.l2[best]),
        float(errors[best]),
    )


def _within_reach(problem: Problem, wishes: Wishes) -> _Plans:
    most = max(1, problem.records // _FEWEST_IN_A_BATCH)
    batches = [count for count in _BATCHES if count <= most] if wishes.batches is None else [wishes.batches]
    epochs = _epochs(wishes.most_epochs) if wishes.epochs is None else [wishes.epochs]
    fractions = _FRACTIONS if wishes.step_size is None else (1.0,)
    every = np.array(list(product(batches, epochs, fractions, _l2_terms(problem, wishes))), float).T
    largest = 2 / (problem.loss.smoothness + 2 * every[3]) if wishes.step_size is None else wishes.step_size
    return _Plans(every[0], every[1], every[2] * largest, every[3])


def _epochs(most: int) -> list[int]:
    return [int(count) for count in np.unique(np.round(np.geomspace(1, most, _EPOCH_COUNTS)))]


def _l2_terms(problem: Problem, wishes: Wishes) -> list[float]:
    if wishes.l2 is not None:
        return [wishes.l2]
    scale = problem.curvature * problem.feature_norm**2
    return [0.0, *(scale * 10.0**power for power in (-5, -4, -3, -2))]


def expected_errors(problem: Problem, mu: float, plans: _Plans) -> Floats:
    """The loss beyond the best that is expected of each plan, if its last iterate is to be μ-GDP."""
    contraction = np.maximum(1 - plans.step_size * plans.l2, 0.0)
    kept = np.maximum(contraction - _TURNING * plans.step_size * problem.loss.smoothness, 0.0)
    price = np.sqrt(prices(plans.batches, plans.epochs, contraction, kept))
    noise = _change(problem) * plans.batches / (problem.records * mu) * price
    curvatures, multiplicity = spectrum(problem)
    steps, size = (plans.batches * plans.epochs)[:, None], plans.step_size[:, None]
    total = curvatures + plans.l2[:, None]
    kept = np.clip(np.abs(1 - size * total), 0.0, 1.0)
    missing = (problem.score / problem.feature_norm) ** 2 * (1 - curvatures / total * (1 - kept**steps)) ** 2
    spread = (size * noise[:, None]) ** 2 * _geometric(kept**2, steps)
    return problem.columns / 2 * ((missing + spread) @ (multiplicity * curvatures))


def _change(problem: Problem) -> float:
    clip = problem.loss.clip if isinstance(problem.loss.clip, float) else math.inf
    if problem.replaces:
        return min(problem.loss.gradient_sensitivity, 2 * clip)
    return min(problem.loss.gradient_bound, clip)


def prices(batches: Floats, epochs: Floats, contraction: Floats, kept: Floats | float = 0.0) -> Floats:
    """μ² for one unit of sensitivity over noise: Bok2024 4.2 for full batches, 4.5 for cyclic ones, and their limits.

    The last turn of a record costs less than 1 if steps keep part of what is prepaid: 1/(1 + kept² + kept⁴ + …).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        c, epoch, last = contraction, contraction**batches, contraction ** (batches * (epochs - 1))
        cyclic = 1 + (epoch / c) ** 2 * (1 - c**2) / (1 - epoch) ** 2 * (1 - last) / (1 + last)
        full = (1 - c**epochs) / (1 + c**epochs) * (1 + c) / (1 - c)
    contracting = np.where(batches == 1, full, cyclic)
    found = np.where((c >= 1) | (epochs == 1), 1 + (epochs - 1) / batches, np.where(c > 0, contracting, 1.0))
    return found - np.where(batches > 1, 1 - 1 / _geometric(np.square(kept), batches), 0.0)


def spectrum(problem: Problem) -> tuple[Floats, Floats]:
    """Curvatures that fade like 1/j over the features, and how many directions each stands for."""
    edges = np.unique(np.round(np.geomspace(1, problem.features + 1, _DIRECTIONS)))
    multiplicity = np.diff(edges)
    fading = 1 / np.sqrt(edges[:-1] * (edges[1:] - 1))
    shares = fading / np.sum(fading * multiplicity)
    return problem.curvature * problem.feature_norm**2 * shares, multiplicity


def _geometric(ratio: Floats, count: Floats) -> Floats:
    """1 + ratio + … , so many terms."""
    near = 1 - ratio < 1e-12
    return np.where(near, count, (1 - ratio**count) / np.where(near, 1.0, 1 - ratio))
