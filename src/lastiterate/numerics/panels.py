"""Where to put Gauss–Legendre panels so that the moment generating functions of a family carry a proved error.

n points on a panel err by at most (32/15)·width·sup|g|·ρ^{−2(n−1)}/(1 − ρ^{−2}), the supremum over the Bernstein
ellipse of parameter ρ (Trefethen, Approximation Theory and Practice, Theorem 19.3). The supremum is bounded over the
rectangle around the ellipse: with θ = m·height < π and odds A, |1 + A·e^{iθ}| ≥ (1 + A)·cos(θ/2), and its argument is
at most min(θ, arcsin A). Panels are halved until the bound is negligible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.mixture_ratio import Family, Term
from lastiterate.numerics.normal_gap import LOG_SQRT_2PI

POINTS = 32  # of a panel: with fewer, more panels are needed; a choice of effort
NODES, WEIGHTS = np.polynomial.legendre.leggauss(POINTS)
# ρ. A larger ellipse divides by a larger power, e^12 to e^62, but meets a larger supremum: the best of five counts.
_ELLIPSES = np.exp([0.0, 0.2, 0.35, 0.5, 0.7, 1.0])
# Must be below π, where cos(θ/2) is 0 and the bound says nothing; just below it says hardly anything.
_LARGEST_ANGLE = 3.0
# Standard deviations: a start, panels are cut until they are accurate; narrower ones may be more than are needed.
_FIRST_WIDTH = 4.0
_MOST_PANELS = 4_000  # 128,000 nodes: a limit of effort, beyond which a lattice is taken
_FAR_OFF = 60.0  # of a logarithm: a choice of effort, only how many rounds it takes depends on it


class TooFine(Exception):
    """The integrand turns too fast for a sensible number of panels."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Nodes, logarithms of their weights, and log of what the whole rule may miss (one per ratio)."""

    nodes: Floats
    log_weights: Floats
    log_error: Floats


def place_panels(family: Family, abscissa: float, frequency: float, log_tolerance: float) -> Panels:
    """Panels for every s = abscissa + iω, |ω| ≤ frequency: the error stays below about e^log_tolerance·M(abscissa)."""
    most = _MOST_PANELS if family.shares is None else _MOST_PANELS // family.modes.size
    left, right, log_error = _ends(family, abscissa, log_tolerance)
    if right - left > _FIRST_WIDTH * most:
        raise TooFine
    edges = np.linspace(left, right, max(2, math.ceil((right - left) / _FIRST_WIDTH) + 1))
    allowed = _log_scale(family, abscissa, edges)[:, None] + log_tolerance
    starts, widths = edges[:-1], np.diff(edges)
    chosen_starts, chosen_widths = [], []
    while starts.size:
        magnitude, error = _log_magnitude_and_error(family, abscissa, frequency, starts, widths)
        negligible = (magnitude <= allowed).all(axis=0)
        accurate = (error <= allowed).all(axis=0) & ~negligible
        spent = np.where(negligible, magnitude, np.where(accurate, error, -np.inf))
        log_error = np.logaddexp(log_error, np.logaddexp.reduce(spent, axis=1))
        chosen_starts.append(starts[accurate])
        chosen_widths.append(widths[accurate])
        left_over = ~(negligible | accurate)
        # Far from accurate, a panel is cut in four at once.
        parts = 4 if (error - allowed).max(initial=-np.inf, where=left_over) > _FAR_OFF else 2
        pieces = widths[left_over] / parts
        starts = (starts[left_over] + pieces * np.arange(parts)[:, None]).ravel()
        widths = np.tile(pieces, parts)
        allowed = allowed - math.log(parts)  # a part of a panel gets its part of the error
        if starts.size > most:
            raise TooFine
    return _rule(np.concatenate(chosen_starts), np.concatenate(chosen_widths), log_error)


def _rule(starts: Floats, widths: Floats, log_error: Floats) -> Panels:
    nodes = starts[:, None] + widths[:, None] * (1 + NODES) / 2
    return Panels(nodes.ravel(), np.log(widths[:, None] / 2 * WEIGHTS).ravel(), log_error)


def _log_scale(family: Family, abscissa: float, edges: Floats) -> Floats:
    """A guess of log M(abscissa), which Jensen's inequality keeps above 0; it only steers where panels go."""
    losses, log_densities = family.at(np.linspace(edges[0], edges[-1], 8 * edges.size))
    return np.maximum((log_densities + abscissa * losses).max(axis=1), 0.0)


