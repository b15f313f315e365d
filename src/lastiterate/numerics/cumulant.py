"""The cumulant generating function of a sum of independent log-likelihood ratios: normal ones, and families of mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from lastiterate.numerics.mixture_ratio import Family
from lastiterate.numerics.roots import positive_guess
from lastiterate.numerics.tilted import Tilted, TooFine, tilted

_LOG_TOLERANCE = -30.0  # of quadrature: e^−30 = 1e-13 is below what contours are drawn to, 1e-11, and above rounding
_LARGEST_START = 50.0  # an abscissa: at −log(excess) the threshold is mostly near 1; larger ones take more nodes
_MOST_KEPT = 64  # saddle points, of two numbers each: a search for a window asks for fewer
# A curvature that falls by 2.5 when the abscissa falls by 15 % is that of a far part. No proof is behind the two
# numbers: where a saddle ends up decides how sharp a bracket is, not whether it holds.
_RETREAT, _EXPLOSION = 0.85, 2.5


@dataclass(frozen=True, eq=False)
class Cumulant:
    """K(s) = variance·s(s + 1)/2 + Σ counts·log M(s); every summand has E e^{−L} ≤ 1."""

    families: tuple[Family, ...]
    variance: float
    _still: dict[float, tuple[Tilted, ...]] = field(default_factory=dict, init=False, repr=False)
    _saddles: dict[float, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    def scout(self, abscissa: float) -> tuple[float, float, float]:
        """K, K', K'' without certificate: good enough to choose where to work."""
        found = [family.scout(abscissa) for family in self.families]
        normal = self.variance * abscissa * (abscissa + 1) / 2, self.variance * (abscissa + 0.5), self.variance
        value, slope, curvature = map(sum, zip(normal, *found, strict=True))
        return value, slope, curvature

    def tilted(
        self, abscissa: float, frequency: float, log_tolerance: float = _LOG_TOLERANCE, most: float = math.inf
    ) -> tuple[Tilted, ...]:
        """Each family at the tilt; the tolerance is for the whole product, so each ratio gets its share."""
        return tuple(
            tilted(family, abscissa, frequency, log_tolerance - math.log(family.counts.sum()), most)
            for family in self.families
        )

    def still(self, abscissa: float) -> tuple[Tilted, ...]:
        """Each family at the tilt and at no frequency: several contours are drawn at one abscissa."""
        if abscissa not in self._still:
            found = self.tilted(abscissa, 0.0)
            self._still.clear()
            self._still[abscissa] = found
        return self._still[abscissa]

    def certified(self, abscissa: float) -> tuple[float, float]:
        """(K(abscissa), bound on its error)."""
        return self.of_tilts(abscissa, self.tilted(abscissa, 0.0))

    def of_tilts(self, abscissa: float, tilts: tuple[Tilted, ...]) -> tuple[float, float]:
        value = self.variance * abscissa * (abscissa + 1) / 2
        error = 8e-16 * value
        for tilt in tilts:
            value += float(tilt.family.counts @ tilt.log_mgf)
            error += float(tilt.family.counts @ (tilt.log_mgf_error + 4e-16 * np.abs(tilt.log_mgf)))
        return value, error

    def log_mgf_above(self, abscissa: float) -> float:
        """An upper bound on K(abscissa), ∞ where it would be too costly to know."""
        if abscissa == 0:
            return 0.0
        try:
            return sum(self.certified(abscissa))
        except TooFine:
            return math.inf

    def log_excess_bound(self, threshold: float, abscissa: float) -> float:
        """log of Chernoff's bound on E(1 − e^{threshold − X})_+."""
        return min(self.log_mgf_above(abscissa) - abscissa * threshold + log_peak(abscissa), 0.0)

    def saddle_at(self, threshold: float) -> float:
        """The abscissa where e^{K(s) − s·threshold}/(s(s + 1)) is least on the positive axis."""

        def newton(c: float) -> tuple[float, float]:
            _, slope, curvature = self.scout(c)
            return slope - 1 / c - 1 / (1 + c) - threshold, c * _width(c, curvature)

        return self._before_the_tail(positive_guess(newton))

    def saddle_for(self, log_excess: float) -> tuple[float, float]:
        """(abscissa, threshold) at which the saddle-point estimate of the excess is e^log_excess; the last are kept."""
        if log_excess not in self._saddles:
            for oldest in list(self._saddles)[: 1 - _MOST_KEPT]:
                self._saddles.pop(oldest, None)
            self._saddles[log_excess] = self._saddle_for(log_excess)
        return self._saddles[log_excess]

    def _saddle_for(self, log_excess: float) -> tuple[float, float]:

        def newton(c: float) -> tuple[float, float]:
            value, slope, curvature = self.scout(c)
            threshold = slope - 1 / c - 1 / (1 + c)
            return log_excess - _log_estimate(c, threshold, value, curvature), c * c * _width(c, curvature)

        abscissa = self._before_the_tail(positive_guess(newton, min(max(-log_excess, 1.0), _LARGEST_START)))
        return abscissa, (self.log_estimate(abscissa, 0.0) - log_excess) / abscissa

    def _before_the_tail(self, abscissa: float) -> float:
        """Step back from an abscissa at which a rare, far part of the law takes over.

        There the curvature explodes and saddle-point estimates mean nothing; a smaller abscissa serves as well.
        """
        curvature = self.scout(abscissa)[2]
        while (nearer := self.scout(_RETREAT * abscissa)[2]) * _EXPLOSION < curvature:
            abscissa, curvature = _RETREAT * abscissa, nearer
        return abscissa

    def log_estimate(self, abscissa: float, threshold: float) -> float:
        """The saddle-point estimate of the log excess, best where the abscissa is the saddle of the threshold."""
        value, _, curvature = self.scout(abscissa)
        return _log_estimate(abscissa, threshold, value, curvature)


