"""Random linear chains in the plane whose steps do not commute, with pushes in one direction: two Gaussians, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.tightness.prepaid_by_hand import Facts
from lastiterate.numerics.arrays import Floats

_CLIMBS = 60


@dataclass(frozen=True, eq=False)
class PlaneChain:
    """x ← (a symmetric matrix)·x + noise·N(0, I); eigenvalues between `lows` and `highs`, in directions that vary."""

    facts: Facts
    eigenvalues: Floats
    angles: Floats

    @property
    def mu(self) -> float:
        after, gap, covariance = np.eye(2), np.zeros(2), np.zeros((2, 2))
        for step in range(len(self.angles) - 1, -1, -1):
            gap += after[:, 0] * self.facts.pushes[step]
            covariance += self.facts.noise[step] ** 2 * after @ after.T
            across = np.array([math.cos(self.angles[step]), math.sin(self.angles[step])])
            low, high = self.eigenvalues[step]
            after = after @ (high * np.eye(2) + (low - high) * np.outer(across, across))
        return math.sqrt(float(gap @ np.linalg.solve(covariance, gap)))


def random_plane_chain(source: np.random.Generator) -> PlaneChain:
    """Then climbed: eigenvalues at either end of what is allowed and angles are changed wherever that shows more."""
    per_epoch, epochs = int(source.integers(1, 9)), int(source.integers(1, 5))
    count = per_epoch * epochs
    pushes = np.where(np.arange(count) % per_epoch == per_epoch - 1, 1.0, 0.0)
    noise = np.ones(count) if source.random() < 0.6 else 10 ** source.uniform(-0.5, 0.5, count)
    highs = np.full(count, source.choice([1.0, 0.98, 1.05]))
    lows = highs - 10 ** source.uniform(-2, -0.05, count if source.random() < 0.3 else 1)
    zero = np.zeros(count)
    facts = Facts(pushes, noise, (lows + highs) / 2, (highs - lows) / 2, highs, zero, zero, 0.0, 0.0)
    chain = PlaneChain(facts, np.stack([lows, highs], 1), source.uniform(0, math.pi, count))
    return _climbed(source, chain)


def _climbed(source: np.random.Generator, chain: PlaneChain) -> PlaneChain:
    best = chain.mu
    for _ in range(_CLIMBS):
        step = int(source.integers(len(chain.angles)))
        eigenvalues, angles = chain.eigenvalues.copy(), chain.angles.copy()
        ends = chain.facts.centre[step] - chain.facts.spread[step], chain.facts.highest[step]
        eigenvalues[step] = source.choice(ends, 2)
        angles[step] = source.choice([0.0, math.pi / 2, source.uniform(0, math.pi)])
        tried = PlaneChain(chain.facts, eigenvalues, angles)
        if (found := tried.mu) > best:
            chain, best = tried, found
    return chain
