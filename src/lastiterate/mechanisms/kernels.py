"""Markov kernels that a private result is passed through, and how much privacy that adds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from lastiterate.curves.notion import Notion, Wrapped
from lastiterate.curves.profile import Profile
from lastiterate.display import summary
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    InvalidInput,
    check_fields,
    checked_array,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.mechanisms.additive import Release, mapped, released
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.exact_noise import normal, states_drawn
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import down, up

_ROWS_SUM_TO = 1e-9
_MOST_ENTRIES = 10**8
_CHUNK = 1 << 22  # numbers that are looked at together
_WORK = 10**9
_LARGEST = 700.0
_ROWS = 256
_ULP = 2.3e-16


class Kernel(ABC):
    """A Markov kernel: post-processing at random."""

    @property
    @abstractmethod
    def mixing(self) -> Mixing:
        """The mixing coefficients of the kernel."""

    def amplify(self, guarantee: Notion | tuple[float, float]) -> Amplified:
        """The guarantee after post-processing by this kernel. `guarantee` is any notion, or one pair (ε, δ)."""
        return Amplified(_as_notion(guarantee), self.mixing)


def _as_notion(guarantee: Any) -> Notion:
    if isinstance(guarantee, Notion):
        return guarantee.as_notion()
    try:
        epsilon, delta = guarantee
    except (TypeError, ValueError) as error:
        raise must_be("guarantee", "a notion, or a pair (epsilon, delta)", f"{shown(guarantee):.60}") from error
    epsilon, delta = checked_number("epsilon", epsilon, NON_NEGATIVE), checked_number("delta", delta, UNIT)
    return Profile(epsilons=[epsilon], deltas=[delta])


@dataclass(frozen=True, eq=False, init=False)
class FiniteKernel(Kernel):
    """A Markov kernel on finitely many states: matrix[x, y] is the probability to go from x to y; dense or scipy.sparse.

    `kernel @ other` applies `kernel` and then `other`; `kernel ** 10` applies it ten times.
    """

    matrix: Floats
    rounding: float  # of every entry, relative

    def __repr__(self) -> str:
        return summary(self, f"{' by '.join(map(str, self.matrix.shape))} states")

    def __init__(self, matrix: Any, rounding: float = 0.0) -> None:
        given = matrix.toarray() if issparse(matrix) and _fits(matrix.shape) else matrix
        values = checked_array("matrix", given, NON_NEGATIVE)
        if values.ndim != 2 or not values.size or not _fits(values.shape):
            raise InvalidInput("kernel_shape", field="matrix", got=f"{values.shape}")
        sums = values.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(float(sums[worst]) - 1) > _ROWS_SUM_TO:
            raise InvalidInput("kernel_row_sum", row=worst, sum=float(sums[worst]))
        exact = bool((sums == 1).all())
        object.__setattr__(self, "matrix", values if exact else values / sums[:, None])
        left = checked_number("rounding", rounding, NON_NEGATIVE)
        object.__setattr__(self, "rounding", left + (0.0 if exact else 4e-16))

    def __matmul__(self, other: FiniteKernel) -> FiniteKernel:
        if not isinstance(other, FiniteKernel) or self.matrix.shape[1] != other.matrix.shape[0]:
            raise InvalidInput("kernels_do_not_match", rows=self.matrix.shape[1])
        rounding = self.rounding + other.rounding + self.matrix.shape[1] * _ULP
        return FiniteKernel(self.matrix @ other.matrix, rounding)

    def __pow__(self, times: int) -> FiniteKernel:
        if self.matrix.shape[0] != self.matrix.shape[1]:
            raise InvalidInput("kernel_not_square", got=f"{self.matrix.shape}")
        count = checked_count("times", times)
        rounding = count * (self.rounding + len(self.matrix) * _ULP) if count > 1 else self.rounding
        return FiniteKernel(np.linalg.matrix_power(self.matrix, count), rounding)

    @cached_property
    def dobrushin(self) -> float:
        """Dobrushin coefficient of the kernel: sup TV(K(x), K(x'))."""
        rows = self.matrix
        if rows.size * len(rows) <= _WORK:
            return self._curve_at(0.0)
        chunks = (rows[first : first + _ROWS] for first in range(0, len(rows), _ROWS))
        # Half of Σ|a − b| is Σ(a − b)₊ but for what the rows do not sum to 1.
        half = max(float(cdist(chunk, rows, "cityblock").max()) for chunk in chunks) / 2
        return min(up(half) + self.rounding + rows.shape[1] * _ULP, 1.0)

    def dobrushin_at(self, epsilon: float) -> float:
        """γ with which the kernel is (γ, ε)-Dobrushin: sup D_{e^ε}(K(x)‖K(x'))."""
        return float(self._curve_at(min(checked_number("epsilon", epsilon, NON_NEGATIVE), _LARGEST)))

    @cached_property
    def doeblin(self) -> float:
        """The smallest γ with K(x) ≥ (1 − γ)·ω for all x, for some distribution ω."""
        return float(min(1.0, max(0.0, up(1 - self._least.sum()) + self.rounding + len(self._least) * _ULP)))

    @property
    def doeblin_witness(self) -> Floats | None:
        """The distribution ω of `doeblin`; None if the rows have nothing in common."""
        total = float(self._least.sum())
        return self._least / total if total > 0 else None

    @cached_property
    def ultra_mixing(self) -> float:
        """The smallest γ with K(x, y) ≥ (1 − γ)·K(x', y) for all x, x', y."""
        greatest = self.matrix.max(axis=0)
        reached = greatest > 0
        least = float((self._least[reached] / greatest[reached]).min())
        return float(min(1.0, up(1 - least) + 2 * self.rounding + _ULP))

    @cached_property
    def _least(self) -> Floats:
        return np.asarray(self.matrix.min(axis=0))

    @cached_property
    def mixing(self) -> Mixing:
        return Mixing(self.dobrushin, self._curve, self.doeblin, self.ultra_mixing)

    def _curve(self, epsilons: Floats) -> Floats:
        """Upper bound on γ(ε) by chords in e^ε between exact points, where it is convex; constant beyond the last."""
        known, values = self._table
        return up(np.interp(np.exp(np.minimum(epsilons, _LARGEST)), np.exp(known), values))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Points of the mixing curve: both ends, and as many between them as the work allows."""
        rows, columns = self.matrix.shape
        count = min(_WORK // (rows * rows * columns), 200)
        inner = np.geomspace(1e-3, self._farthest, count + 1)[:-1]
        values = [self.dobrushin, *(self._curve_at(epsilon) for epsilon in inner.tolist()), self._never_met]
        return np.array([0.0, *inner, self._farthest]), np.minimum.accumulate(values)

    @property
    def _never_met(self) -> float:
        """Largest mass of one row where another has none: the end of the mixing curve."""
        if self._farthest >= _LARGEST:
            return self._curve_at(_LARGEST)
        return float(min(up((self.matrix @ (self.matrix == 0).T.astype(float)).max()) * (1 + self.rounding), 1.0))

    @cached_property
    def _farthest(self) -> float:
        """Largest log ratio of two entries of one column, beyond which γ(ε) is constant."""
        greatest, least = self.matrix.max(axis=0), np.where(self.matrix > 0, self.matrix, np.inf).min(axis=0)
        reached = greatest > 0
        with np.errstate(over="ignore"):
            ratios = np.log(greatest[reached] / least[reached])
        return min(up(max(float(ratios.max()) + 4 * self.rounding, 1e-2), by=1e-9), _LARGEST)

    def _curve_at(self, epsilon: float) -> float:
        most, least, worst = 1 + self.rounding, math.exp(epsilon) * max(1 - self.rounding, 0.0), 0.0
        rows, columns = self.matrix.shape
        chunk = max(1, _CHUNK // (rows * columns))
        for first in range(0, rows, chunk):
            ahead = most * self.matrix[first : first + chunk, None, :] - least * self.matrix[None, :, :]
            worst = max(worst, float(np.maximum(ahead, 0.0, out=ahead).sum(axis=2).max()))
        return min(up(worst), 1.0)

    def sample(self, states: Any, seed: int | None = None) -> Release:
        """Draw the next state of each state."""
        given = np.asarray(states)
        given = given.astype(np.intp) if given.size == 0 else given
        if not np.issubdtype(given.dtype, np.integer) or not ((given >= 0) & (given < len(self.matrix))).all():
            raise must_be("states", f"integers from 0 to {len(self.matrix) - 1}", f"{shown(states):.60}")
        source = Source(seed)
        return Release(states_drawn(self.matrix, given, source), source.private)


def _fits(shape: tuple[int, ...]) -> bool:
    return math.prod(shape) <= _MOST_ENTRIES


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """x ↦ x + N(0, noise²), on a set of diameter `diameter`."""

    noise: float
    diameter: float

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "noise", "diameter")

    @property
    def reach(self) -> float:
        """The largest distance of two states before the noise, divided by the noise."""
        return up(self.diameter / self.noise)

    @property
    def mixing(self) -> Mixing:
        return Mixing(float(self._curve(np.zeros(1))[0]), self._curve)

    def _curve(self, epsilons: Floats) -> Floats:
        return np.minimum(up(np.exp(log_gap_above(epsilons, self.reach))), 1.0)

    def sample(self, values: Any, seed: int | None = None) -> Release:
        """Add fresh noise to each value."""
        return released(values, ((normal, self.noise),), Source(seed))


@dataclass(frozen=True)
class LipschitzGaussianKernel(GaussianKernel):
    """x ↦ ψ(x) + N(0, noise²) for an L-Lipschitz map ψ, on a set of diameter `diameter`; only `sample` needs `map`."""

    lipschitz: float = 1.0
    map: Callable[[Floats], Floats] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, POSITIVE, "lipschitz")

    @property
    def reach(self) -> float:
        return up(self.lipschitz * self.diameter / self.noise)

    def sample(self, values: Any, seed: int | None = None) -> Release:
        return super().sample(mapped(self.map, values), seed)


# Guarantees after post-processing by a Markov kernel (Balle et al. 2019, Theorem 1).
#
# A kernel is summed up by four numbers, the smaller the better. Each gives one clause; the guarantee is the best of
# them at every ε. Clause 2 takes the whole curve γ(ε̃) = sup D_{e^ε̃}(K(x)‖K(x')), and is exact for every kernel.


class Clause(Enum):
    """The four clauses of Theorem 1 in Balle et al. 2019."""

    DOBRUSHIN = "Dobrushin: δ' = γδ"
    CURVE = "(γ, ε̃)-Dobrushin, the exact curve: δ' = δ·γ(log(1 + (e^ε − 1)/δ))"
    DOEBLIN = "Doeblin: ε' = log(1 + γ(e^ε − 1)), δ' = γ(1 − e^{ε'−ε}(1 − δ))"
    ULTRA_MIXING = "ultra-mixing: ε' = log(1 + γ(e^ε − 1)), δ' = γδe^{ε'−ε}"


@dataclass(frozen=True, eq=False)
class Mixing:
    """Mixing coefficients of a kernel; a coefficient of 1 says nothing."""

    dobrushin: float
    curve: Callable[[Floats], Floats]
    doeblin: float = 1.0
    ultra_mixing: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Amplified(Wrapped):
    """The guarantee `inner` after post-processing by a Markov kernel; `clause(epsilon)` is the best clause at this ε."""

    mixing: Mixing

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.min(list(self._clauses(epsilons).values()), axis=0))

    def clause(self, epsilon: float) -> Clause:
        """The clause with the smallest δ at this ε."""
        found = self._clauses(np.array([checked_number("epsilon", epsilon, NON_NEGATIVE)]))
        return min(found, key=lambda clause: float(found[clause][0]))

    def _clauses(self, epsilons: Floats) -> dict[Clause, Floats]:
        before = _deltas(self.inner, epsilons)
        return {
            Clause.DOBRUSHIN: np.minimum(up(self.mixing.dobrushin * before), 1.0),
            Clause.CURVE: self._by_curve(epsilons, before),
            Clause.DOEBLIN: self._after_lift(epsilons, self.mixing.doeblin, _doeblin),
            Clause.ULTRA_MIXING: self._after_lift(epsilons, self.mixing.ultra_mixing, _ultra_mixing),
        }

    def _by_curve(self, epsilons: Floats, before: Floats) -> Floats:
        """δ by the whole curve at ε̃, rounded down to the safe side; 0 stays 0."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lifted = down(np.log1p(np.expm1(np.minimum(epsilons, _LARGEST)) / before))
        reached = self.mixing.curve(np.where(np.isfinite(lifted), lifted, _LARGEST))
        return np.where(before > 0, np.minimum(up(before * reached), 1.0), 0.0)

    def _after_lift(self, epsilons: Floats, gamma: float, bound: Callable[[Floats, Floats, float], Floats]) -> Floats:
        """δ by a clause at the ε that it maps to this one, or to a little less, which is worse."""
        if gamma >= 1:
            return np.ones_like(epsilons)
        if gamma == 0:
            return np.zeros_like(epsilons)
        with np.errstate(over="ignore"):
            lifted = down(np.log1p(np.expm1(np.minimum(epsilons, _LARGEST)) / gamma))
        known = lifted < _LARGEST
        lifted = np.where(known, lifted, 0.0)
        reached = np.log1p(gamma * np.expm1(lifted))
        found = up(bound(reached - lifted, _deltas(self.inner, lifted), gamma))
        return np.where(known, np.clip(found, 0.0, 1.0), 1.0)


def _deltas(notion: Notion, epsilons: Floats) -> Floats:
    return np.asarray(notion.delta(epsilons), float)


def _doeblin(shift: Floats, deltas: Floats, gamma: float) -> Floats:
    """1 − e^{−x}(1 − δ), without cancellation."""
    return gamma * (-np.expm1(shift) + np.exp(shift) * deltas)


def _ultra_mixing(shift: Floats, deltas: Floats, gamma: float) -> Floats:
    return gamma * deltas * np.exp(shift)
