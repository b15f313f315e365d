"""Sums of independent log-likelihood ratios: brackets on the excess E(1 − e^{t − X})_+, and on the t that gives one.

A contour at the saddle point where the transform decays (many steps), a lattice where it does not (few steps, atoms).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.bracketed import Bracketed, exactly
from lastiterate.numerics.contour import Contour, Effort, draw_contour
from lastiterate.numerics.cumulant import LONGEST_EXTRAPOLATION, Cumulant, log_peak
from lastiterate.numerics.discretise import MixedRatio, Ratio, from_above, from_below
from lastiterate.numerics.lattice import DirectSum, LatticeSum, Masses, TiltedSum, lattice_sum
from lastiterate.numerics.mixture_ratio import MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, Family
from lastiterate.numerics.normal_gap import threshold_above
from lastiterate.numerics.roots import FARTHEST, decreasing_crossing
from lastiterate.numerics.rounding import up

# The sharpest that is not too costly. Terms that cancel e^9, e^14 or e^20 lose so many ulps: no more than the tolerance
# beside.
_EFFORTS = (Effort(math.log(1e-11), 9.0), Effort(math.log(1e-9), 14.0), Effort(math.log(1e-7), 20.0))
# A contour that brackets a threshold quickly, to about 1e-4 of the excess; and how much wider the bracket is made, so that
# it holds a threshold that a lattice found, too.
_ROUGH, _ROUGH_MARGIN = Effort(math.log(1e-4), 20.0), 1e-5
_NARROW = 2e-7  # of the excess: aliases below it move ε by less than anyone sees, and are not worth another contour
_REUSABLE = 1e-6  # width in log excess: what is looser than that is drawn anew, what is sharper saves the work
_MOST_CELLS = 2**20  # of one step: a quarter of the largest transform; fewer are coarser, and so looser, in long ranges
_MOST_KEPT = 12  # of what was drawn and solved: a search comes back to fewer, and each holds up to millions of numbers
# Of a law without a transform: a convolution takes the square of it. Down to such an excess no product underflows.
_DIRECT_CELLS, _DEEPEST = 4096, -400.0
# Of the way to the smallest: farther apart the curve is loose between, closer is slower.
_CURVE_LEVELS = (0.15, 0.4, 0.7, 1.0)


@dataclass(frozen=True, eq=False)
class LatticePair:
    """The sum on a lattice, from above, and from below where that is asked for."""

    above: TiltedSum
    from_below: Callable[[], TiltedSum]

    @cached_property
    def below(self) -> TiltedSum:
        return self.from_below()

    def log_upper(self, threshold: float) -> float:
        return self.above.log_upper(threshold)

    def log_uppers(self, thresholds: Floats) -> Floats:
        return self.above.log_uppers(thresholds)

    def log_lower(self, threshold: float) -> float:
        return self.below.log_lower(threshold)


Numerics = Contour | LatticePair
Discretise = Callable[[Ratio | MixedRatio, float, float, float], Masses]


@dataclass(frozen=True, eq=False)
class RatioSum:
    """X = Σ counts copies of each ratio, plus a normal ratio of the given variance."""

    ratios: tuple[tuple[Ratio | MixedRatio, int], ...]
    variance: float = 0.0
    _drawn: list[tuple[float, float, Numerics]] = field(default_factory=list, init=False, repr=False)
    _solved: dict[float, tuple[float, Numerics]] = field(default_factory=dict, init=False, repr=False)
    _rough: dict[float, tuple[float, float] | None] = field(default_factory=dict, init=False, repr=False)
    _direct: dict[float, DirectSum] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def cumulant(self) -> Cumulant:
        plain = [(ratio, n) for ratio, n in self.ratios if isinstance(ratio, Ratio)]
        families = []
        for shape in {ratio.shape for ratio, _ in plain}:
            members = [(ratio, n) for ratio, n in plain if ratio.shape == shape]
            families.append(_family([ratio for ratio, _ in members], [n for _, n in members]))
        mixed = [(ratio, n) for ratio, n in self.ratios if isinstance(ratio, MixedRatio)]
        families.extend(_family(ratio.parts, [n], np.array(ratio.shares)) for ratio, n in mixed)
        return Cumulant(tuple(families), self.variance)

    @cached_property
    def ceiling(self) -> float:
        """The supremum of X."""
        if self.variance or any(ratio.shape is not NORMAL_OVER_MIXTURE for ratio, _ in self.ratios):
            return math.inf
        return up(math.fsum(-n * math.log1p(-ratio.weight) for ratio, n in self.ratios), operations=50)

    @property
    def _highest(self) -> float:
        return min(self.ceiling, FARTHEST)

    def log_upper(self, threshold: float) -> float:
        """log of an upper bound on the excess over `threshold`."""
        if threshold >= self.ceiling:
            return -math.inf
        drawn = self._sharp_at(threshold)
        return self._directly(drawn, threshold, drawn.log_upper(threshold))

    def _directly(self, drawn: Numerics, threshold: float, bound: float) -> float:
        """This bound on the log excess, or a better one without a transform where a transform leaves it in doubt."""
        if isinstance(drawn, Contour) or not drawn.above.doubtful(threshold):
            return bound
        while bound > _DEEPEST:
            level = _level(bound)
            bound = min(bound, self._direct_law(level).log_upper(threshold))
            if _level(bound) == level:
                break
        return bound

    def _direct_law(self, log_excess: float) -> DirectSum:
        """The sum on a lattice that reaches far enough for this excess."""
        if log_excess not in self._direct:
            for oldest in list(self._direct)[: 1 - _MOST_KEPT]:
                self._direct.pop(oldest, None)
            self._direct[log_excess] = self._direct_anew(log_excess)
        return self._direct[log_excess]

    def _direct_anew(self, log_excess: float) -> DirectSum:
        """From so far below the mean to so far above it that what is left out is a thousandth of the excess."""
        parts = [*self.ratios, *([(_normal_ratio(self.variance), 1)] if self.variance else [])]
        reach = math.sqrt(2 * (7.0 - log_excess + math.log(sum(n for _, n in parts))))
        ranges = [ratio.range(reach) for ratio, _ in parts]
        farthest = max(high for _, high in ranges)
        ranges = [(max(low, -farthest - 1e-9), high) for low, high in ranges]
        rough = max(high - low for low, high in ranges) / _DIRECT_CELLS
        _, mean, variance = lattice_sum(
            [(from_above(r, rough, *ends), n) for (r, n), ends in zip(parts, ranges, strict=True)]
        ).cumulant(0.0)
        low, high = mean - reach * math.sqrt(variance), mean + reach * math.sqrt(variance) + farthest
        spacing = max((high - low) / _DIRECT_CELLS, rough)
        total = lattice_sum([(from_above(r, spacing, *ends), n) for (r, n), ends in zip(parts, ranges, strict=True)])
        return DirectSum.of(total, low, high)

    def log_upper_many(self, thresholds: Floats) -> Floats:
        """Return `log_upper` of many thresholds, as sharp: what is drawn for one serves all that it is sharp at."""
        bounds = np.where(thresholds >= self.ceiling, -np.inf, 0.0)
        open_ = np.flatnonzero(thresholds < self.ceiling)
        open_ = open_[np.argsort(thresholds[open_])]
        known = list(self._drawn)
        while open_.size:
            drawn_at, abscissa, drawn = known.pop() if known else self._drawn_for(thresholds[open_])
            apart = np.abs(thresholds[open_] - drawn_at) * abscissa
            few = open_[apart <= LONGEST_EXTRAPOLATION]
            if few.size:
                bounds[few] = np.minimum(bounds[few], drawn.log_uppers(thresholds[few]))
                served = few[self._sharp(drawn, thresholds[few], drawn_at, bounds[few])]
                open_ = np.setdiff1d(open_, served)
                open_ = open_[np.argsort(thresholds[open_])]
        return bounds

    @staticmethod
    def _sharp(drawn: Numerics, thresholds: Floats, drawn_at: float, upper: Floats) -> NDArray[np.bool_]:
        """Where nothing sharper is to be expected: what was drawn for a threshold is the best there is for it."""
        if isinstance(drawn, Contour):
            return (upper - drawn.log_lowers(thresholds) < _REUSABLE) | (thresholds == drawn_at)
        return np.abs(thresholds - drawn_at) <= 0.5 * np.maximum(thresholds, drawn_at)

    def _drawn_for(self, increasing: Floats) -> tuple[float, float, Numerics]:
        """Drawn for a threshold as far beyond the first as one that the first is still near to."""
        first = float(increasing[0])
        reach = LONGEST_EXTRAPOLATION / self.cumulant.saddle_at(first)
        ahead = float(increasing[increasing <= first + 0.6 * reach][-1])
        abscissa = self.cumulant.saddle_at(ahead)
        if not (ahead - first) * abscissa <= 0.9 * LONGEST_EXTRAPOLATION:
            ahead, abscissa = first, self.cumulant.saddle_at(first)
        return ahead, abscissa, self._draw(abscissa, ahead, self.cumulant.log_estimate(abscissa, ahead))

    def log_lower(self, threshold: float) -> float:
        """log of a lower bound on it."""
        if threshold >= self.ceiling:
            return -math.inf
        return self._sharp_at(threshold).log_lower(threshold)

    def log_chernoff(self, threshold: float, enough: float) -> float:
        """log of Chernoff's upper bound on the excess: loose, but certified and quick.

        The best abscissa is sought only if a first guess does not bring the bound down to `enough`.
        """
        if threshold >= self.ceiling:
            return -math.inf
        bound = self.cumulant.log_excess_bound(threshold, 3 * -enough / threshold) if threshold > 0 > enough else 0.0
        if bound <= enough:
            return bound
        abscissa, bound = self.cumulant.saddle_at(threshold), 0.0
        for retreat in (1.0, 0.1, 0.01, 0.001):  # near the ceiling the best abscissa may be too large to integrate at
            bound = bound or self.cumulant.log_excess_bound(threshold, retreat * abscissa)
        return bound

    def log_estimate(self, threshold: float) -> float:
        """The saddle-point estimate of the log excess over `threshold`, without certificate."""
        return self.cumulant.log_estimate(self.cumulant.saddle_at(threshold), threshold)

    def renyi_upper(self, order: float) -> float:
        """An upper bound on log E e^{(order − 1)X}/(order − 1).

        Where that is too costly, what the plain normal pairs would give: mixing can only lower the divergence.
        """
        by_mixtures = self.cumulant.log_mgf_above(order - 1) / (order - 1)
        by_normals = 0.5 * order * (self.variance + sum(n * ratio.distance**2 for ratio, n in self.ratios))
        return up(min(by_mixtures, by_normals), operations=5)

    def threshold_upper(self, log_excess: float) -> float:
        """An upper bound on the least t ≥ 0 whose excess is at most e^log_excess.

        Beyond the range of floats, that of the plain normal pairs: mixing can only lower it.
        """
        try:
            upper, drawn = self._solve(log_excess)
            if isinstance(drawn, Contour) or log_excess <= _DEEPEST or not drawn.above.doubtful(min(upper, FARTHEST)):
                return upper
            law, most = self._direct_law(_level(log_excess)), min(upper, self._highest)
            if law.log_upper(most) > log_excess:
                return upper
            return decreasing_crossing(
                lambda t: law.log_upper(t) - log_excess, 0.0, most, most, most / 2, _closeness(drawn)
            )
        except OverflowError:
            square = self.variance + sum(n * ratio.distance**2 for ratio, n in self.ratios)
            return float(threshold_above(log_excess, up(math.sqrt(square))))

    def threshold_bracketed(self, log_excess: float) -> Bracketed:
        """`threshold_upper`, between what a rough contour says of it: a tenth of the work, and often enough to compare.

        The lower end relies on estimates of aliases.
        """
        if log_excess not in self._rough:
            for oldest in list(self._rough)[: 1 - _MOST_KEPT]:
                self._rough.pop(oldest, None)
            self._rough[log_excess] = self._roughly(log_excess)
        ends = self._rough[log_excess]
        if ends is None or log_excess in self._solved:
            return exactly(self.threshold_upper(log_excess))
        return Bracketed(*ends, lambda: self.threshold_upper(log_excess))

    def _roughly(self, log_excess: float) -> tuple[float, float] | None:
        """Return two numbers around the threshold, None where a rough contour is not to be had."""
        try:
            abscissa, guess = self.cumulant.saddle_for(log_excess)
        except OverflowError:
            return None
        guess = min(max(guess, 0.0), 0.999 * self._highest)
        drawn = draw_contour(self.cumulant, abscissa, guess, log_excess, _ROUGH)
        if drawn is None:
            return None

        def crossing(bound: Callable[[float], float], level: float) -> float:
            closeness = _ROUGH_MARGIN / 10
            return decreasing_crossing(lambda t: bound(t) - level, 0.0, self._highest, guess, 0.1 / abscissa, closeness)

        low = crossing(drawn.log_lower_estimate, log_excess + _ROUGH_MARGIN)
        high = crossing(drawn.log_upper, log_excess - _ROUGH_MARGIN)
        return (low, high) if drawn.log_upper(high) < log_excess else None

    def threshold_lower(self, log_excess: float) -> float:
        """A lower bound on it."""
        upper, drawn = self._solve(log_excess)
        if upper == math.inf:
            return 0.0
        step = 1e-10 * max(upper, 1e-10)
        lower = decreasing_crossing(
            lambda t: log_excess - drawn.log_lower(-t), -upper, 0.0, -upper, step, _closeness(drawn)
        )
        return abs(lower)

    def _solve(self, log_excess: float) -> tuple[float, Numerics]:
        if log_excess not in self._solved:
            for oldest in list(self._solved)[: 1 - _MOST_KEPT]:
                self._solved.pop(oldest, None)
            self._solved[log_excess] = self._solve_anew(log_excess)
        return self._solved[log_excess]

    def _solve_anew(self, log_excess: float) -> tuple[float, Numerics]:
        abscissa, guess = self.cumulant.saddle_for(log_excess)
        guess = min(max(guess, 0.0), 0.999 * self._highest)
        drawn = self._draw(abscissa, guess, log_excess)
        upper = self._crossing(drawn, log_excess, guess, abscissa)
        far = upper < math.inf and abs(upper - guess) * abscissa > LONGEST_EXTRAPOLATION
        if far and isinstance(drawn, Contour) and drawn.log_alias_estimate(upper) > log_excess + math.log(_NARROW):
            abscissa = self.cumulant.saddle_at(upper)
            drawn = self._draw(abscissa, upper, log_excess)
            upper = min(upper, self._crossing(drawn, log_excess, upper, abscissa))
        return min(upper, self._chernoff_threshold(log_excess, abscissa)) if upper == math.inf else upper, drawn

    def _chernoff_threshold(self, log_excess: float, abscissa: float) -> float:
        """Where Chernoff's bound at this abscissa comes down to e^log_excess: for when nothing finer is certain."""
        bound = self.cumulant.log_mgf_above(abscissa) + log_peak(abscissa) - log_excess
        return min(max(up(bound / abscissa, operations=50), 0.0), self.ceiling)

    def _crossing(self, drawn: Numerics, log_excess: float, guess: float, abscissa: float) -> float:
        crossing = decreasing_crossing(
            lambda t: drawn.log_upper(t) - log_excess, 0.0, self._highest, guess, 0.1 / abscissa, _closeness(drawn)
        )
        return crossing if crossing >= self.ceiling or drawn.log_upper(crossing) <= log_excess else math.inf

    def _sharp_at(self, threshold: float) -> Numerics:
        for drawn_at, abscissa, drawn in self._drawn:
            near = _near(np.array([threshold]), drawn_at, abscissa)[0]
            if near and (isinstance(drawn, LatticePair) or _width(drawn, threshold) < _REUSABLE):
                return drawn
        abscissa = self.cumulant.saddle_at(threshold)
        return self._draw(abscissa, threshold, self.cumulant.log_estimate(abscissa, threshold))

    def _draw(self, abscissa: float, threshold: float, log_excess: float) -> Numerics:
        drawn: Numerics | None = None
        for effort in _EFFORTS:
            drawn = drawn or draw_contour(self.cumulant, abscissa, threshold, log_excess, effort)
        drawn = drawn or self._lattice_pair(abscissa, threshold, log_excess)
        self._drawn.append((threshold, abscissa, drawn))
        del self._drawn[:-_MOST_KEPT]
        return drawn

    def _lattice_pair(self, abscissa: float, threshold: float, log_excess: float) -> LatticePair:
        # Connecting the dots adds at most h²/4, on average h²/6, to a step's variance, and so n·h²·c(c + 1)/12 to K(c).
        allowed = 2e-7 * max(abscissa * threshold, 1.0)
        period = (36.0 - log_excess) / abscissa

        def tilted(discretise: Discretise) -> TiltedSum:
            return self._on_lattice(discretise, abscissa, log_excess, allowed, period).tilt_for(threshold, abscissa)

        return LatticePair(tilted(from_above), partial(tilted, from_below))

    def log_upper_curve(self, thresholds: Floats, log_smallest: float) -> Floats:
        """log of upper bounds on the excess over many thresholds, from a few contours or tilts: quick, and nearly as sharp.

        What is drawn for one threshold holds for all; it is sharp within a few standard deviations of the tilted law.
        """
        first = self.cumulant.saddle_at(0.0)
        highest = min(self.cumulant.log_estimate(first, 0.0), -0.1)
        places = [(first, 0.0, highest)]
        for share in _CURVE_LEVELS:
            level = highest + share * (log_smallest - highest)
            abscissa, threshold = self.cumulant.saddle_for(level)
            places.append((abscissa, min(max(threshold, 0.0), 0.999 * self._highest), level))
        drawn = [(place[1], self._drawn_from_above(*place, log_smallest)) for place in places]
        apart = np.abs(np.array([place for place, _ in drawn])[:, None] - thresholds)
        nearest = np.argsort(np.argsort(apart, axis=0, kind="stable"), axis=0) < 2
        bounds = np.where(thresholds < self.ceiling, 0.0, -np.inf)
        for (_, one), asked in zip(drawn, nearest, strict=True):
            asked &= thresholds < self.ceiling
            bounds[asked] = np.minimum(bounds[asked], one.log_uppers(thresholds[asked]))
        return bounds

    def _drawn_from_above(
        self, abscissa: float, threshold: float, level: float, log_smallest: float
    ) -> Contour | TiltedSum:
        contour = draw_contour(self.cumulant, abscissa, threshold, level, _EFFORTS[1])
        if contour is not None:
            return contour
        sharpest, _ = self.cumulant.saddle_for(log_smallest)
        return self._on_lattice(from_above, sharpest, log_smallest, 1e-3, 0.0).tilt_for(threshold, abscissa)

    def _on_lattice(
        self, discretise: Discretise, abscissa: float, log_excess: float, allowed: float, period: float
    ) -> LatticeSum:
        parts = [*self.ratios]
        if self.variance:
            parts.append((_normal_ratio(self.variance), 1))
        total = sum(n for _, n in parts)
        reach = math.sqrt(2 * (26.0 - log_excess + math.log(total)))
        ranges = [ratio.range(reach) for ratio, _ in parts]
        # Below −(the most that all others can add) a step cannot end above 0, so its mass may be raised to there.
        most = sum(n * max(high, 0.0) for (_, n), (_, high) in zip(parts, ranges, strict=True))
        ranges = [(max(low, max(high, 0.0) - most - 1e-9), high) for low, high in ranges]
        spacing = math.sqrt(12 * allowed / (total * abscissa * (1 + abscissa)))
        spacing = max(spacing, max(period, *(high - low for low, high in ranges)) / _MOST_CELLS)
        return lattice_sum([(discretise(r, spacing, *ends), n) for (r, n), ends in zip(parts, ranges, strict=True)])


