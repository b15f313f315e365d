"""Sums of independent variables on a common lattice, through one tilted FFT, with every error on a stated side.

Tilting by e^{cX} puts the bulk where the question is, so that rounding is relative to the answer and not to 1. The FFT
is periodic: what wraps around is bounded by Chernoff's inequality. Rounding is bounded in the 2-norm (Higham, Accuracy
and Stability of Numerical Algorithms, Theorem 24.2: a transform of length N errs by at most about 8u·log₂N).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.cumulant import log_aliases, log_less, log_or_lowest, log_peak
from lastiterate.numerics.roots import positive_guess
from lastiterate.numerics.rounding import up

_LARGEST_TRANSFORM = 2**22  # 32 MB an array: longer ones would be slow; what wraps around is charged
# Of what wraps around: far below the 1e-6 of discretising; less is a longer transform.
_LOG_RELATIVE_TOLERANCE = math.log(1e-10)
_LONGEST_KERNEL = 46.0  # e^−46 = 1e-20 is far below an ulp of the sum, and charged; longer is slower
# Of the abscissa, where Chernoff's bound is tried for what wraps around: any will do, each costs a pass over the
# masses.
_LEFT_FRACTIONS = (0.0, 0.5, 0.85)
_RIGHT_FRACTIONS = (1.1, 1.3, 1.8)

_UNDERFLOWN = 1e-290  # added to every sum of products, some of which may have been rounded to 0


@dataclass(frozen=True, eq=False)
class Masses:
    """Mass masses[i] at first + i·spacing; what is missing from 1 is nowhere, `infinite` of it at +∞."""

    first: float
    spacing: float
    masses: Floats
    infinite: float = 0.0

    @cached_property
    def points(self) -> Floats:
        return self.first + self.spacing * np.arange(self.masses.size)

    @cached_property
    def log_masses(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    def log_mgf(self, abscissa: float) -> float:
        """log Σ mass·e^{abscissa·point}."""
        log_terms = self.log_masses + abscissa * self.points
        top = float(log_terms.max())
        return top + math.log(float(np.exp(log_terms - top).sum()))

    def tilt_error(self, abscissa: float) -> float:
        """Bound on the relative rounding error of the tilted masses that matter."""
        tilted = self.tilted(abscissa)[1]
        exponents = np.abs(self.log_masses) + abscissa * np.abs(self.points)
        largest = float(exponents.max(where=tilted > 1e-18, initial=0.0))
        return ROUNDOFF * (64 + 4 * largest) + 1e-18 * tilted.size

    def tilted(self, abscissa: float) -> tuple[float, Floats]:
        """(log Σ mass·e^{abscissa·point}, the tilted law)."""
        log_terms = self.log_masses + abscissa * self.points
        top = float(log_terms.max())
        weights = np.exp(log_terms - top)
        total = float(weights.sum())
        return top + math.log(total), weights / total


@dataclass(frozen=True, eq=False)
class LatticeSum:
    """X = Σ counts[i] copies of parts[i], all independent."""

    parts: tuple[Masses, ...]
    counts: tuple[int, ...]

    @property
    def spacing(self) -> float:
        return self.parts[0].spacing

    @property
    def first(self) -> float:
        return math.fsum(n * part.first for n, part in zip(self.counts, self.parts, strict=True))

    @property
    def last(self) -> float:
        """The largest finite value of X."""
        return math.fsum(n * float(part.points[-1]) for n, part in zip(self.counts, self.parts, strict=True))

    @property
    def mean(self) -> float:
        """The mean of the finite part."""
        return sum(n * float(part.masses @ part.points) for n, part in zip(self.counts, self.parts, strict=True))

    @property
    def infinite(self) -> float:
        """P(X = ∞), rounded up."""
        if any(part.infinite >= 1 for part in self.parts):
            return 1.0
        log_finite = sum(n * math.log1p(-p.infinite) for n, p in zip(self.counts, self.parts, strict=True))
        return up(-math.expm1(log_finite))

    def cumulant(self, abscissa: float) -> tuple[float, float, float]:
        """K, K' and K'' of the finite part."""
        value = slope = curvature = 0.0
        for n, part in zip(self.counts, self.parts, strict=True):
            log_mass, tilted = part.tilted(abscissa)
            mean = float(tilted @ part.points)
            value += n * log_mass
            slope += n * mean
            curvature += n * max(float(tilted @ (part.points * part.points)) - mean**2, 0.0)
        return value, slope, curvature

    def log_mgf(self, abscissa: float) -> float:
        """K alone."""
        return sum(n * part.log_mgf(abscissa) for n, part in zip(self.counts, self.parts, strict=True))

    def saddle_at(self, threshold: float) -> float:
        """Where e^{K(s) − s·threshold}/(s(s + 1)) is least, s > 0."""

        def newton(c: float) -> tuple[float, float]:
            _, slope, curvature = self.cumulant(c)
            return slope - 1 / c - 1 / (1 + c) - threshold, c * (curvature + c**-2 + (1 + c) ** -2)

        return positive_guess(newton)

    def log_estimate(self, threshold: float) -> float:
        """The saddle-point estimate of the log excess over `threshold`, without certificate."""
        return self._log_estimate_at(self.saddle_at(threshold), threshold)

    def threshold_estimate(self, log_excess: float) -> float:
        """About the threshold with this log excess, 0 at least: the saddle point is sought instead."""

        def newton(c: float) -> tuple[float, float]:
            value = log_excess - self._log_estimate_at(c, self._threshold_at(c))
            return value, max(value, 1.0)

        return max(self._threshold_at(positive_guess(newton)), 0.0)

    def _threshold_at(self, abscissa: float) -> float:
        return self.cumulant(abscissa)[1] - 1 / abscissa - 1 / (1 + abscissa)

    def _log_estimate_at(self, abscissa: float, threshold: float) -> float:
        value, _, curvature = self.cumulant(abscissa)
        spread = curvature + abscissa**-2 + (1 + abscissa) ** -2
        return value - abscissa * threshold - math.log(abscissa * (1 + abscissa)) - 0.5 * math.log(2 * math.pi * spread)

    def tilt_for(self, threshold: float, abscissa: float | None = None) -> TiltedSum:
        """The law of X, tilted and transformed so that the excess over `threshold` and its neighbours is sharp."""
        abscissa = abscissa or self.saddle_at(threshold)
        log_mgf = self.log_mgf(abscissa)
        guess = log_mgf - abscissa * threshold + log_peak(abscissa)
        left, right, period = self._aliases(abscissa, threshold, guess - 7.0 + _LOG_RELATIVE_TOLERANCE)
        span = int(min(max(period / self.spacing, 64.0), _LARGEST_TRANSFORM))
        law, error = self._tilted_law(abscissa, fft.next_fast_len(span, real=True))
        per_step = sum(n * part.tilt_error(abscissa) for n, part in zip(self.counts, self.parts, strict=True))
        slack = 2 * per_step + 16 * ROUNDOFF * (abs(log_mgf) + 64)
        aliases = tuple((other, self.log_mgf(other) + 1e-12) for other in (left, right))
        return TiltedSum(self, abscissa, log_mgf, slack, law, error, aliases)

    def _aliases(self, abscissa: float, threshold: float, log_allowed: float) -> tuple[float, float, float]:
        """Abscissae on both sides whose Chernoff bounds ask for the shortest period, and that period."""
        best = []
        for fractions in (_LEFT_FRACTIONS, _RIGHT_FRACTIONS):
            periods = []
            for other in (abscissa * f for f in fractions):
                bound = self.log_mgf(other) - other * threshold + log_peak(other)
                periods.append(((bound - log_allowed) / abs(abscissa - other), other))
            best.append(min(periods))
        return best[0][1], best[1][1], max(best[0][0], best[1][0])

    def _tilted_law(self, abscissa: float, length: int) -> tuple[Floats, float]:
        """The tilted law of X modulo `length`, and a bound on the 2-norm of its error."""
        spectrum = np.ones(length // 2 + 1, complex)
        unit = 8 * ROUNDOFF * math.log2(length)
        error = unit
        for n, part in zip(self.counts, self.parts, strict=True):
            _, tilted = part.tilted(abscissa)
            padded = np.zeros(-(-tilted.size // length) * length)
            padded[: tilted.size] = tilted
            folded = padded.reshape(-1, length).sum(axis=0)
            spectrum *= fft.rfft(folded) ** n
            # |φ| ≤ 1, so an error e in φ becomes at most n·e·(1 + e)^{n−1}.
            relative = unit * float(np.linalg.norm(folded)) + part.tilt_error(abscissa)
            error += n * relative * math.exp(n * relative) + 8 * ROUNDOFF * n
        return fft.irfft(spectrum, length), 2 * error


@dataclass(frozen=True, eq=False)
class TiltedSum:
    """The periodic tilted law of a lattice sum, ready to be asked about any threshold."""

    total: LatticeSum
    abscissa: float
    log_scale: float
    log_scale_error: float
    law: Floats
    law_error: float  # bound on the 2-norm
    aliases: tuple[tuple[float, float], ...]  # (abscissa, bound on K there), from below and from above

    def log_upper(self, threshold: float) -> float:
        """log of an upper bound on E(1 − e^{threshold − X})_+, with what is at +∞."""
        value, doubt, exponent, slack, wrapped = self._sum(threshold)
        bound = value + doubt
        if not 0 < bound < math.inf:  # the exact sum is positive: nothing is known
            return 0.0
        finite = np.logaddexp(exponent + slack + math.log(bound), wrapped)
        return min(float(np.logaddexp(finite, log_or_lowest(self.total.infinite))), 0.0)

    def log_uppers(self, thresholds: Floats) -> Floats:
        """Return what `log_upper` says for each threshold."""
        return np.array([self.log_upper(threshold) for threshold in thresholds.tolist()])

    def doubtful(self, threshold: float) -> bool:
        """Whether rounding or what wraps around makes a thousandth of the bound, or the lattice is as coarse as that."""
        value, doubt, exponent, _, wrapped = self._sum(threshold)
        coarse = 0 < threshold < 100 * self.total.spacing
        return coarse or not doubt <= 1e-3 * value or wrapped > exponent + math.log(1e-3 * value)

    def log_lower(self, threshold: float) -> float:
        """log of a lower bound, without what is at +∞."""
        value, doubt, exponent, slack, wrapped = self._sum(threshold)
        return log_less(exponent - slack + log_or_lowest(value - doubt), wrapped)

    @cached_property
    def _unrolled(self) -> Floats:
        """Two periods of the law, so that every window is a slice."""
        return np.concatenate([self.law, self.law])

    def _sum(self, threshold: float) -> tuple[float, float, float, float, float]:
        spacing, length = self.total.spacing, self.law.size
        offset = math.ceil((threshold - self.total.first) / spacing)
        counted = min(length, math.ceil(_LONGEST_KERNEL / (self.abscissa * spacing)))
        heights = np.maximum(self.total.first + spacing * (offset + np.arange(counted)) - threshold, 0.0)
        kernel = np.exp(-self.abscissa * heights) * -np.expm1(-heights)
        start = offset % length
        value = float(self._unrolled[start : start + counted] @ kernel)
        doubt = self.law_error * float(np.linalg.norm(kernel)) + 1e-13 * abs(value) + 2 * math.exp(-_LONGEST_KERNEL)
        exponent = self.log_scale - self.abscissa * threshold
        slack = self.log_scale_error + 16 * ROUNDOFF * self.abscissa * (abs(threshold) + abs(self.total.first))
        return value, doubt, exponent, slack, log_aliases(self.aliases, self.abscissa, length * spacing, threshold)


@dataclass(frozen=True, eq=False)
class DirectSum:
    """The law of a lattice sum without a transform: sums of products that are not negative keep their digits, however small.

    A transform loses what is below an ulp of its largest entry. Where one large step alone makes a small probability, no
    tilt brings both to one size. What is below the first point was raised to it, what is above the last is at +∞.
    """

    law: Masses

    @classmethod
    def of(cls, total: LatticeSum, low: float, high: float) -> DirectSum:
        """The sum, from `low` to `high`: by squaring, so that a thousand copies are a score of convolutions."""
        law: Masses | None = None
        for part, count in zip(total.parts, total.counts, strict=True):
            power, left = part, count
            while left:
                if left % 2:
                    law = power if law is None else _convolved(law, power, low, high)
                left //= 2
                power = _convolved(power, power, low, high) if left else power
        return cls(total.parts[0] if law is None else law)

    def log_upper(self, threshold: float) -> float:
        """log of an upper bound on E(1 − e^{threshold − X})_+, with what is at +∞."""
        points = self.law.points
        doubt = 64 * ROUNDOFF * (abs(threshold) + float(np.abs(points).max()))
        heights = np.maximum(points - threshold + doubt, 0.0)
        found = float(self.law.masses @ -np.expm1(-heights)) * (1 + 2 * ROUNDOFF * (points.size + 4))
        return min(log_or_lowest(up(found + self.law.infinite)) + 1e-15, 0.0)


def _convolved(one: Masses, two: Masses, low: float, high: float) -> Masses:
    """The sum of both, rounded up, cut to what lies between `low` and `high`."""
    first, spacing = one.first + two.first, one.spacing
    masses = np.convolve(one.masses, two.masses)
    masses = masses * (1 + 2 * ROUNDOFF * (min(one.masses.size, two.masses.size) + 4)) + _UNDERFLOWN
    end = min(max(math.floor((high - first) / spacing) + 1, 1), masses.size)
    begin = min(max(math.floor((low - first) / spacing), 0), end - 1)
    infinite = up(one.infinite + two.infinite + float(masses[end:].sum()), by=ROUNDOFF * (masses.size + 4))
    kept = masses[begin:end].copy()
    kept[0] += float(masses[:begin].sum()) * (1 + ROUNDOFF * (masses.size + 4))
    return Masses(first + begin * spacing, spacing, kept, infinite)


def lattice_sum(parts: Sequence[tuple[Masses, int]]) -> LatticeSum:
    return LatticeSum(tuple(p for p, _ in parts), tuple(n for _, n in parts))
