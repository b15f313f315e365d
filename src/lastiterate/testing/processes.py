"""Processes, straight from their numbers, and the quadratic losses on which they are known exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.facts import own
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Batches, Turns
from lastiterate.runs.process import Process


def spread(value: Any, steps: int) -> Floats:
    return np.broadcast_to(np.asarray(value, float), steps)


def process(
    batches: Batches,
    steps: int,
    sensitivity: Any = 1.0,
    noise: Any = 1.0,
    lipschitz: Any = 1.0,
    diameter: float = math.inf,
    drift: Any = math.inf,
    releases: tuple[int, ...] = (),
    retain: Any = 1.0,
    dimension: int | None = None,
) -> Process:
    per_step = (sensitivity, noise, lipschitz, drift, retain, sensitivity)
    push, spreads, factor, drifts, retained, sampled = (spread(value, steps) for value in per_step)
    reason = own("the test")
    return Process(batches, push, spreads, factor, drifts, retained, sampled, diameter, reason, releases, dimension)


def exact_mu_of_quadratics(given: Process) -> float:
    """φ(x) = L·x, φ'(x) = L·x + s, every step: two Gaussians, whose means drift apart as their variance grows.

    After a release both start again from the same point. In a fixed order, the record whose place is the worst.
    """
    every = given.batches.per_epoch if given.batches.turns is Turns.FIXED_ORDER else 1
    turns = [np.arange(len(given)) % every == place for place in range(min(every, len(given)))]
    return max(_mu_of_turns(given, given.sensitivity * seen) for seen in turns)


def _mu_of_turns(given: Process, pushes: Floats) -> float:
    squares = 0.0
    for first, last in given.stretches:
        gap, variance = 0.0, 0.0
        for place in range(first, last):
            factor = float(given.lipschitz[place])
            gap = factor * gap + float(pushes[place])
            variance = factor**2 * variance + float(given.noise[place]) ** 2
        squares += gap**2 / variance
    return math.sqrt(squares)
