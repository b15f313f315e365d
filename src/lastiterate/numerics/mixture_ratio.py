"""Log-likelihood ratios of normal mixtures, many at once.

With u_±(x) = 1 − q + q·exp(±m·x − m²/2), a ratio is a sum of terms, each with density φ(x)·Π u^a and loss
L(x) = Σ b·log u, on the line or on the half line x ≥ m/2. Its moment generating function is
M(s) = 1 + Σ ∫ φ·Π u^a·(e^{sL} − 1) dx: written with e^{sL} − 1, an atom at L = 0 needs no care, and powers as high as
10⁹ keep their digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import expit, ndtr

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import LOG_SQRT_2PI

# Of each panel of 2.5 standard deviations: estimates only say where to work, so that more would be time for nothing.
_SCOUTING_NODES, _SCOUTING_WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Factor:
    """u_sign raised to the power `density + loss·s`."""

    sign: int
    density: int
    loss: int

    def power(self, abscissa: float) -> float:
        return self.density + self.loss * abscissa


Term = tuple[Factor, ...]


@dataclass(frozen=True)
class Shape:
    """The terms that make up one kind of ratio."""

    terms: tuple[Term, ...]
    half_line: bool = False


MIXTURE_OVER_NORMAL = Shape(((Factor(+1, 1, +1),),))
NORMAL_OVER_MIXTURE = Shape(((Factor(+1, 0, -1),),))
MIXTURE_OVER_MIRROR = Shape(((Factor(+1, 1, +1), Factor(-1, 0, -1)),))
SYMMETRISED = Shape(((Factor(+1, 1, +1),), (Factor(+1, 0, -1),)), half_line=True)


@dataclass(frozen=True, eq=False)
class Family:
    """Ratios of one shape: weight q_i on a mode at distance m_i, each occurring counts_i times.

    With `shares` it is a single ratio, which is the i-th of these with probability shares_i; it occurs counts_0 times.
    """

    shape: Shape
    modes: Floats
    weights: Floats
    counts: Floats
    shares: Floats | None = None

    @cached_property
    def origins(self) -> Floats:
        """Positions are given as y = x − origin, so that all half lines start at y = 0."""
        return self.modes / 2 if self.shape.half_line else np.zeros_like(self.modes)

    @cached_property
    def signs(self) -> tuple[int, ...]:
        """Which of u_+ and u_− occur."""
        return tuple({factor.sign for term in self.shape.terms for factor in term})

    @cached_property
    def _key(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...] | None]:
        """What the laws depend on: compositions of the same steps, however many of each, share their nodes."""
        shares = None if self.shares is None else tuple(self.shares.tolist())
        return tuple(self.modes.tolist()), tuple(self.weights.tolist()), shares

    @cached_property
    def atoms(self) -> Floats:
        """The mass at L = 0."""
        if not self.shape.half_line:
            return np.zeros_like(self.modes)
        beyond = self.weights * ndtr(self.modes / 2) + (2 - self.weights) * ndtr(-self.modes / 2)
        return np.maximum(1 - beyond, 0.0)

    def log_u(self, sign: int, y: Floats) -> Floats:
        """log u_sign, one row per ratio; relative error of a few ulps also near u = 1."""
        exponent, weight = self.exponent(sign, y), self.weights[:, None]
        moderate = np.log1p(weight * np.expm1(np.minimum(exponent, 30.0)))
        if exponent.max(initial=0.0) < 30.0:
            return moderate
        far = np.maximum(exponent, 30.0)
        return np.where(
            exponent < 30.0, moderate, far + np.log(weight) + np.log1p((1 - weight) / weight * np.exp(-far))
        )

    def exponent(self, sign: int, y: Floats) -> Floats:
        return sign * self.modes[:, None] * (y + (self.origins - sign * self.modes / 2)[:, None])

    def log_odds(self, sign: int, y: Floats) -> Floats:
        """log of q·e^{exponent}/(1 − q)."""
        prior = np.log(self.weights) - np.log1p(-self.weights)
        return self.exponent(sign, y) + prior[:, None]

    def posterior(self, sign: int, y: Floats) -> Floats:
        """(log u)' = sign·m·posterior."""
        return np.asarray(expit(self.log_odds(sign, y)))

    def log_normal(self, y: Floats) -> Floats:
        return -0.5 * (y + self.origins[:, None]) ** 2 - LOG_SQRT_2PI

    def at(self, y: Floats) -> tuple[Floats, Floats]:
        """(losses, log densities) at y, the terms side by side."""
        losses, log_densities = [], []
        log_normal = self.log_normal(y)
        for term in self.shape.terms:
            loss, log_density = np.zeros_like(log_normal), log_normal
            for factor in term:
                log_u = self.log_u(factor.sign, y)
                loss = loss + factor.loss * log_u
                log_density = log_density + factor.density * log_u
            losses.append(loss)
            log_densities.append(log_density)
        return np.concatenate(losses, axis=1), np.concatenate(log_densities, axis=1)

    def steepest(self, abscissa: float, side: int) -> Floats:
        """The greatest slope, towards `side`, of the log of Π u^{power} of any term."""
        climbs = [sum(max(side * f.sign * f.power(abscissa), 0.0) for f in term) for term in self.shape.terms]
        return max(climbs) * self.modes

    def left_end(self, abscissa: float, margin: float) -> float:
        """A point below which the log of every term rises towards the right at least as fast as `margin`.

        −x loses to the climb of Π u^{power} to the left, which fades with the posterior weight.
        """
        climb, left = self.steepest(abscissa, -1), -margin
        while True:
            lacking = margin + left + self.fading_climb(climb, left)
            if (lacking <= 0).all():
                return left
            left -= float(lacking.max()) + 1.0

    def fading_climb(self, climb: Floats, left: float) -> Floats:
        """A bound, for all x ≤ left, on the slope to the left that is at most `climb`.

        Only factors u_+ (power < 0) or u_− (power > 0) climb to the left; u_− does so at full rate.
        """
        if -1 in self.signs:
            return climb
        return climb * self.posterior(+1, np.array([left]))[:, 0]

    def scout(self, abscissa: float) -> tuple[float, float, float]:
        """Σ counts·(log M, its first and second derivative) at the abscissa: a quick estimate, without certificate."""
        octave = max(0, 2 * math.ceil(math.log2(abscissa) / 2))
        losses, log_base, base, atoms = _scouting_nodes(self.shape, *self._key, octave)
        exponent = abscissa * losses
        if exponent.max() < 500.0:
            top, mass = np.zeros(len(losses)), base * np.exp(exponent)
            total = 1 + (mass - base).sum(axis=1)
        else:
            top = (log_base + exponent).max(axis=1, initial=0.0)
            mass = np.exp(log_base + exponent - top[:, None])
            total = mass.sum(axis=1) + atoms * np.exp(-top)
        first = mass * losses
        mean = first.sum(axis=1) / total
        variance = np.maximum((first * losses).sum(axis=1) / total - mean**2, 0.0)
        return float(self.counts @ (top + np.log(total))), float(self.counts @ mean), float(self.counts @ variance)


