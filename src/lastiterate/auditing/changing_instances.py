"""Instances whose steps are linear with slopes that change over time, where one loss with a clock may come close to them.

All weights within the slopes that are allowed give a lower bound; which are best need not be believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from lastiterate.auditing.allowed import allowed_splits, curvature_may_change
from lastiterate.auditing.linear_instances import as_known, epsilon_of, orders, pushing
from lastiterate.auditing.quadratic import QuadraticSteps, steps_of, weights_of
from lastiterate.auditing.search import greatest
from lastiterate.auditing.sums import Pushed
from lastiterate.auditing.worst import WorstCase
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.run import Run
from lastiterate.shift.slopes import best_slopes

_MOST_STEPS = 50_000
_MOST_ORDERED = 10_000  # of random orders, whose sums take longer
_KEPT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
_SEARCH = 8


def best_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """For batches that are not random: no analysis that knows only pushes, noise and Lipschitz constants can prove less."""
    steps = _steps(run)
    if steps is None or not as_known(run.batches):
        return
    lowest, highest = steps
    pushes = highest.push * run.batches.inclusion(run.steps)
    ends = (0, *releases, run.steps)
    parts = [slice(*part) for part in pairwise(ends)]
    squares = [_square(pushes[at], highest.noise[at], lowest.factor[at], highest.factor[at]) for at in parts]
    # Every slope is rounded, and may be an ulp outside.
    yield (
        epsilon_of(run, math.sqrt(math.fsum(squares)) * (1 - 1e-12 - 1e-15 * run.steps), delta),
        WorstCase("changing_curvature"),
    )


def _square(pushes: Floats, noise: Floats, lowest: Floats, highest: Floats) -> float:
    """μ² of the chain with the best slopes."""
    weights = best_slopes(pushes, noise, lowest, highest)
    if not weights.any():
        return 0.0
    weights = weights / weights.max()
    return float(np.sum(pushes * weights)) ** 2 / float(np.sum(np.square(noise * weights)))


def last_step_apart(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """For random orders: of what came before the last step, its noise too, a part is forgotten as fast as may be.

    With the last place out of many the record is seen as if alone, in the earlier epochs as in a sum.
    """
    steps = _steps(run)
    if steps is None or not run.batches.shuffled or as_known(run.batches) or run.steps > _MOST_ORDERED:
        return
    *_, split = allowed_splits(run)

    def epsilon(kept: float) -> float:
        weights = weights_of(_dropping(steps[0].factor, steps[1].factor, kept))
        deviation = math.sqrt(float(np.sum(np.square(weights * steps[1].noise))))
        return Pushed(orders(weights * steps[1].push, run.batches, deviation), *split).epsilon(delta)

    found, kept = greatest(epsilon, _KEPT, _SEARCH)
    yield found, WorstCase("changing_curvature", {"pushing": pushing(*split), "kept": kept})


def _dropping(lowest: Floats, highest: Floats, kept: float) -> Floats:
    """As high as may be, but for the last slopes, which are as low as it takes to keep so much."""
    found, left = highest.copy(), kept
    for step in range(len(found) - 1, 0, -1):
        if left >= found[step]:
            break
        found[step] = max(lowest[step], left)
        left = left / found[step] if left > 0 else 0.0
    return found


def _steps(run: Run) -> tuple[QuadraticSteps, QuadraticSteps] | None:
    """The steps with the lowest slopes, not below 0, and with the highest."""
    if run.steps > _MOST_STEPS or not curvature_may_change(run):
        return None
    lowest, highest = steps_of(run, run.loss.smoothness), steps_of(run, run.loss.curvature)
    if highest.factor.min() <= 0:
        return None
    return QuadraticSteps(np.maximum(lowest.factor, 0.0), lowest.push, lowest.noise), highest
