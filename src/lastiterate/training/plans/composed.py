"""Steps that are all paid for: gradients clipped as one vector, momentum, and the mean of the second half of the iterates.

With full batches the noise that enters the weights does not depend on the number of steps, only on (step size)·(steps): as
long as the steps are short, more of them cost nothing but time. So that product is fixed, by what was learnt on simulated
problems of many spectra (`benchmarks.accuracy.simulated`), and the steps are as many as one can afford.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.training.plans.plan import MOST_PASSES, Plan, Way, Wishes
from lastiterate.training.plans.problem import Problem, spectrum

MOMENTUM = 0.9
_BATCHES = (5, 10, 20, 50, 100)
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_FEWEST_IN_A_BATCH = 50
_FEW_PASSES = 50  # with more, full batches take steps enough, and are accounted for at once


def full_batches(problem: Problem, wishes: Wishes) -> Plan | None:
    """Return the plan with full batches, or None if the user wants smaller ones."""
    if wishes.batches not in (None, 1) or not math.isfinite(problem.clip):
        return None
    epochs = min(wishes.most_epochs, MOST_PASSES) if wishes.epochs is None else wishes.epochs
    return _plan(problem, wishes, Way.FULL, 1, epochs, math.sqrt(epochs) / problem.mu)


def sampled_batches(problem: Problem, wishes: Wishes) -> Plan | None:
    """Return the best plan with random batches, for few passes; its noise is by the central limit theorem."""
    if wishes.batches is not None or wishes.most_epochs > _FEW_PASSES or not math.isfinite(problem.clip):
        return None
    sizes = [count for count in _BATCHES if problem.records >= count * _FEWEST_IN_A_BATCH]
    plans = [
        _plan(
            problem, wishes, Way.SAMPLED, count, wishes.most_epochs, _multiplier(problem.mu, count, wishes.most_epochs)
        )
        for count in sizes
    ]
    return min(plans, key=lambda plan: plan.error, default=None)


def _multiplier(mu: float, batches: int, epochs: int) -> float:
    """Noise multiplier of epochs in which a record is in each batch with probability 1/batches."""
    return 1 / math.sqrt(math.log1p(mu**2 * batches / epochs))


def _plan(problem: Problem, wishes: Wishes, way: Way, batches: int, epochs: int, multiplier: float) -> Plan:
    """Return a plan with this noise on a sum relative to the change by one record (`multiplier`).

    The step is the one that was learnt; the error is that of the best step on the problem, as for every other way.
    """
    steps = batches * epochs
    noise = multiplier * problem.clipped_change * batches / problem.records
    averaged, l2 = -(-steps // 2), wishes.l2 or 0.0
    step = _step_size(problem, noise, steps) if wishes.step_size is None else wishes.step_size
    plan = Plan(way, batches, epochs, step, l2, MOMENTUM, averaged, noise, math.nan)
    return replace(plan, error=error_with(problem, plan, noise, factors_of(wishes)))


def factors_of(wishes: Wishes) -> tuple[float, ...]:
    """Factors of the step size that are tried on the problem."""
    return _FACTORS if wishes.step_size is None else (1.0,)


def error_with(problem: Problem, plan: Plan, noise: float, factors: Sequence[float] = _FACTORS) -> float:
    """Error on the problem with this noise on the mean gradient and the best of these factors of the step size."""
    whole, tried = math.hypot(noise, _sampling(problem, plan.batches)), np.array(factors) * plan.step_size
    return float(_errors(problem, tried, whole, plan.steps, plan.averaged, plan.l2).min())


def _sampling(problem: Problem, batches: int) -> float:
    """Standard deviation of a weight's gradient over the draw of a batch, if records' gradients point anywhere."""
    return problem.clip * math.sqrt((batches - 1) / (problem.records * problem.features))


def _step_size(problem: Problem, noise: float, steps: int) -> float:
    """Step size at which the noise of all steps is what a weight bears and steps stay steady."""
    borne = problem.guess.spread / (noise * math.sqrt(steps))
    return (1 - MOMENTUM) * min(borne, problem.guess.longest_step)


def _errors(problem: Problem, sizes: Floats, noise: float, steps: int, averaged: int, l2: float) -> Floats:
    """Error on the problem for each step size."""
    curvatures, _ = spectrum(problem)
    response = _responses(curvatures + l2, sizes[:, None], steps, averaged)
    reached = np.clip(-curvatures * response.sum(axis=0), 0.0, 2.0)
    return problem.error(1 - reached, np.square(noise) * np.square(response).sum(axis=0))


def _responses(curvatures: Floats, size: Floats, steps: int, averaged: int) -> Floats:
    """Effect of a unit in each step's gradient on the mean of the last iterates, per step size and curvature.

    Where steps are too long for a curvature they are taken for as long as they may be: clipping bounds what they do.
    """
    bounded = np.minimum(curvatures, 1.9 * (1 + MOMENTUM) / size)
    moved = np.zeros((steps + 1, *bounded.shape))  # the sum of what an impulse does to the iterates after it
    place, velocity = np.zeros(bounded.shape), np.ones(bounded.shape)
    for later in range(steps):
        place = place - size * velocity
        velocity = MOMENTUM * velocity + bounded * place
        moved[later + 1] = moved[later] + place
    before = np.concatenate([np.zeros((averaged, *bounded.shape)), moved[1 : steps + 1 - averaged]])
    return (moved[1:] - before) / averaged
