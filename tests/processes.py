"""Processes, straight from their numbers, and exact answers for them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import lastiterate as li
from lastiterate.facts import Fact
from lastiterate.kernel.steps import Steps
from lastiterate.runs.process import Process
from lastiterate.shift.optimise import best_schedule
from lastiterate.testing.draws import exact_mu_of_quadratics, process

__all__ = [
    "FULL",
    "RECORDS",
    "best_by_enumeration",
    "exact_mu_of_quadratics",
    "mu_with_turns",
    "process",
    "random_steps",
    "reasons",
    "steps_of",
    "stored_once",
]


def steps_of(sensitivity: Any, noise: Any, lipschitz: Any, diameter: float = math.inf) -> Steps:
    arrays = np.broadcast_arrays(*(np.asarray(value, float) for value in (sensitivity, noise, lipschitz)))
    return Steps(*(np.array(array) for array in arrays), diameter)


def reasons(theorem: li.theorems.Theorem, given: Process) -> tuple[Fact, ...]:
    """Why a theorem refuses a process, which it has to."""
    answer = theorem.apply(given)
    assert isinstance(answer, li.theorems.Inapplicable)
    return answer.reasons


def stored_once(steps: Steps) -> Steps:
    """Equal steps, one number for all of them."""
    values = (steps.sensitivity, steps.noise, steps.lipschitz)
    assert all((value == value[0]).all() for value in values)
    return Steps(*(np.broadcast_to(value[0], len(steps)) for value in values), steps.diameter)


def random_steps(source: np.random.Generator, count: int, bounded: bool) -> Steps:
    """A schedule with everything in it: absent records, factors 0, 1 and above, noise over three decades."""
    sensitivity = np.where(source.random(count) < 0.4, 0.0, 10 ** source.uniform(-2, 1, count))
    lipschitz = source.choice([0.0, 0.5, 1.0, 1.0, 1.3], count)
    lipschitz = np.where(source.random(count) < 0.5, lipschitz, lipschitz * source.random(count))
    noise = 10 ** source.uniform(-1.5, 1.5, count)
    return steps_of(sensitivity, noise, lipschitz, float(10 ** source.uniform(-1, 1)) if bounded else math.inf)


def mu_with_turns(given: Process, turns: list[int]) -> float:
    """Composed over the stretches between releases, on the steps as they are."""
    pushes = np.zeros(len(given))
    pushes[turns] = given.sensitivity[turns]
    whole = Steps(pushes, given.noise, given.lipschitz, given.diameter)
    parts = [best_schedule(whole.part(*ends))[0] for ends in given.stretches]
    return math.sqrt(math.fsum(mu**2 for mu in parts))


def best_by_enumeration(steps: Steps) -> float:
    """The least μ over every start and every partition into blocks that is feasible: exact, and only for a dozen steps.

    The optimum of the quadratic programme is one of these: blocks are where the constraint z = 0 is active.
    """
    best = _best_from(steps, 0, 0.0)
    if math.isfinite(steps.diameter):
        starts = range(1, len(steps))
        best = min([best, *(_best_from(steps, start, steps.diameter) for start in starts)])
    return math.sqrt(best)


def _best_from(steps: Steps, start: int, distance: float) -> float:
    tail = steps.part(start, len(steps))
    count, best = len(tail), math.inf
    for cuts in itertools.product((False, True), repeat=count - 1):
        ends = [*(place + 1 for place, cut in enumerate(cuts) if cut), count]
        best = min(best, _cost_of_blocks(tail, ends, distance))
    return best


def _cost_of_blocks(steps: Steps, ends: list[int], distance: float) -> float:
    cost, first = 0.0, 0
    for end in ends:
        products = np.array([float(np.prod(steps.lipschitz[place + 1 : end])) for place in range(first, end)])
        pushes = np.array(steps.sensitivity[first:end])
        pushes[0] += steps.lipschitz[first] * (distance if first == 0 else 0.0)
        owed, weight = float(pushes @ products), float(np.square(steps.noise[first:end] * products).sum())
        payments = owed / weight * np.square(steps.noise[first:end]) * products
        left = 0.0
        for place in range(end - first):
            left = (steps.lipschitz[first + place] * left if place else 0.0) + pushes[place] - payments[place]
            if left < -1e-9 * max(owed, 1.0):
                return math.inf
        cost += owed**2 / weight
        first = end
    return cost


RECORDS = 120
FULL = li.FullBatch(records=RECORDS)
