"""E(1 − e^{t − X})_+ for a sum X of independent log-likelihood ratios, by the trapezoid rule on a vertical line.

With K the cumulant of X, the excess is (1/2πi)∫ e^{K(s) − s·t}/(s(s + 1)) ds over Re s = c > 0. By Poisson summation the
trapezoid rule of step h = 2π/P returns Σ_m e^{c·m·P}·excess(t + m·P): every alias is positive, so the rule itself is an
upper bound, and Chernoff bounds at smaller and larger abscissae say by how much. What else can go wrong is bounded
term by term: the cut at the frequency Ω, quadrature, and rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.numerics.arrays import ROUNDOFF, Complexes, Floats
from lastiterate.numerics.cumulant import Cumulant, log_aliases, log_less, log_or_lowest, log_peak
from lastiterate.numerics.tilted import Tilted, TooFine, variations

# Fewer measured values leave the bounds between them loose and the cut far out; more take longer to measure.
_PER_OCTAVE = 4
_MESH_RATIO = 2 ** (1 / _PER_OCTAVE)  # so that to double a frequency leads to another one of the mesh
_MOST_WORK = 4_000_000  # node × frequency pairs, for each ratio: about what a lattice would cost
# Of the abscissa, where Chernoff's bound is tried: any will do, each costs a look at the cumulant. Near 1 is for heavy
# tails, whose cumulant explodes soon, far from it for light ones, whose aliases then ask for the shortest period.
_LEFT_FRACTIONS = (0.0, 0.35, 0.65, 0.88)
_RIGHT_FRACTIONS = (1.1, 1.3, 1.7, 2.5)
_MOST_AT_ONCE = 500_000  # threshold × frequency pairs: 4 MB an array; more would leave the cache
# Of the abscissa, at a time: shorter retreats cost more looks, longer ones cancel more than they have to.
_RETREAT = 0.8


@dataclass(frozen=True, eq=False)
class Contour:
    """The line Re s = abscissa, ready to be evaluated at any threshold; sharpest near the one it was drawn for."""

    cumulant: Cumulant
    abscissa: float
    alias_abscissae: tuple[float, float]
    spacing: float
    frequencies: Floats
    log_scale: float  # K(abscissa)
    log_scale_error: float
    ratios: Complexes  # e^{K(c + iω) − K(c)}
    ratio_errors: Floats
    log_cut: float  # log of (1/π)∫_Ω^∞ |ratio|/ω² dω

    def log_upper(self, threshold: float) -> float:
        """log of an upper bound on the excess over `threshold`."""
        return float(self.log_uppers(np.array([threshold]))[0])

    def log_uppers(self, thresholds: Floats) -> Floats:
        """Return `log_upper` of each threshold, in one sum."""
        value, error, exponent, doubt = self._sums(thresholds)
        bound = value + error
        # The exact sum is positive, so a bound that is not (or is not a number) has lost its meaning.
        meant = (bound > 0) & (bound < math.inf)
        return np.where(meant, np.minimum(exponent + doubt + np.log(np.where(meant, bound, 1.0)), 0.0), 0.0)

    def log_lower(self, threshold: float) -> float:
        """log of a lower bound; −∞ where nothing is certain."""
        return float(self.log_lowers(np.array([threshold]))[0])

    def log_lowers(self, thresholds: Floats) -> Floats:
        """Return `log_lower` of each threshold, in one sum."""
        value, error, exponent, doubt = self._sums(thresholds)
        return np.array(
            [self._without_aliases(*one) for one in zip(thresholds, exponent - doubt, value - error, strict=True)]
        )

    def _without_aliases(self, threshold: float, log_scale: float, value: float) -> float:
        taken = log_aliases(self.aliases, self.abscissa, 2 * math.pi / self.spacing, threshold)
        return log_less(log_scale + log_or_lowest(value), taken)

    def _sums(self, thresholds: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(sums, their errors, logs of their scales, errors of those), one for each threshold."""
        step, size = self.spacing / math.pi, np.abs(thresholds)
        terms = np.concatenate([self._terms(few) for few in np.array_split(thresholds, self._parts(thresholds.size))])
        value = step * (0.5 / (self.abscissa * (self.abscissa + 1)) + terms)
        flat, steep = self._error_sums
        error = step * (flat + steep * size) + math.exp(self.log_cut) + 8 * ROUNDOFF * np.abs(value)
        exponent = self.log_scale - self.abscissa * thresholds
        doubt = self.log_scale_error + 4 * ROUNDOFF * (abs(self.log_scale) + self.abscissa * size + 1)
        return value, error, exponent, doubt

    def _parts(self, thresholds: int) -> int:
        return max(1, -(-thresholds * self.frequencies.size // _MOST_AT_ONCE))

    def _terms(self, thresholds: Floats) -> Floats:
        """Σ Re(weighted ratio·e^{−iωt}), the cosines and sines of all thresholds at once."""
        angles = np.multiply.outer(thresholds, self.frequencies)
        weighted = self._weighted_ratios
        return np.asarray((np.cos(angles) * weighted.real + np.sin(angles) * weighted.imag).sum(axis=1))

    @cached_property
    def _weighted_ratios(self) -> Complexes:
        s = self.abscissa + 1j * self.frequencies
        return self.ratios / (s * (s + 1))

    @cached_property
    def _error_sums(self) -> tuple[float, float]:
        """What the terms may err together: at threshold 0, and per unit of threshold."""
        s = self.abscissa + 1j * self.frequencies
        flat = (self.ratio_errors + 16 * ROUNDOFF * np.abs(self.ratios)) / np.abs(s * (s + 1))
        return float(flat.sum()), float((2 * ROUNDOFF * self.frequencies * np.abs(self._weighted_ratios)).sum())

    def log_lower_estimate(self, threshold: float) -> float:
        """Return log of about a lower bound: the aliases are estimated, which takes less time than to bound them."""
        value, error, exponent, doubt = (float(one[0]) for one in self._sums(np.array([threshold])))
        return log_less(exponent - doubt + log_or_lowest(value - error), self.log_alias_estimate(threshold))

    def log_alias_estimate(self, threshold: float) -> float:
        """About how much the aliases add to the upper bound: to decide whether another contour would be sharper."""
        return log_aliases(self._estimated_aliases, self.abscissa, 2 * math.pi / self.spacing, threshold)

    @cached_property
    def _estimated_aliases(self) -> tuple[tuple[float, float], ...]:
        return tuple((a, self.cumulant.scout(a)[0] if a else 0.0) for a in self.alias_abscissae)

    @cached_property
    def aliases(self) -> tuple[tuple[float, float], ...]:
        """(abscissa, bound on K there), from below and from above; only the lower bound needs them."""
        return tuple((a, self.cumulant.log_mgf_above(a)) for a in self.alias_abscissae)


@dataclass(frozen=True)
class Effort:
    """How sharp a contour has to be, and how much cancellation its sum may suffer, both as logarithms."""

    log_tolerance: float
    most_cancelled: float


def draw_contour(
    cumulant: Cumulant, abscissa: float, threshold: float, log_excess: float, effort: Effort
) -> Contour | None:
    """A contour near `abscissa` whose bracket at `threshold`, where the excess is about e^log_excess, is narrow.

    None where that would cost too much: few steps, or an atom, make the transform decay too slowly.
    """
    try:
        return _draw(cumulant, abscissa, threshold, log_excess, effort)
    except TooFine:
        return None


def _draw(cumulant: Cumulant, abscissa: float, threshold: float, log_excess: float, effort: Effort) -> Contour | None:
    log_allowed = log_excess + effort.log_tolerance
    while True:
        left, left_period = _alias(cumulant, abscissa, threshold, log_allowed, _LEFT_FRACTIONS)
        right, right_period = _alias(cumulant, abscissa, threshold, log_allowed, _RIGHT_FRACTIONS)
        nearer = _RETREAT * abscissa
        cancelled = cumulant.scout(nearer)[0] - nearer * threshold - log_excess
        if right_period < 1.5 * left_period or cancelled > effort.most_cancelled:
            break
        abscissa = nearer  # a heavy right tail: the saddle lies where the aliases from above are large
    spacing = 2 * math.pi / max(left_period, right_period)
    still = cumulant.still(abscissa)
    log_scale, log_scale_error = cumulant.of_tilts(abscissa, still)
    highest, log_cut = _cut(cumulant, still, spacing, log_allowed - log_scale + abscissa * threshold)
    if not highest / spacing < _MOST_WORK:
        return None
    frequencies = spacing * np.arange(1, math.ceil(highest / spacing) + 1)
    tilts = cumulant.tilted(abscissa, float(frequencies[-1]), most=_MOST_WORK / frequencies.size)
    ratios, errors = _ratios(cumulant, abscissa, tilts, frequencies)
    return Contour(
        cumulant, abscissa, (left, right), spacing, frequencies, log_scale, log_scale_error, ratios, errors, log_cut
    )


def _alias(
    cumulant: Cumulant, abscissa: float, threshold: float, log_allowed: float, fractions: tuple[float, ...]
) -> tuple[float, float]:
    """The abscissa, among the fractions of this one, whose Chernoff bound asks for the shortest period."""
    periods = []
    for other in (abscissa * fraction for fraction in fractions):
        value = cumulant.scout(other)[0] if other else 0.0
        periods.append(((value - other * threshold + log_peak(other) - log_allowed) / abs(abscissa - other), other))
    period, best = min(periods)
    return best, max(period, 1e-6 / abscissa)


def _cut(cumulant: Cumulant, still: tuple[Tilted, ...], spacing: float, log_allowed: float) -> tuple[float, float]:
    """(Ω, log of the integral beyond Ω): bounded variation far out, a mesh of measured values nearer in."""
    spread = math.sqrt(cumulant.variance + sum(float(t.family.counts @ t.spread() ** 2) for t in still))
    if not spread > 1e-100:
        return math.inf, 0.0
    first = max(5.0 / spread, spacing)  # nearer in, no cut is small enough
    edges = first * _MESH_RATIO ** np.arange(120)
    log_bounds = [log_decay(tilt, edges) for tilt in still]
    highest, _ = _first_allowed(cumulant, still, edges, log_bounds, log_allowed)
    if still and math.isfinite(highest) and highest > 2 * edges[0]:
        mesh = edges[edges <= highest * 1.0001]
        tilts = cumulant.tilted(still[0].abscissa, float(mesh[-1]), log_tolerance=-8.0, most=_MOST_WORK / mesh.size)
        for bound, tilt in zip(log_bounds, tilts, strict=True):
            bound[: mesh.size - 1] = np.minimum(bound[: mesh.size - 1], _measured_decay(tilt, mesh))
    return _first_allowed(cumulant, still, edges, log_bounds, log_allowed)


def _first_allowed(
    cumulant: Cumulant, still: tuple[Tilted, ...], edges: Floats, log_bounds: list[Floats], log_allowed: float
) -> tuple[float, float]:
    log_ratio = -0.5 * cumulant.variance * edges**2
    for tilt, bound in zip(still, log_bounds, strict=True):
        log_ratio = log_ratio + bound @ tilt.family.counts
    log_shell = np.minimum(log_ratio, 0.0) - np.log(edges)
    log_shell[:-1] += math.log(1 - 1 / _MESH_RATIO)
    log_tail = np.logaddexp.accumulate(log_shell[::-1])[::-1] - math.log(math.pi)
    allowed = np.flatnonzero(log_tail <= log_allowed)
    return (float(edges[allowed[0]]), float(log_tail[allowed[0]])) if allowed.size else (math.inf, 0.0)


def log_decay(tilt: Tilted, frequencies: Floats) -> Floats:
    """Bound on log |M(c + iω)/M(c)|, decreasing in ω: one row per frequency, one column per ratio.

    |ratio| ≤ A + V/ω for each of the `variations`. Nearer in, ψ = |ratio|² is a characteristic function, so that
    1 − ψ(ω) ≥ (1 − ψ(nω))/n² for whole n (because 1 − cos nx ≤ n²(1 − cos x)): take n = ⌈Ω/ω⌉, with Ω where A + V/Ω has
    come down to `level`.
    """
    counted, total_variation = (array[:, None, :] for array in variations(tilt))
    omega = frequencies[:, None]
    level = counted + (1 - counted) / math.sqrt(2)
    with np.errstate(divide="ignore", over="ignore"):
        gap = (1 - level**2) / (1 + total_variation / np.maximum(level - counted, 1e-300) / omega) ** 2
        near = 0.5 * np.log1p(-np.maximum(gap.max(axis=0), 0.0))
        return np.minimum(near, np.log(np.minimum((counted + total_variation / omega).min(axis=0), 1.0)))


def _measured_decay(tilt: Tilted, mesh: Floats) -> Floats:
    """Bound on log |ratio| between neighbours of the mesh.

    √(1 − ψ) is subadditive in ω and at most spread·ω, so it cannot fall faster than that between two measured values;
    nor can |ratio| rise faster than excursion·ω, which is the better bound for skewed laws.
    """
    modulus = np.abs(1 + tilt.on_octaves(mesh[0], _PER_OCTAVE, mesh.size)) + tilt.ratio_error(mesh)
    apart = 1.001 * np.diff(mesh)[:, None]
    gap = np.sqrt(np.maximum(1 - modulus**2, 0.0))
    least = np.maximum(0.5 * (gap[1:] + gap[:-1] - tilt.spread() * apart), 0.0)
    most = 0.5 * (modulus[1:] + modulus[:-1] + tilt.excursion() * apart)
    return np.minimum(0.5 * np.log1p(-np.minimum(least**2, 1 - 1e-12)), np.log(most))


def _ratios(
    cumulant: Cumulant, abscissa: float, tilts: tuple[Tilted, ...], frequencies: Floats
) -> tuple[Complexes, Floats]:
    """e^{K(c + iω) − K(c)} and a bound on its error.

    If each modulus is at most r_i and off by at most e_i, the product is off by at most Π(r_i + e_i)^n − Π r_i^n, which
    grows with r_i: raising r_i to 1e-3 keeps it a bound.
    """
    log_ratio = -0.5 * cumulant.variance * frequencies**2 + 1j * cumulant.variance * frequencies * (abscissa + 0.5)
    log_modulus, log_growth = log_ratio.real.copy(), np.zeros_like(frequencies)
    size = np.abs(log_ratio)
    for tilt in tilts:
        minus_one = tilt.on_grid(frequencies[0], frequencies.size)
        error, counts = tilt.ratio_error(frequencies) + 8 * ROUNDOFF * np.abs(minus_one), tilt.family.counts
        log_abs, angle = _polar_of_one_plus(minus_one)
        log_ratio = log_ratio + (log_abs + 1j * angle) @ counts
        size = size + (np.abs(log_abs) + np.abs(angle)) @ counts
        at_least = np.maximum(log_abs, math.log(1e-3))
        log_modulus = log_modulus + at_least @ counts
        log_growth = log_growth + np.log1p(error * np.exp(-at_least)) @ counts
    ratios = np.exp(log_ratio)
    return ratios, np.exp(log_modulus) * np.expm1(log_growth) + 4 * ROUNDOFF * np.abs(ratios) * size


def _polar_of_one_plus(z: Complexes) -> tuple[Floats, Floats]:
    """(log |1 + z|, arg(1 + z)): without cancellation where z is small, to a few ulps of 1 where 1 + z is."""
    a, b = z.real, z.imag
    near_one = 0.5 * np.log1p(np.maximum(2 * a + a * a + b * b, -0.9))
    modulus = np.maximum(np.hypot(1 + a, b), 1e-300)
    return np.where(np.abs(z) < 0.5, near_one, np.log(modulus)), np.arctan2(b, 1 + a)
