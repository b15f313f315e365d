"""A family of ratios under an exponential tilt: M(c), M(c + iω)/M(c) and how fast the latter decays, all certified."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_expit

from lastiterate.numerics.arrays import ROUNDOFF, Complexes, Floats
from lastiterate.numerics.mixture_ratio import Family, Term
from lastiterate.numerics.panels import place_panels

_LARGEST_EXPONENT = 500.0
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class Tilted:
    """One row per ratio, one column per node."""

    family: Family
    abscissa: float
    nodes: Floats
    losses: Floats
    masses: Floats  # of the tilted law: density·e^{abscissa·loss}·quadrature weight/M(abscissa)
    log_mgf: Floats
    log_mgf_error: Floats
    error_per_frequency: Floats  # rounding error of M(c + iω)/M(c), divided by ω
    error_at_most: Floats  # and its largest value
    quadrature_error: Floats

    def spread(self) -> Floats:
        """Standard deviation of the tilted loss (an atom at 0 included)."""
        mean = (self.masses * self.losses).sum(axis=1)
        return np.sqrt(np.maximum((self.masses * self.losses**2).sum(axis=1) - mean**2, 0.0))

    def excursion(self) -> Floats:
        """A Lipschitz constant of |M(c + iω)/M(c)|: the mean of Σ |log u − its floor|, which bounds that of |L − const|."""
        floor = 0.0 if self.family.shape.half_line else np.log1p(-self.family.weights)[:, None]
        signs = sorted({factor.sign for term in self.family.shape.terms for factor in term})
        away = sum(self.family.log_u(sign, self.nodes) - floor for sign in signs)
        return np.asarray((self.masses * np.tile(away, len(self.family.shape.terms))).sum(axis=1))

    def ratio_minus_one(self, frequencies: Floats) -> Complexes:
        """M(c + iω)/M(c) − 1: one row per frequency, one column per ratio."""
        result = np.empty((frequencies.size, len(self.losses)), complex)
        rows = max(1, _CHUNK // self.losses.shape[1])
        for first in range(0, frequencies.size, rows):
            part = slice(first, first + rows)
            for i, (loss, mass) in enumerate(zip(self.losses, self.masses, strict=True)):
                # e^{iθ} − 1 = 2i·sin(θ/2)·e^{iθ/2}: nothing cancels for small θ.
                half = np.multiply.outer(0.5 * frequencies[part], loss)
                sine = np.sin(half)
                result[part, i].real = -2 * ((sine * sine) @ mass)
                result[part, i].imag = 2 * ((sine * np.cos(half)) @ mass)
        return result

    def ratio_error(self, frequencies: Floats) -> Floats:
        """Bound on the error of `ratio_minus_one`, same shape."""
        grown = np.multiply.outer(frequencies, self.error_per_frequency)
        return np.minimum(grown, self.error_at_most) + 2 * self.quadrature_error


def tilted(family: Family, abscissa: float, frequency: float, log_tolerance: float) -> Tilted:
    """`family` at tilt `abscissa` > 0, ready for frequencies up to `frequency`."""
    panels = place_panels(family, abscissa, frequency, log_tolerance)
    losses, log_densities = family.at(panels.nodes)
    nodes = np.tile(panels.nodes, len(family.shape.terms)) + family.origins[:, None]
    log_base = log_densities + np.tile(panels.log_weights, len(family.shape.terms))
    exponent = abscissa * losses
    log_mgf = _log_mgf(family, log_base, exponent)
    masses = np.exp(log_base + exponent - log_mgf[:, None])
    # Relative error of a mass, and absolute error of a loss (through the rounding of the exponent m·x).
    mass_error = ROUNDOFF * (64.0 + nodes**2 + 4 * np.abs(exponent) + 2 * np.abs(log_densities))
    posterior = sum(family.posterior(sign, panels.nodes) for sign in (+1, -1))
    wobble = np.tile(np.broadcast_to(posterior, (len(losses), panels.nodes.size)), len(family.shape.terms))
    loss_error = ROUNDOFF * (8 * np.abs(losses) + 4 * family.modes[:, None] * (np.abs(nodes) + family.modes[:, None]) * wobble)
    moved = (masses * loss_error).sum(axis=1)
    change = np.exp(log_base - log_mgf[:, None]) * np.abs(np.expm1(np.minimum(exponent, _LARGEST_EXPONENT)))
    quadrature_error = np.exp(panels.log_error - log_mgf)
    return Tilted(
        family,
        abscissa,
        panels.nodes,
        losses,
        masses,
        log_mgf,
        (np.maximum(change, masses * (exponent > _LARGEST_EXPONENT)) * mass_error).sum(axis=1)
        + abscissa * moved
        + quadrature_error
        + 4 * ROUNDOFF * np.abs(log_mgf),
        (masses * mass_error * np.abs(losses)).sum(axis=1) + moved,
        2 * (masses * mass_error).sum(axis=1) + frequency * moved,
        quadrature_error,
    )


def _log_mgf(family: Family, log_base: Floats, exponent: Floats) -> Floats:
    """log(1 + Σ base·(e^{cL} − 1)); where e^{cL} overflows M is so large that the plain sum is as good."""
    near_one = np.log1p((np.exp(log_base) * np.expm1(np.minimum(exponent, _LARGEST_EXPONENT))).sum(axis=1))
    log_terms = np.concatenate([log_base + exponent, np.log(np.maximum(family.atoms, 1e-300))[:, None]], axis=1)
    top = log_terms.max(axis=1)
    large = top + np.log(np.exp(log_terms - top[:, None]).sum(axis=1))
    return np.where(exponent.max(axis=1) < _LARGEST_EXPONENT, near_one, large)


def variation(tilt: Tilted) -> tuple[Floats, Floats]:
    """(atom, V) of the tilted loss: its density has total variation V, so |M(c + iω)/M(c)| ≤ atom + V/|ω|."""
    total = sum((_variation_of_term(tilt, term) for term in tilt.family.shape.terms), np.zeros_like(tilt.log_mgf))
    return tilt.family.atoms * np.exp(-tilt.log_mgf), total


def _variation_of_term(tilt: Tilted, term: Term) -> Floats:
    """∫ |p'| over cells: p ≤ e^{κh²/8}·max(ends) and |(log p)'| ≤ max(ends) + κh/2, where |(log p)''| ≤ κ.

    p = density/|L'| falls monotonically beyond the cells, and may jump where a half line starts.
    """
    family, modes = tilt.family, tilt.family.modes
    powers = [factor.power(tilt.abscissa) for factor in term]
    largest = float(modes.max())
    curvature = 1 + (sum(map(abs, powers)) / 4 + 2) * largest**2
    right = float(family.steepest(tilt.abscissa, +1).max()) + largest + 12.0
    left = 0.0 if family.shape.half_line else family.left_end(tilt.abscissa, largest + 12.0)
    cells = math.ceil((right - left) * max(4.0, 2 * math.sqrt(curvature)))
    y, width = np.linspace(left, right, cells + 1, retstep=True)
    log_p = family.log_normal(y) - tilt.log_mgf[:, None]
    slope = -(y + family.origins[:, None])
    log_posteriors = [log_expit(family.log_odds(factor.sign, y)) for factor in term]
    log_speed = np.logaddexp.reduce(log_posteriors, axis=0)  # log(|L'|/m)
    for factor, power, log_posterior in zip(term, powers, log_posteriors, strict=True):
        posterior, share = np.exp(log_posterior), np.exp(log_posterior - log_speed)
        log_p = log_p + power * family.log_u(factor.sign, y)
        slope = slope + factor.sign * modes[:, None] * (power * posterior - share * (1 - posterior))
    density = np.exp(log_p - log_speed - np.log(modes)[:, None])
    steepness = np.abs(slope)
    highest = np.maximum(density[:, 1:], density[:, :-1]) * math.exp(curvature * width**2 / 8)
    steepest = np.maximum(steepness[:, 1:], steepness[:, :-1]) + curvature * width / 2
    return np.asarray(width * (highest * steepest).sum(axis=1) + density[:, 0] + density[:, -1])
