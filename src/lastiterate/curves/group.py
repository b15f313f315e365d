"""Several steps from one data set to another: what a guarantee for one record says of k of them.

With S a data set in between, E_{a+b}(P‖Q) ≤ E_b(S‖Q) + e^b·E_a(P‖S) for every a and b, also below 0. So any split of ε into
k parts ε_1 + … + ε_k gives δ_k(ε) ≤ δ(ε_k) + e^{ε_k}·(δ(ε_{k−1}) + e^{ε_{k−1}}·(…)). The best splits are those of the
trade-off function composed k times with itself: from a type I error α, each ε_i is where δ(ε) + e^ε·α is least, which is
the next α. Whatever is chosen is valid, so only the sums are rounded. All parts alike is the usual lemma. Proof:
docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion, Wrapped, log_expm1
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.errors import checked_count
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.roots import decreasing_root
from lastiterate.numerics.rounding import up

_POINTS = 160  # of the profile of one record; a split between two of them costs the square of their distance
_STARTS = 2000  # type I errors to begin with: each gives a point
_LOG_SMALL, _LOG_SMALLEST = np.log(1e-30), -640.0  # of δ: where the points end, if it gets there
_LOG_TYPICAL = np.log(1e-6)
_FALLEN = 1e-3  # of log δ: so close to its least value a profile counts as flat
_LOG_ROUNDED = 1e-12  # of one step in logarithms, each of them below 2000
_SMALLEST_DELTA = 5e-324  # the least float above 0


def of_group(notion: Notion, size: int) -> Notion:
    """Return the guarantee for `size` records, one neighbour after the other; exact for μ-GDP, which becomes size·μ."""
    if checked_count("size", size) == 1:
        return notion
    if isinstance(notion, GaussianDP):
        return GaussianDP(up(size * notion.mu), notion.adjacency)
    return GroupDP(notion, size)


def of_two(notion: Notion, adjacency: Adjacency) -> Notion:
    """Return the guarantee for data sets that have one between them which is a neighbour of both."""
    return of_group(notion.relabelled(adjacency), 2)


@dataclass(frozen=True, eq=False)
class GroupDP(Wrapped):
    """The guarantee for `size` records, given `inner`, that for one of them: never worse than the usual lemma."""

    size: int

    @cached_property
    def curve(self) -> Profile:
        """The profile through points of f∘…∘f."""
        epsilons, deltas = _points(self.inner, self.size)
        return Profile(epsilons=epsilons, deltas=deltas, adjacency=self.adjacency)

    def log_delta(self, epsilons: Floats) -> Floats:
        return np.minimum(self.curve.log_delta(epsilons), self._in_equal_parts(epsilons))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Return ε by the points, and by the usual lemma where that is smaller."""
        found = self.curve.epsilon_at_log(log_deltas)
        finite = np.where(np.isfinite(found), found, LARGEST_TABLED)
        better = self._in_equal_parts(finite) <= log_deltas
        if better.any():
            targets = log_deltas[better]
            found[better] = decreasing_root(
                lambda x: self._in_equal_parts(x) - targets, np.zeros_like(targets), finite[better]
            )
        return found

    def epsilon_estimate(self, log_delta: float) -> float:
        return self.curve.epsilon_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        return self.curve.log_delta_estimate(epsilon)

    def _in_equal_parts(self, epsilons: Floats) -> Floats:
        """Return log δ_k by the usual lemma: δ_k(ε) ≤ (e^ε − 1)/(e^{ε/k} − 1)·δ(ε/k)."""
        parts = epsilons / self.size
        with np.errstate(invalid="ignore"):
            times = np.where(parts > 0, log_expm1(epsilons) - log_expm1(parts), np.log(self.size))
        # ε/k may be rounded up, and the profile falls: a little less is asked about.
        logs = self.inner.log_delta(np.maximum(parts * (1 - 4e-16), 0.0)) + times
        return np.minimum(logs + _LOG_ROUNDED, 0.0)


def _points(one: Notion, size: int) -> tuple[Floats, Floats]:
    """Return ε and δ of the best splits, for many type I errors to begin with."""
    epsilons, logs, turns = _lines(*_table(one, size))
    least = -min(size * float(epsilons[-1]) + 80.0, LARGEST_TABLED + 200.0)
    errors, sums, totals = np.linspace(-0.5, least, _STARTS), np.zeros(_STARTS), np.full(_STARTS, -np.inf)
    for _ in range(size):
        best = np.searchsorted(turns, -errors)
        sums = sums + epsilons[best]
        totals = np.logaddexp(logs[best], epsilons[best] + totals) + _LOG_ROUNDED
        errors = np.minimum(np.logaddexp(logs[best], epsilons[best] + errors), 0.0)
    sums = sums + 1e-15 * size * (1 + size * float(epsilons[-1]))
    kept = sums >= 0
    deltas = np.minimum(np.maximum(up(np.exp(totals[kept]), operations=2000), _SMALLEST_DELTA), 1.0)
    deltas = np.where(np.isneginf(totals[kept]), 0.0, deltas)
    return np.append(0.0, sums[kept]), np.append(1.0, deltas)


def _table(one: Notion, size: int) -> tuple[Floats, Floats]:
    """Return many ε from 0 on, and upper bounds on log δ there."""
    largest = _largest(one, size)
    epsilons = largest * np.linspace(0.0, 1.0, _POINTS) ** 1.5
    if isinstance(one, Profile) and one.points is not None:
        epsilons = np.append(epsilons, one.points[one.points <= 1.01 * largest])
    epsilons = np.unique(epsilons)
    return epsilons, np.minimum.accumulate(one.log_delta(epsilons))


def _largest(one: Notion, size: int) -> float:
    """Return the ε where δ is below all that may count, or, if it never is, where it has all but stopped falling."""
    typical = float(one.epsilon_at_log(np.array([_LOG_TYPICAL]))[0])
    wanted = max(_LOG_SMALL - min(size * typical, LARGEST_TABLED), _LOG_SMALLEST)
    found = float(one.epsilon_at_log(np.array([wanted]))[0])
    if found > LARGEST_TABLED:
        floor = float(one.log_delta(np.array([LARGEST_TABLED]))[0])
        found = float(one.epsilon_at_log(np.array([min(floor + _FALLEN, -1e-12)]))[0]) if floor < -1e-9 else 0.0
    return min(found, LARGEST_TABLED)


def _lines(epsilons: Floats, logs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return lines δ + e^ε·α for ε of either sign, increasing, and −log of the α below which the next is lower.

    The guarantee holds in both orders: δ(−ε) = 1 − e^{−ε}(1 − δ(ε)).
    """
    gaps, deltas = np.diff(epsilons), np.exp(logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        mirrored = np.logaddexp(np.log(-np.expm1(-epsilons[1:])), logs[1:] - epsilons[1:])
        fallen = logs[:-1] + np.log(-np.expm1(logs[1:] - logs[:-1]))
        crossings = fallen - epsilons[:-1] - np.log(np.expm1(gaps))
        # 1 − α itself, which is small where ε is far below 0.
        rest = (deltas[:-1] - np.exp(-gaps) * deltas[1:]) / -np.expm1(-gaps)
        below = np.log1p(-np.clip(rest, 0.0, 1.0))
    turns = -np.append(below[::-1], np.where(np.isnan(crossings), -np.inf, crossings))
    mirrored = np.minimum(mirrored + _LOG_ROUNDED, 0.0)
    return np.append(-epsilons[:0:-1], epsilons), np.append(mirrored[::-1], logs), np.maximum.accumulate(turns)
