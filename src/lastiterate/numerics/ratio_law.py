"""A likelihood ratio whose law under the second measure is known on a grid, as log-likelihood ratios on a lattice."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.lattice import Masses
from lastiterate.numerics.octaves import Inside, Law, lowered
from lastiterate.numerics.rounding import down, up

_CELLS = 2**13  # of the lattice: finer is slower, and what is split between two points moves the variance by its square
_NEGLIGIBLE = 1e-22  # at the lower end of a lattice, where everything below is raised to it
_COARSE = 4.0  # from below: spacings of the grid in one of the lattice, so that no cell is empty
_INEXACT = 1e-12


def loss_from_above(law: Law, scale: float) -> Masses:
    """log Λ under P, Λ = value/scale being dP/dQ and the law one of Λ under Q; what was too large is at +∞."""
    masses = up(law.masses * (law.grid.points / scale), operations=4)
    return _split(_log_ratio(law, scale), masses, law.high)  # P has nothing where Λ = 0


def opposite_from_above(law: Law, scale: float) -> Masses:
    """−log Λ under Q; what was too small is at +∞, and so is Λ = 0."""
    nothing = float(law.masses[0]) if law.grid.origin == 0 else 0.0
    masses = np.where(law.grid.points > 0, law.masses, 0.0)
    return _split(-_log_ratio(law, scale)[::-1], masses[::-1], up(law.low + nothing))


def _log_ratio(law: Law, scale: float) -> Floats:
    """−∞ where Λ = 0; elsewhere Λ may be far below an ulp of 1, and is not taken from 1."""
    points = law.grid.points
    with np.errstate(divide="ignore"):
        return np.where(points < scale / 2, np.log(points) - math.log(scale), np.log1p((points - scale) / scale))


def _split(losses: Floats, masses: Floats, infinite: float) -> Masses:
    """Each mass goes to the two lattice points around it so that both measures keep theirs."""
    held = masses > 0
    losses, masses = losses[held], masses[held]
    lowest = losses[min(int(np.searchsorted(np.cumsum(masses), _NEGLIGIBLE)), losses.size - 1)]
    losses = np.maximum(losses, lowest)
    spacing = max((float(losses[-1]) - lowest) / _CELLS, 1e-300)
    first = math.floor(lowest / spacing) * spacing
    place = np.floor((losses - first) / spacing)
    above = np.clip(losses - (first + place * spacing), 0.0, spacing)
    doubt = 8 * ROUNDOFF * (np.abs(losses) + abs(first) + spacing)
    step = -math.expm1(-spacing)
    higher = np.minimum(-np.expm1(-(above + doubt)) / step, 1.0)
    lower = np.minimum((np.exp(-np.maximum(above - doubt, 0.0)) - math.exp(-spacing)) / step + 4 * ROUNDOFF / step, 1.0)
    at = place.astype(np.intp)
    count = int(at.max()) + 2
    split = np.bincount(at, masses * lower, count) + np.bincount(at + 1, masses * higher, count)
    return Masses(first, spacing, up(np.asarray(split, float), by=_INEXACT), infinite)


def loss_from_below(law: Law, scale: float) -> Masses:
    """A law below that of log Λ under P: Λ under Q on the exponentials of a lattice, from below in convex order."""
    held = np.flatnonzero((law.masses > 0) & (law.grid.points > 0))
    losses, masses = _log_ratio(law, scale)[held], law.masses[held]
    apart = np.append(law.grid.widths, law.grid.widths[-1])[held] / scale
    spacing = _COARSE * float(masses @ apart) / float(masses @ np.exp(losses))
    first = math.floor(losses[0] / spacing) * spacing
    place = np.floor((losses - first) / spacing)
    share = np.clip(np.expm1(losses - (first + place * spacing)) / math.expm1(spacing), 0.0, 1.0)
    at, count = place.astype(np.intp), int(place[-1]) + 2
    dots = np.exp(first + spacing * np.arange(count))
    shares = (1 - share, share, share * (1 - share))
    inside = Inside(*(np.asarray(np.bincount(at, masses * one, count - 1), float) for one in shares))
    lower = lowered(np.diff(dots), np.zeros(count), inside)
    return Masses(first, spacing, down(lower * dots, by=_INEXACT))
