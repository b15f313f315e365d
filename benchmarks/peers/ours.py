"""Our side of the comparison."""

from __future__ import annotations

from typing import Any

import lastiterate as li
from benchmarks.peers.settings import (
    CALIBRATION,
    DELTA,
    MULTIPLIER,
    RATE,
    SMALL_DELTA,
    SMALL_DELTA_TASK,
    STEPS,
    different_steps,
)
from benchmarks.timing import measured


def results(different: int) -> dict[str, dict[str, Any]]:
    """Task → value and CPU seconds; with 0 different steps, the quick tasks only."""
    table = {}
    for steps in STEPS:
        table[f"epsilon of {steps} steps"] = measured(
            lambda factor, steps=steps: _epsilon(steps, DELTA, factor), repeats=9
        )
    table[SMALL_DELTA_TASK] = measured(lambda factor: _epsilon(10_000, SMALL_DELTA, factor), repeats=9)
    if not different:
        return table
    for epsilon in CALIBRATION["epsilons"]:
        table[f"multiplier for epsilon {epsilon:g}"] = measured(
            lambda factor, epsilon=epsilon: _multiplier(epsilon * factor), repeats=5
        )
    table[f"epsilon of {different} different steps"] = measured(lambda factor: _different(different, factor), repeats=3)
    return table


def _epsilon(steps: int, delta: float, factor: float) -> float:
    return li.notions.subsampled_gaussian(mu=1 / (factor * MULTIPLIER), inclusion=RATE).compose(steps).epsilon(delta)


def _multiplier(epsilon: float) -> float:
    return 1 / li.notions.largest_mu(
        epsilon=epsilon, delta=DELTA, inclusion=CALIBRATION["rate"], times=CALIBRATION["steps"]
    )


def _different(count: int, factor: float) -> float:
    steps = [li.notions.subsampled_gaussian(mu=1 / (factor * z), inclusion=q) for z, q in different_steps(count)]
    return li.compose(steps).epsilon(DELTA)