@lru_cache(maxsize=32)
def _scouting_nodes(
    shape: Shape, modes: tuple[float, ...], weights: tuple[float, ...], shares: tuple[float, ...] | None, octave: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """(losses, logs of their masses, masses; atoms) on a grid that serves every abscissa up to 2^octave."""
    family, largest = Family(shape, np.array(modes), np.array(weights), np.ones(len(modes))), 2.0**octave
    left = 0.0 if family.shape.half_line else -9.0 - min(float(family.steepest(largest, -1).max()), 30.0)
    right = float((family.steepest(largest, +1) - family.origins).max()) + 9.0
    edges = np.linspace(left, right, min(max(6, math.ceil((right - left) / 2.5)), 500))
    width = edges[1] - edges[0]
    nodes = (edges[:-1, None] + width * (1 + _SCOUTING_NODES) / 2).ravel()
    losses, log_densities = family.at(nodes)
    log_weights = np.log(np.tile(width / 2 * _SCOUTING_WEIGHTS, (edges.size - 1) * len(family.shape.terms)))
    log_base, atoms = log_densities + log_weights, family.atoms
    if shares is not None:
        of_all = np.array(shares)
        losses, log_base = (part.reshape(1, -1) for part in (losses, log_base + np.log(of_all)[:, None]))
        atoms = np.array([of_all @ atoms])
    return losses, log_base, np.exp(log_base), atoms
