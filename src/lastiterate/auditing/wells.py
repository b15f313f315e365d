"""Losses that are not convex: two wells, and a record that decides between them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from lastiterate.auditing.allowed import half_gradient
from lastiterate.auditing.gridded import chain_of, interval_width, refined, short_enough
from lastiterate.auditing.maps import Map
from lastiterate.auditing.quadratic import steps_of
from lastiterate.auditing.worst import WorstCase
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.run import Run

_REACH = 10.0  # standard deviations
_MOST_NOISES = 400  # that iterates may get apart


def two_wells(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """The others push away from the middle, as hard as they may; the record decides to which side."""
    loss, clip = run.loss, half_gradient(run)
    if run.clip is None or loss.keeps_convexity or loss.curvature >= 0 or run.prox is not None:
        return
    if not short_enough(run) or not run.batches.constant_size or loss.gradient_sensitivity < 2 * clip:
        return
    steps = steps_of(run, 0.0)
    if not steps.alike:
        return
    kept, share, noise = float(steps.factor[0]), 1 / run.batches.divisor, float(steps.noise[0])
    opposite = 2 if run.adjacency.replaces else 1  # times a record's own push: or from nothing
    move = float(steps.push[0]) / (opposite * share)
    half = _half_width(run, kept, move, noise)
    if half is None:
        return

    def away(x: Floats) -> Floats:
        if math.isinf(loss.curvature):
            return np.where(x >= 0, move, -move)
        return np.clip(-loss.curvature * x * move / clip, -move, move)

    def towards(side: float) -> Map:
        return lambda x: kept * x + (1 - share) * away(x) + share * side * move

    other = -1.0 if run.adjacency.replaces else 0.0
    chain = chain_of(run, (lambda x: kept * x + away(x), towards(1.0), towards(other)), half, steps.noise)
    yield refined(chain).least_epsilon(delta), WorstCase("two_wells")


def _half_width(run: Run, kept: float, move: float, noise: float) -> float | None:
    """Half of the domain, or how far iterates get without one."""
    if (width := interval_width(run)) is not None:
        return width / 2
    if abs(kept) < 1:
        return move / (1 - abs(kept)) + _REACH * noise / math.sqrt(1 - kept**2)
    far = run.steps * move + _REACH * noise * math.sqrt(run.steps)
    return far if kept == 1 and far < _MOST_NOISES * noise else None