def _family(ratios: Sequence[Ratio], counts: Sequence[int], shares: Floats | None = None) -> Family:
    modes, weights = (np.array([getattr(ratio, name) for ratio in ratios]) for name in ("mode", "weight"))
    return Family(ratios[0].shape, modes, weights, np.array([float(n) for n in counts]), shares)


@lru_cache(maxsize=16)
def shared_sum(ratios: tuple[tuple[Ratio | MixedRatio, int], ...], variance: float) -> RatioSum:
    """One for all who ask about the same sum: what was drawn and solved for one question serves the next."""
    return RatioSum(ratios, variance)


def forget_drawn() -> None:
    """The next questions are answered as if they were the first."""
    shared_sum.cache_clear()


def _normal_ratio(variance: float) -> Ratio:
    return Ratio(MIXTURE_OVER_NORMAL, math.sqrt(variance), 1.0)


def _width(drawn: Numerics, threshold: float) -> float:
    """Return the width of the bracket on the log excess."""
    return drawn.log_upper(threshold) - drawn.log_lower(threshold)


def _near(thresholds: Floats, drawn_at: float, abscissa: float) -> NDArray[np.bool_]:
    """Whether what was drawn there is worth a look for these thresholds."""
    apart = np.abs(thresholds - drawn_at)
    return (apart * abscissa <= LONGEST_EXTRAPOLATION) & (apart <= 0.5 * np.maximum(thresholds, drawn_at))


def _level(log_excess: float) -> float:
    """A few excesses share a law, so that a question and its inverse are answered by the same one."""
    return 4.0 * math.floor(log_excess / 4)


def _closeness(drawn: Numerics) -> float:
    return 1e-8 if isinstance(drawn, LatticePair) else 1e-11
