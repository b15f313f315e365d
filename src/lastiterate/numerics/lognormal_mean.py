"""The mean of independent lognormal variables e^{r·x − r²/2}, x standard normal: its law in convex order, bracketed."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri_exp

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.positive_sum import Inside, Law, Octaves, Side, lowered, octaves, summed
from lastiterate.numerics.rounding import up

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
# Cells up to so wide, times the steepness, are integrated by the nodes: relative error below 1e-12 (docs/proofs.md).
_NARROW = 1.0
_INEXACT = 1e-11  # of a mass: the quadrature, its rounding, that of where cells begin, and what differences cancel
_RISE = math.log(1e5)


def lognormal_sum(spread: float, copies: int, lost: float, cells: int, side: Side) -> Law:
    """The law of Σ e^{r·x_j − r²/2} over so many j, r = `spread`; at most about 2·lost is charged."""
    return summed(_one(spread, copies, lost, cells, side), copies, lost)


def _one(spread: float, copies: int, lost: float, cells: int, side: Side) -> Law:
    reach = -float(ndtri_exp(math.log(lost / (2 * copies))))
    low, rise, high = -reach, float(ndtri_exp(math.log(lost / copies) + _RISE)), reach + spread
    begins, rises, ends = (math.exp(spread * (at - spread / 2)) for at in (low, min(rise, 0.0), high))
    grid = octaves(begins, rises, ends, 0.0, cells)
    if side is Side.ABOVE:
        # Below the grid all is raised to its origin, and above its end lowered to it: at most what is beyond `reach`.
        return Law(grid, _from_above(grid, spread), side, up(copies * _tail(reach)), up(copies * _tail(reach)))
    return Law(grid, _from_below(grid, spread), side)


def _tail(reach: float) -> float:
    return float(ndtr(-reach))


def _from_above(grid: Octaves, spread: float) -> Floats:
    inside, beyond = _cells(grid, spread)
    masses = np.append(inside.lower, 0.0) + np.append(0.0, inside.higher)
    masses[0] += beyond[0]
    masses[-1] += beyond[1]
    return up(masses, by=_INEXACT)


def _from_below(grid: Octaves, spread: float) -> Floats:
    """What lies outside the grid is left out."""
    inside, _ = _cells(grid, spread)
    return lowered(grid.widths, np.zeros(grid.size), inside)


def _cells(grid: Octaves, spread: float) -> tuple[Inside, tuple[float, float]]:
    """What each cell gives to its dots, to a part in 10¹²; and the masses below and above the grid."""
    starts, widths = grid.points[:-1], grid.widths
    with np.errstate(divide="ignore"):
        at = _log(starts) / spread + spread / 2
        wide = np.log1p(widths / starts) / spread
    narrow = wide * (1 + np.abs(at) + spread) <= _NARROW
    found = [np.zeros(starts.size) for _ in range(3)]
    for where, integrate in ((narrow, _by_nodes), (~narrow, _by_differences)):
        for whole, part in zip(
            found, integrate(starts[where], widths[where], at[where], wide[where], spread), strict=True
        ):
            whole[where] = part
    last = _log(grid.points[-1:]) / spread + spread / 2
    return Inside(*found), (float(ndtr(at[0])), float(ndtr(-last[0])))


def _log(values: Floats) -> Floats:
    """With all digits near 1, from which values differ exactly."""
    near = (values > 0.5) & (values < 2)
    return np.where(near, np.log1p(np.where(near, values - 1, 0.0)), np.log(values))


def _by_nodes(starts: Floats, widths: Floats, at: Floats, wide: Floats, spread: float) -> tuple[Floats, Floats, Floats]:
    fractions = (1 + _NODES) / 2
    into = wide[:, None] * fractions
    density = np.exp(-0.5 * (at[:, None] + into) ** 2) / math.sqrt(2 * math.pi) * (0.5 * wide[:, None] * _WEIGHTS)
    share = np.minimum((starts / widths)[:, None] * np.expm1(spread * into), 1.0)
    lower, higher = density * (1 - share), density * share
    return lower.sum(axis=1), higher.sum(axis=1), (higher * (1 - share)).sum(axis=1)


def _by_differences(
    starts: Floats, widths: Floats, at: Floats, wide: Floats, spread: float
) -> tuple[Floats, Floats, Floats]:
    """Wide cells have so much of what is left of the law that differences of its tails cancel little."""
    until = _log(starts + widths) / spread + spread / 2
    mass, mean = _between(at, until), _between(at - spread, until - spread)
    higher = np.clip((mean - starts * mass) / widths, 0.0, mass)
    lower = mass - higher
    return lower, higher, np.minimum(lower, higher)


def _between(left: Floats, right: Floats) -> Floats:
    return np.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))
