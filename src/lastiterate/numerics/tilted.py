"""A family of ratios under an exponential tilt: M(c), M(c + iω)/M(c) and how fast the latter decays, all certified."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_expit

from lastiterate.numerics.arrays import ROUNDOFF, Complexes, Floats
from lastiterate.numerics.mixture_ratio import Family, Term
from lastiterate.numerics.normal_gap import LOG_SQRT_2PI
from lastiterate.numerics.rounding import down, up

_LARGEST_EXPONENT = 500.0  # e^709 overflows: this leaves room for sums; below it e^x − 1 keeps small moments accurate
_SPLITS = 20  # of a law, each a valid bound on how its transform decays: more are slower, fewer cut farther out


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
        away = sum(self.family.log_u(sign, self.nodes) - floor for sign in self.family.signs)
        return np.asarray((self.masses * np.tile(away, len(self.family.shape.terms))).sum(axis=1))

    def on_grid(self, spacing: float, count: int) -> Complexes:
        """M(c + iω)/M(c) − 1 at ω = spacing·(1, …, count): one row per frequency, one column per ratio.

        By w ← w + w₁(1 + w) for w = e^{iωL} − 1, without transcendental functions. Each step rounds by a few ulps of
        |w| ≤ ω|L|, so that after j steps the error is below 8j ulps of ω|L|.
        """
        result = np.empty((count, len(self.losses)), complex)
        first = self._turned(spacing)
        turned = np.zeros_like(first)
        for j in range(count):
            turned += first * (1 + turned)
            result[j] = np.einsum("ij,ij->i", turned, self.masses)
        return result

    def on_octaves(self, first: float, per_octave: int, count: int) -> Complexes:
        """The same at ω = first·2^{j/per_octave}, j < count: doubling a frequency is w ← w(2 + w)."""
        result = np.empty((count, len(self.losses)), complex)
        for start in range(min(per_octave, count)):
            turned = self._turned(first * 2 ** (start / per_octave))
            doubled = np.empty_like(turned)
            for j in range(start, count, per_octave):
                result[j] = np.einsum("ij,ij->i", turned, self.masses)
                np.add(2, turned, out=doubled)
                turned *= doubled
        return result

    def _turned(self, frequency: float) -> Complexes:
        """e^{iωL} − 1 = 2i·sin(ωL/2)·e^{iωL/2}: nothing cancels for small ωL."""
        half = 0.5 * frequency * self.losses
        sine, turned = np.sin(half), np.empty(half.shape, complex)
        turned.real, turned.imag = -2 * sine * sine, 2 * sine * np.cos(half)
        return turned

    def ratio_error(self, frequencies: Floats) -> Floats:
        """Bound on the error of both, same shape."""
        mean_size = (self.masses * np.abs(self.losses)).sum(axis=1)
        steps = 8 * ROUNDOFF * np.arange(1, frequencies.size + 1)
        recursion = np.multiply.outer(steps * frequencies, mean_size)
        grown = np.multiply.outer(frequencies, self.error_per_frequency)
        return np.minimum(grown, self.error_at_most) + recursion + 2 * self.quadrature_error


@dataclass(frozen=True, eq=False)
class Mixed(Tilted):
    """One ratio that is each of `rows` with a probability: everything is an average, with the probabilities `tilted`."""

    rows: Tilted
    tilted_shares: Floats
    share_errors: Floats  # relative

    def spread(self) -> Floats:
        mean, square = (self._averaged((self.rows.masses * self.rows.losses**power).sum(axis=1)) for power in (1, 2))
        return np.sqrt(np.maximum(square - mean**2, 0.0))

    def excursion(self) -> Floats:
        return up(self._averaged(self.rows.excursion()))

    def on_grid(self, spacing: float, count: int) -> Complexes:
        return self._averaged(self.rows.on_grid(spacing, count))

    def on_octaves(self, first: float, per_octave: int, count: int) -> Complexes:
        return self._averaged(self.rows.on_octaves(first, per_octave, count))

    def ratio_error(self, frequencies: Floats) -> Floats:
        """That of the rows; and of their shares, which multiply numbers of size ω·E|L| at most, and at most 2."""
        mean_size = (self.rows.masses * np.abs(self.rows.losses)).sum(axis=1)
        sizes = np.minimum(up(np.multiply.outer(frequencies, mean_size)), 2.0)
        return up(self._averaged(self.rows.ratio_error(frequencies) + sizes * self.share_errors))

    def _averaged(self, values: Any) -> Any:
        return (values @ self.tilted_shares)[..., None]


def _mixed(rows: Tilted, shares: Floats) -> Mixed:
    """M = Σ share·M_i, of numbers that are not below 1."""
    logs, errors = rows.log_mgf, rows.log_mgf_error
    small = logs.max() < 1
    total = np.log1p(shares @ np.expm1(logs)) if small else np.logaddexp.reduce(np.log(shares) + logs)
    tilted_shares = shares * np.exp(logs - total)
    error = up(tilted_shares @ errors) + 32 * ROUNDOFF * (abs(total) if small else 1 + abs(total))
    share_errors = up(errors + error) + ROUNDOFF * (64 + shares.size + 4 * np.abs(logs) + 4 * abs(total))
    averages = ("error_per_frequency", "error_at_most", "quadrature_error")
    return Mixed(
        family=rows.family,
        abscissa=rows.abscissa,
        nodes=rows.nodes,
        losses=rows.losses.reshape(1, -1),
        masses=(rows.masses * tilted_shares[:, None]).reshape(1, -1),
        log_mgf=np.array([total]),
        log_mgf_error=np.array([error]),
        **{name: np.array([up(getattr(rows, name)) @ tilted_shares]) for name in averages},
        rows=rows,
        tilted_shares=tilted_shares,
        share_errors=share_errors,
    )


def tilted(family: Family, abscissa: float, frequency: float, log_tolerance: float, most: float = math.inf) -> Tilted:
    """`family` at tilt `abscissa` > 0, ready for frequencies up to `frequency`; TooFine if that takes over `most` nodes."""
    rows = _tilted_rows(family, abscissa, frequency, log_tolerance, most)
    return rows if family.shares is None else _mixed(rows, family.shares)


def _tilted_rows(family: Family, abscissa: float, frequency: float, log_tolerance: float, most: float) -> Tilted:
    columns = len(family.shape.terms) * (1 if family.shares is None else family.modes.size)
    panels = place_panels(family, abscissa, frequency, log_tolerance, most / columns)
    losses, log_densities = family.at(panels.nodes)
    nodes = np.tile(panels.nodes, len(family.shape.terms)) + family.origins[:, None]
    log_base = log_densities + np.tile(panels.log_weights, len(family.shape.terms))
    exponent = abscissa * losses
    log_mgf = _log_mgf(family, log_base, exponent)
    masses = np.exp(log_base + exponent - log_mgf[:, None])
    # Relative error of a mass, and absolute error of a loss (through the rounding of the exponent m·x).
    mass_error = ROUNDOFF * (64.0 + nodes**2 + 4 * np.abs(exponent) + 2 * np.abs(log_densities))
    posterior = sum(family.posterior(sign, panels.nodes) for sign in family.signs)
    wobble = np.tile(np.broadcast_to(posterior, (len(losses), panels.nodes.size)), len(family.shape.terms))
    loss_error = ROUNDOFF * (
        8 * np.abs(losses) + 4 * family.modes[:, None] * (np.abs(nodes) + family.modes[:, None]) * wobble
    )
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
    if exponent.max() < _LARGEST_EXPONENT:
        return near_one
    log_terms = np.concatenate([log_base + exponent, np.log(np.maximum(family.atoms, 1e-300))[:, None]], axis=1)
    top = log_terms.max(axis=1)
    large = top + np.log(np.exp(log_terms - top[:, None]).sum(axis=1))
    return np.where(exponent.max(axis=1) < _LARGEST_EXPONENT, near_one, large)


def variations(tilt: Tilted) -> tuple[Floats, Floats]:
    """Pairs (A, V), one row each, with |M(c + iω)/M(c)| ≤ A + V/|ω| for every ratio.

    Split a law at a point: below it count the mass, above it integrate by parts. A split at the far left counts nothing
    but the atom; one further right trades a smaller variation for some mass, which is what a skewed law needs.
    """
    if isinstance(tilt, Mixed):
        counted, total = variations(tilt.rows)
        return np.minimum(up(tilt._averaged(counted), by=1e-9), 1.0), up(tilt._averaged(total), by=1e-9)
    tails, totals = zip(*(_tails_of_term(tilt, term) for term in tilt.family.shape.terms), strict=True)
    counted = 1 - down(np.sum(tails, axis=0), by=1e-9)  # their rounding errors are far smaller
    counted[0] = tilt.family.atoms * np.exp(-tilt.log_mgf)  # the first split is to the left of everything else
    return counted, np.sum(totals, axis=0)


def _tails_of_term(tilt: Tilted, term: Term) -> tuple[Floats, Floats]:
    """(mass, total variation of the density p = g/|L'| of L) of a term to the right of some points, one row a point.

    In a cell of width h, with |(log g)''| and |(log p)''| ≤ κ: g ≥ e^{−κh²/8}·min(ends), p ≤ e^{κh²/8}·max(ends) and
    |(log p)'| ≤ max(ends) + κh/2. Beyond the cells p falls monotonically; at the point of the split it jumps.
    """
    family, modes = tilt.family, tilt.family.modes
    powers = [factor.power(tilt.abscissa) for factor in term]
    largest = float(modes.max())
    curvature = 1 + (sum(map(abs, powers)) / 4 + 2) * largest**2
    right = float(family.steepest(tilt.abscissa, +1).max()) + largest + 12.0
    left = 0.0 if family.shape.half_line else family.left_end(tilt.abscissa, largest + 12.0)
    cells = math.ceil((right - left) * max(4.0, 2 * math.sqrt(curvature)))
    y, width = np.linspace(left, right, cells + 1, retstep=True)
    log_g = family.log_normal(y) - tilt.log_mgf[:, None]
    slope = -(y + family.origins[:, None])
    log_posteriors = [log_expit(family.log_odds(factor.sign, y)) for factor in term]
    log_speed = np.logaddexp.reduce(log_posteriors, axis=0)  # log(|L'|/m)
    for factor, power, log_posterior in zip(term, powers, log_posteriors, strict=True):
        posterior, share = np.exp(log_posterior), np.exp(log_posterior - log_speed)
        log_g = log_g + power * family.log_u(factor.sign, y)
        slope = slope + factor.sign * modes[:, None] * (power * posterior - share * (1 - posterior))
    points = np.unique(np.linspace(0, cells - 1, _SPLITS).astype(np.intp))
    points = np.append(points, np.full(_SPLITS - points.size, points[-1]))
    bend = math.exp(curvature * width**2 / 8)
    steepest = np.maximum(np.abs(slope[:, 1:]), np.abs(slope[:, :-1])) + curvature * width / 2
    with np.errstate(over="ignore"):  # an infinite variation says nothing, and a split further right will do
        g, p = np.exp(log_g), np.exp(log_g - log_speed - np.log(modes)[:, None])
        mass = width / bend * np.minimum(g[:, 1:], g[:, :-1])
        change = width * bend * np.maximum(p[:, 1:], p[:, :-1]) * steepest
        tail_mass = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1][:, points]
        tail_change = np.cumsum(change[:, ::-1], axis=1)[:, ::-1][:, points] + p[:, points] + p[:, -1:]
    return np.asarray(tail_mass.T), np.asarray(tail_change.T)


# Where to put Gauss–Legendre panels so that the moment generating functions of a family carry a proved error.
#
# n points on a panel err by at most (32/15)·width·sup|g|·ρ^{−2(n−1)}/(1 − ρ^{−2}), the supremum over the Bernstein
# ellipse of parameter ρ (Trefethen, Approximation Theory and Practice, Theorem 19.3). The supremum is bounded over the
# rectangle around the ellipse: with θ = m·height < π and odds A, |1 + A·e^{iθ}| ≥ (1 + A)·cos(θ/2), and its argument is
# at most min(θ, arcsin A). Panels are halved until the bound is negligible.


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


def place_panels(
    family: Family, abscissa: float, frequency: float, log_tolerance: float, most_nodes: float = math.inf
) -> Panels:
    """Panels for every s = abscissa + iω, |ω| ≤ frequency: the error stays below about e^log_tolerance·M(abscissa)."""
    most = _MOST_PANELS if family.shares is None else _MOST_PANELS // family.modes.size
    left, right, log_error = _ends(family, abscissa, log_tolerance)
    if right - left > _FIRST_WIDTH * most:
        raise TooFine
    edges = np.linspace(left, right, max(2, math.ceil((right - left) / _FIRST_WIDTH) + 1))
    allowed = _log_scale(family, abscissa, edges)[:, None] + log_tolerance
    starts, widths = edges[:-1], np.diff(edges)
    chosen_starts, chosen_widths, nodes = [], [], 0
    while starts.size:
        magnitude, error = _log_magnitude_and_error(family, abscissa, frequency, starts, widths)
        negligible = (magnitude <= allowed).all(axis=0)
        accurate = (error <= allowed).all(axis=0) & ~negligible
        spent = np.where(negligible, magnitude, np.where(accurate, error, -np.inf))
        log_error = np.logaddexp(log_error, np.logaddexp.reduce(spent, axis=1))
        chosen_starts.append(starts[accurate])
        chosen_widths.append(widths[accurate])
        nodes += POINTS * int(np.count_nonzero(accurate))
        left_over = ~(negligible | accurate)
        # Far from accurate, a panel is cut in four at once.
        parts = 4 if (error - allowed).max(initial=-np.inf, where=left_over) > _FAR_OFF else 2
        pieces = widths[left_over] / parts
        starts = (starts[left_over] + pieces * np.arange(parts)[:, None]).ravel()
        widths = np.tile(pieces, parts)
        allowed = allowed - math.log(parts)  # a part of a panel gets its part of the error
        if starts.size > most or nodes > most_nodes:
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