def _ends(family: Family, abscissa: float, log_tolerance: float) -> tuple[float, float, Floats]:
    """Where to cut the line, and log of a bound on what is cut off."""
    reach = math.sqrt(-2 * log_tolerance)
    climb = family.steepest(abscissa, +1)
    right = float((climb + reach - family.origins).max())
    log_cut = _log_tail(family, abscissa, right, right + family.origins - climb)
    if family.shape.half_line:
        return 0.0, right, log_cut
    left = family.left_end(abscissa, reach)
    decay = -left - family.fading_climb(family.steepest(abscissa, -1), left)
    return left, right, np.logaddexp(log_cut, _log_tail(family, abscissa, left, decay))


def _log_tail(family: Family, abscissa: float, end: float, decay: Floats) -> Floats:
    """Beyond `end` the integrand falls at least as fast as e^{−decay·distance}."""
    losses, log_densities = family.at(np.array([end]))
    worst = np.maximum(log_densities, log_densities + abscissa * losses).max(axis=1)
    return worst + math.log(2 * losses.shape[1]) - np.log(decay)


def _log_magnitude_and_error(
    family: Family, abscissa: float, frequency: float, starts: Floats, widths: Floats
) -> tuple[Floats, Floats]:
    """Logs of bounds on each panel's integral of the modulus, and on the error of its rule; one row per ratio.

    The ellipse ρ = 1 is the panel itself.
    """
    rho = np.repeat(_ELLIPSES, starts.size)
    all_starts, all_widths = np.tile(starts, _ELLIPSES.size), np.tile(widths, _ELLIPSES.size)
    supremum = _log_supremum(family, abscissa, frequency, all_starts, all_widths, rho)
    supremum = supremum.reshape(-1, _ELLIPSES.size, starts.size)
    decay = np.log(32 / 15 / (1 - _ELLIPSES[1:] ** -2)) - 2 * (POINTS - 1) * np.log(_ELLIPSES[1:])
    log_widths = np.log(widths)
    return log_widths + supremum[:, 0], log_widths + (supremum[:, 1:] + decay[:, None]).min(axis=1)


def _log_supremum(
    family: Family, abscissa: float, frequency: float, starts: Floats, widths: Floats, rho: Floats
) -> Floats:
    """log of a bound on Σ over terms of |density|·(|e^{sL}| + 1) on each panel's ellipse."""
    height = widths / 4 * (rho - 1 / rho)
    middle, across = starts + widths / 2, widths / 4 * (rho + 1 / rho)
    rectangle = _Rectangle(family, middle - across, middle + across, family.modes[:, None] * height)
    low, high = rectangle.low + family.origins[:, None], rectangle.high + family.origins[:, None]
    nearest = np.where(low > 0, low, np.where(high < 0, high, 0.0))
    log_normal = 0.5 * height**2 - 0.5 * nearest**2 - LOG_SQRT_2PI
    bounds = [
        log_normal + rectangle.log_modulus(term, tilt, turn)
        for term in family.shape.terms
        for tilt, turn in ((abscissa, frequency), (0.0, 0.0))
    ]
    return np.where(rectangle.angle <= _LARGEST_ANGLE, np.logaddexp.reduce(bounds, axis=0), np.inf)


@dataclass(frozen=True, eq=False)
class _Rectangle:
    """Real parts from low to high; m·(imaginary part) up to angle."""

    family: Family
    low: Floats
    high: Floats
    angle: Floats

    def log_modulus(self, term: Term, abscissa: float, frequency: float) -> Floats:
        """Bound on log |Π u^{density + loss·s}|."""
        total = np.zeros_like(self.angle)
        for factor in term:
            power = factor.power(abscissa)
            if power > 0:
                total = total + power * self._log_u(factor.sign, largest=True)
            elif power < 0:
                total = total + power * (self._log_u(factor.sign, largest=False) + self._log_cosine)
            if frequency:
                total = total + frequency * self._argument(factor.sign)
        return total

    def _log_u(self, sign: int, *, largest: bool) -> Floats:
        """Terms share their factors, with and without a tilt."""
        if (sign, largest) not in self._known:
            self._known[sign, largest] = self.family.log_u(sign, self.high if (sign > 0) == largest else self.low)
        return self._known[sign, largest]

    @cached_property
    def _known(self) -> dict[tuple[int, bool], Floats]:
        return {}

    @cached_property
    def _log_cosine(self) -> Floats:
        return np.log(np.cos(np.minimum(self.angle, _LARGEST_ANGLE) / 2))

    def _argument(self, sign: int) -> Floats:
        odds = np.exp(np.minimum(self.family.log_odds(sign, self.high if sign > 0 else self.low), 0.0))
        return np.minimum(self.angle, np.arcsin(odds))
