"""Log-likelihood ratios on a lattice: from above by connecting the dots, from below by merging.

Above: a cell's mass goes to its two ends so that P and Q are both kept (Doroshenko et al. 2022), a mean-preserving
spread of e^{−L}. Below: a cell is merged into one outcome, which is post-processing, and its ratio is then rounded down;
cells are placed around the lattice points, so that almost nothing is lost by the rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.lattice import Masses
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
    Shape,
)
from lastiterate.numerics.positive_sum import Inside, Law, lowered
from lastiterate.numerics.rounding import down, up


@dataclass(frozen=True)
class Ratio:
    """log dP/dQ for one shape, weight on the far mode and distance; weight 1 is the plain normal pair."""

    shape: Shape
    mode: float
    weight: float

    @property
    def anchor(self) -> float:
        """A value of L that should be a lattice point: an atom, or the end near which the mass piles up."""
        if self.weight == 1 or self.shape in (MIXTURE_OVER_MIRROR, SYMMETRISED):
            return 0.0
        return math.log1p(-self.weight) * (1 if self.shape is MIXTURE_OVER_NORMAL else -1)

    @property
    def distance(self) -> float:
        """Between the far modes of P and Q: without mixing the pair is N(0, 1) against N(distance, 1)."""
        return 2 * self.mode if self.shape is MIXTURE_OVER_MIRROR else self.mode

    @property
    def atom(self) -> float:
        if self.shape is not SYMMETRISED or self.weight == 1:
            return 0.0
        beyond = self.weight * ndtr(self.mode / 2) + (2 - self.weight) * ndtr(-self.mode / 2)
        return max(1.0 - float(beyond), 0.0)

    def range(self, reach: float) -> tuple[float, float]:
        """An interval of L that leaves out at most the normal mass beyond `reach`, on each side."""
        if self.weight == 1:
            return self.mode * (self.mode / 2 - reach), self.mode * (self.mode / 2 + reach)
        floor = math.log1p(-self.weight)
        ceiling = float(np.logaddexp(floor, math.log(self.weight) + self.mode * (self.mode / 2 + reach)))
        if self.shape is SYMMETRISED:
            return -ceiling, ceiling
        # Far below both modes: for small ones that is much closer than the logarithm of what is left without the record.
        bottom = float(np.logaddexp(floor, math.log(self.weight) - self.mode * (1.5 * self.mode + reach)))
        if self.shape is MIXTURE_OVER_NORMAL:
            return bottom, ceiling
        if self.shape is NORMAL_OVER_MIXTURE:
            return -float(np.logaddexp(floor, math.log(self.weight) + self.mode * (reach - self.mode / 2))), -bottom
        return bottom - ceiling, ceiling - bottom

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """Masses (P, Q) of L in (−∞, e_0], (e_0, e_1], …, (e_last, ∞), the atom at 0 left out."""
        if self.weight == 1:
            at = edges / self.mode + self.mode / 2
            return _between(at - self.mode), _between(at)
        if self.shape is MIXTURE_OVER_NORMAL:
            at = self._position(edges)
            return self._mixture(at, self.mode), _between(at)
        if self.shape is NORMAL_OVER_MIXTURE:
            at = self._position(-edges[::-1])
            return _between(at)[::-1], self._mixture(at, self.mode)[::-1]
        if self.shape is MIXTURE_OVER_MIRROR:
            at = self._mirror_position(edges)
            return self._mixture(at, self.mode), self._mixture(at, -self.mode)
        return self._symmetrised(edges)

    def _position(self, loss: Floats) -> Floats:
        """x with log u_+(x) = loss."""
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.expm1(np.minimum(loss, 301.0)) / self.weight
            exponent = np.where(loss > 300, loss - math.log(self.weight), np.log1p(np.maximum(excess, -1.0)))
        return exponent / self.mode + self.mode / 2

    def _mirror_position(self, loss: Floats) -> Floats:
        """x with log u_+(x) − log u_−(x) = loss: a quadratic in e^{mx}, odd in x."""
        size = np.abs(loss)
        log_far = math.log(self.weight) - self.mode**2 / 2
        far = math.exp(log_far)
        half = (1 - self.weight) * -np.expm1(-size) / 2
        # far·z² − 2·half·e^{size}·z − far·e^{size} = 0, divided by e^{size}
        scaled = half + np.sqrt(half**2 + far**2 * np.exp(-size))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size == 0, 0.0, np.sign(loss) * (size + np.log(scaled) - log_far) / self.mode)

    def _mixture(self, at: Floats, mode: float) -> Floats:
        return (1 - self.weight) * _between(at) + self.weight * _between(at - mode)

    def _symmetrised(self, edges: Floats) -> tuple[Floats, Floats]:
        """Above 0 as the mixture over the normal law, below 0 as its mirror image."""
        p, q = np.zeros(edges.size + 1), np.zeros(edges.size + 1)
        above, below = edges[edges > 0], -edges[edges < 0][::-1]
        mixture, normal = self._above_zero(above)
        p[-above.size - 1 :], q[-above.size - 1 :] = mixture, normal
        mixture, normal = self._above_zero(below)
        p[: below.size + 1] += normal[::-1]
        q[: below.size + 1] += mixture[::-1]
        return p, q

    def _above_zero(self, edges: Floats) -> tuple[Floats, Floats]:
        """Masses of the mixture and of the normal law in (0, e_0], (e_0, e_1], …, (e_last, ∞)."""
        at = np.append(self.mode / 2, self._position(edges))
        near, far = (np.maximum(_between(x)[1:], 0.0) for x in (at, at - self.mode))
        return (1 - self.weight) * near + self.weight * far, near


@dataclass(frozen=True)
class MixedRatio:
    """log dP/dQ of a pair that is each of `parts` with a probability, and it is known which.

    All are symmetrised, with one weight: their lattices have 0 in common. Modes decrease, so that each dominates the next.
    """

    parts: tuple[Ratio, ...]
    shares: tuple[float, ...]

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def weight(self) -> float:
        """The largest weight of the far mode among the parts."""
        return max(part.weight for part in self.parts)

    @property
    def distance(self) -> float:
        """The distance of the farthest part."""
        return max(part.distance for part in self.parts)

    def range(self, reach: float) -> tuple[float, float]:
        """The range that covers the ranges of all parts."""
        lows, highs = zip(*(part.range(reach) for part in self.parts), strict=True)
        return min(lows), max(highs)


def _between(at: Floats) -> Floats:
    """Normal masses between neighbours, each difference taken in the tail where it keeps its digits."""
    tails = np.concatenate([[0.0], ndtr(-np.abs(at)), [0.0]])
    left, right = tails[:-1], tails[1:]
    positive = np.concatenate([[False], at > 0, [True]])
    return np.where(positive[:-1], left - right, np.where(positive[1:], 1 - right - left, right - left))


def from_above(ratio: Ratio | MixedRatio, spacing: float, low: float, high: float) -> Masses:
    """Dominates the ratio; what lies above `high` goes to +∞, what lies below `low` is raised to it."""
    if isinstance(ratio, MixedRatio):
        return _mixed_from_above(ratio, spacing, low, high)
    first, count = _lattice(ratio, spacing, low, high)
    points = first + spacing * np.arange(count)
    p, q = ratio.cells(points)
    p_error, q_error = _cell_errors(p), _cell_errors(q)
    masses = np.zeros(count)
    masses[0] += p[0] + p_error[0]
    inner_p, step = p[1:-1], -math.expm1(-spacing)
    scale = np.exp(np.minimum(points[:-1], 700.0))  # smaller than e^point only sends more mass up
    raised = (inner_p - scale * q[1:-1]) / step
    doubt = (16 * ROUNDOFF * inner_p + p_error[1:-1] + scale * q_error[1:-1]) / step
    raised = np.clip(raised + doubt, 0.0, inner_p)
    masses[1:] += raised + p_error[1:-1]
    masses[:-1] += inner_p - raised
    masses[_index_of_zero(first, spacing)] += ratio.atom
    return Masses(first, spacing, up(masses, operations=5), up(float(p[-1])))


def _mixed_from_above(ratio: MixedRatio, spacing: float, low: float, high: float) -> Masses:
    """Each part on its own range, which is where the widest would be cut at `high`."""
    widest = ratio.parts[0]
    first, count = _lattice(widest, spacing, low, high)
    reach = float(widest._position(np.array([high]))[0]) - widest.mode
    masses, infinite = np.zeros(count), 0.0
    for part, share in zip(ratio.parts, ratio.shares, strict=True):
        part_low, part_high = part.range(reach)
        found = from_above(part, spacing, max(low, part_low), min(high, part_high))
        start = round((found.first - first) / spacing)
        masses[start : start + found.masses.size] += share * found.masses
        infinite += share * found.infinite
    return Masses(first, spacing, up(masses), up(infinite))


def from_below(ratio: Ratio | MixedRatio, spacing: float, low: float, high: float) -> Masses:
    """Dominated by the ratio; of a mixture, by the least of its parts."""
    if isinstance(ratio, MixedRatio):
        return from_below(ratio.parts[-1], spacing, low, high)
    first, count = _lattice(ratio, spacing, low, high)
    points = first + spacing * np.arange(count)
    middles = points + spacing / 2
    p, log_ratio = _merged(ratio, middles)
    middles = middles + _best_shift(points - log_ratio[:-1], p[:-1], spacing)
    p, log_ratio = _merged(ratio, middles)
    heaviest = int(p.argmax())
    if p[heaviest] > 0.5:  # nearly an atom: the lattice is moved under it, so that rounding down costs it nothing
        under = log_ratio[heaviest] - 1e-12 * spacing
        first = float(under - spacing * math.ceil(max(under - first, 0.0) / spacing))
        count += 1
    index = np.floor((log_ratio - first) / spacing)
    kept = (p > 0) & np.isfinite(index) & (index >= 0)
    masses = np.bincount(np.minimum(index[kept], count - 1).astype(np.intp), weights=p[kept], minlength=count)
    masses[_index_of_zero(first, spacing)] += down(ratio.atom)
    return Masses(first, spacing, down(np.asarray(masses, float), operations=5))


def _cell_errors(masses: Floats) -> Floats:
    """Bounds on the rounding errors of cells that are differences of normal tails: a few ulps of the tail."""
    tails = np.minimum(np.cumsum(masses), np.cumsum(masses[::-1])[::-1])
    return 8 * ROUNDOFF * (tails + masses)


def _best_shift(lacking: Floats, masses: Floats, spacing: float) -> float:
    """How far to move all edges up: every cell loses the shift, and a cell that still lacks loses a whole spacing."""
    order = np.argsort(-np.where(np.isfinite(lacking), lacking, -np.inf))
    left_lacking = np.concatenate([[0.0], np.cumsum(masses[order])[:-1]])
    shifts = np.clip(lacking[order] * (1 + 1e-6) + 1e-9 * spacing, 0.0, spacing / 2)
    return float(shifts[np.nanargmin(shifts + spacing * left_lacking)])


def _merged(ratio: Ratio, edges: Floats) -> tuple[Floats, Floats]:
    """(P-masses, log ratios) of the cells, both rounded down."""
    p, q = ratio.cells(edges)
    least_p, most_q = np.maximum(p - _cell_errors(p), 0.0), q + _cell_errors(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        return least_p, np.log(least_p) - np.log(most_q) - 4 * ROUNDOFF


def _index_of_zero(first: float, spacing: float) -> int:
    return round(-first / spacing) if first <= 0 else 0


def _lattice(ratio: Ratio, spacing: float, low: float, high: float) -> tuple[float, int]:
    below = math.ceil((ratio.anchor - low) / spacing)
    first = ratio.anchor - below * spacing
    return first, max(2, math.ceil((high - first) / spacing) + 1)


# A likelihood ratio whose law under the second measure is known on a grid, as log-likelihood ratios on a lattice.


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