def _width(abscissa: float, curvature: float) -> float:
    return curvature + abscissa**-2 + (1 + abscissa) ** -2


def _log_estimate(abscissa: float, threshold: float, value: float, curvature: float) -> float:
    peak = value - abscissa * threshold - math.log(abscissa * (1 + abscissa))
    return peak - 0.5 * math.log(2 * math.pi * _width(abscissa, curvature))


# What the two ways of computing E(1 − e^{t − X})_+ share: Chernoff's bounds, aliases, and care with logarithms.


LONGEST_EXTRAPOLATION = 3.0
"""In units of 1/abscissa, from the threshold something was drawn for: it holds farther off, but aliases and rounding
are e³ times larger there. Less means to draw more often; a choice of effort."""


def log_peak(abscissa: float) -> float:
    """log of the maximum of (1 − e^{−u})·e^{−abscissa·u} over u ≥ 0."""
    if abscissa == 0:
        return 0.0
    return abscissa * math.log(abscissa) - (1 + abscissa) * math.log1p(abscissa)


def log_aliases(aliases: tuple[tuple[float, float], ...], abscissa: float, period: float, threshold: float) -> float:
    """log of Σ_{m ≠ 0} e^{abscissa·m·period}·excess(threshold + m·period), bounded with Chernoff at each (a, K(a))."""
    total = -math.inf
    for other, log_mgf in aliases:
        decay = abs(other - abscissa) * period
        bound = log_mgf + log_peak(other) - other * threshold - decay - math.log(-math.expm1(-decay))
        total = float(np.logaddexp(total, bound))
    return total


def log_or_lowest(value: float) -> float:
    """log, −∞ for what is not positive."""
    return math.log(value) if value > 0 else -math.inf


def log_less(log_value: float, log_taken: float) -> float:
    """log(e^log_value − e^log_taken), −∞ where nothing is left."""
    if log_taken >= log_value:
        return -math.inf
    return log_value + math.log(-math.expm1(log_taken - log_value))
