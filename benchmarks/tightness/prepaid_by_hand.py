"""What prepayment proves of a run, written out once more from its statement, beside the library and for plain arrays.

A certificate is b (prepaid, against the push that comes) and rho (what is left to pay), both ≥ 0 and 0 at either end. With
q = spread + centre·gamma the payments are a = max(0, |centre·b − push − b'| + q·b + highest·rho − rho'), b and rho before
the step, b' and rho' after it, and δ(ε) ≤ θ_ε(μ) + failure with μ² = Σ (a/noise)².
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

import lastiterate as li
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.prepay import best_slopes

GUESSES = 12


@dataclass(frozen=True, eq=False)
class Facts:
    """Per step: push, noise, the ball that holds differences of a map (centre, spread), its Lipschitz constant, the bound on
    the part of a step that is not decay (drift), and decay. `turning` is the Lipschitz constant of the direction of a push,
    which moves on a line; where it turns the bound may fail with probability `failure`. The start is 0.
    """

    pushes: Floats
    noise: Floats
    centre: Floats
    spread: Floats
    highest: Floats
    drift: Floats
    decay: Floats
    turning: float
    failure: float

    def at(self, turns: Floats) -> Facts:
        """The same if the record is met at these steps only."""
        return replace(self, pushes=self.pushes * turns)


@dataclass(frozen=True, eq=False)
class Certificate:
    """δ(ε) ≤ θ_ε(mu) + failure."""

    mu: float
    failure: float

    def delta(self, epsilons: Floats) -> Floats:
        return np.asarray(li.notions.GaussianDP(self.mu).delta(epsilons)) + self.failure


def certificate(facts: Facts, shrink: float = 1.0) -> Certificate:
    """The best that a guess of the largest payment leads to; `shrink` below 1 claims too much, to see whether it shows."""
    largest, best = float(facts.pushes.max()) / 4, math.inf
    for _ in range(GUESSES):
        mu, needed = _priced(facts, shrink * gammas(facts, largest))
        if needed <= largest:
            best = min(best, mu)
            largest /= 2
        elif math.isfinite(best):
            break
        else:
            largest = max(2 * largest, 1.01 * needed)
    if math.isinf(best):
        return plain(facts)
    return Certificate(best, facts.failure if facts.turning > 0 else 0.0)


def plain(facts: Facts) -> Certificate:
    """Nothing prepaid: the shift engine, which needs no movement and never fails."""
    slopes = best_slopes(facts.pushes, facts.noise, np.zeros_like(facts.noise), facts.highest)
    return Certificate(math.sqrt(float(np.sum(np.square(facts.noise * slopes)))) * (1 + 1e-12), 0.0)


def gammas(facts: Facts, largest: float) -> Floats:
    """How far the direction of a push turns during the step before; at the first step there is none."""
    if facts.turning == 0:
        return np.zeros(len(facts.noise))
    chance = facts.failure / len(facts.noise)
    beyond = -float(ndtri(chance / 2))
    moved, far, variance = np.zeros(len(facts.noise)), 0.0, 0.0
    for step, (drift, decay, noise) in enumerate(zip(facts.drift, facts.decay, facts.noise, strict=True)):
        moved[step] = drift + largest + decay * far + beyond * math.sqrt(noise**2 + decay**2 * variance)
        far = (1 - decay) * far + drift + largest
        variance = (1 - decay) ** 2 * variance + noise**2
    return facts.turning * np.append(0.0, moved[:-1])


def _priced(facts: Facts, gamma: Floats) -> tuple[float, float]:
    """μ, and the largest payment that movement has to allow for."""
    lowest = facts.centre - facts.spread - facts.centre * gamma
    blocked = lowest <= 0
    lowest = np.where(blocked, 0.0, lowest)
    b, rho = _paths(facts, lowest, blocked)
    before, after = (b[:-1], rho[:-1]), (b[1:], rho[1:])
    turned = np.abs(facts.centre * before[0] - facts.pushes - after[0])
    left = (facts.spread + facts.centre * gamma) * before[0] + facts.highest * before[1] - after[1]
    payments = np.maximum(turned + left, 0.0)
    needed = payments[:-1] if facts.decay.any() else payments[:-1][after[0][:-1] > 0]
    return math.sqrt(float(np.sum(np.square(payments / facts.noise)))) * (1 + 1e-12), float(needed.max(initial=0.0))


def _paths(facts: Facts, lowest: Floats, blocked: Floats) -> tuple[Floats, Floats]:
    """Before the first step and after each: prepaid, and left to pay."""
    slopes = best_slopes(facts.pushes, facts.noise, lowest, facts.highest)
    z = np.zeros(len(slopes) + 1)
    for step, paid in enumerate(facts.noise**2 * slopes):
        factor = facts.highest[step] if z[step] > 0 else lowest[step]
        z[step + 1] = factor * z[step] + facts.pushes[step] - paid
    b, rho = np.maximum(-z, 0.0), np.maximum(z, 0.0)
    b[-1] = rho[-1] = 0.0
    for step in range(len(slopes) - 1, -1, -1):
        b[step] = 0.0 if blocked[step] else min(b[step], (b[step + 1] + facts.pushes[step]) / facts.centre[step])
    b[0] = 0.0
    return b, rho
