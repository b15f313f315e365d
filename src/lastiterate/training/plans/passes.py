"""Passes over the data in a random order, of which only the last iterate leaves.

What is not paid for hides the rest: the noise that a target needs is known in closed form for every number of batches and
epochs (Bok2024 4.5), and earlier noise hides, too. On a quadratic so is the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.training.plans.plan import Plan, Way, Wishes
from lastiterate.training.plans.problem import Problem, geometric, spectrum

_BATCHES = (2, 5, 10, 20, 50, 100)
# Of the largest step size that brings iterates together. Small ones are rewarded: earlier noise hides a record better.
_FRACTIONS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02)
_TURNING = 1.5  # times step size and smoothness is about what a step loses of what is prepaid
_FEWEST_IN_A_BATCH = 20
_EPOCH_COUNTS = 25


@dataclass(frozen=True, eq=False)
class ManyPlans:
    """Many plans, as arrays with one entry each."""

    batches: Floats
    epochs: Floats
    step_size: Floats
    l2: Floats


def hidden_passes(problem: Problem, wishes: Wishes) -> Plan | None:
    """Return the best plan in hidden passes, or None if the user wants full batches or records are too few."""
    plans = _within_reach(problem, wishes)
    if wishes.batches == 1 or not plans.batches.size or not math.isfinite(problem.smoothness * problem.change):
        return None
    noise = _noise(problem, plans)
    errors = _errors(problem, plans, noise)
    best = int(np.argmin(errors))
    numbers = int(plans.batches[best]), int(plans.epochs[best]), float(plans.step_size[best]), float(plans.l2[best])
    return Plan(Way.PASSES, *numbers, momentum=0.0, averaged=1, noise=float(noise[best]), error=float(errors[best]))


def error_with(problem: Problem, plan: Plan, noise: float, factors: Sequence[float] = (1.0,)) -> float:
    """Error on the problem with this noise on the mean gradient and the best of these factors of the step size."""
    every = [(plan.batches, plan.epochs, plan.step_size * factor, plan.l2) for factor in factors]
    return float(_errors(problem, ManyPlans(*np.array(every, float).T), np.full(len(every), noise)).min())


def _within_reach(problem: Problem, wishes: Wishes) -> ManyPlans:
    most = problem.records // _FEWEST_IN_A_BATCH
    batches = [count for count in _BATCHES if count <= most] if wishes.batches is None else [wishes.batches]
    epochs = _epochs(wishes.passes) if wishes.epochs is None else [wishes.epochs]
    fractions = _FRACTIONS if wishes.step_size is None else (1.0,)
    every = np.array(list(product(batches, epochs, fractions, _l2_terms(problem, wishes))), float).reshape(-1, 4).T
    largest = 2 / (problem.smoothness + 2 * every[3]) if wishes.step_size is None else wishes.step_size
    return ManyPlans(every[0], every[1], every[2] * largest, every[3])


def _epochs(most: int) -> list[int]:
    return [int(count) for count in np.unique(np.round(np.geomspace(1, most, _EPOCH_COUNTS)))]


def _l2_terms(problem: Problem, wishes: Wishes) -> list[float]:
    if wishes.l2 is not None:
        return [wishes.l2]
    return [0.0, *(problem.guess.curvature * 10.0**power for power in (-5, -4, -3, -2))]


def _noise(problem: Problem, plans: ManyPlans) -> Floats:
    """Noise on the mean gradient that the budget asks for."""
    contraction = np.maximum(1 - plans.step_size * plans.l2, 0.0)
    kept = np.maximum(contraction - _TURNING * plans.step_size * problem.smoothness, 0.0)
    price = np.sqrt(prices(plans.batches, plans.epochs, contraction, kept))
    return np.asarray(problem.change * plans.batches / (problem.records * problem.mu) * price)


def _errors(problem: Problem, plans: ManyPlans, noise: Floats) -> Floats:
    """Expected excess loss of each plan."""
    curvatures, _ = spectrum(problem)
    steps, size = (plans.batches * plans.epochs)[:, None], plans.step_size[:, None]
    total = curvatures + plans.l2[:, None]
    left = np.clip(np.abs(1 - size * total), 0.0, 1.0)
    missing = 1 - curvatures / total * (1 - left**steps)
    return problem.error(missing, (size * noise[:, None]) ** 2 * geometric(left**2, steps))


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
    return found - np.where(batches > 1, 1 - 1 / geometric(np.square(kept), batches), 0.0)
