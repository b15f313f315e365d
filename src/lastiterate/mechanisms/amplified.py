"""What post-processing by a Markov kernel makes of a guarantee. (Balle et al. 2019, Theorem 1)

A kernel is summed up by four numbers, the smaller the better. Each gives one clause; the guarantee is the best of them at
every ε. Clause 2 takes the whole curve γ(ε̃) = sup D_{e^ε̃}(K(x)‖K(x')), and is exact for every kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.errors import NON_NEGATIVE, checked_number
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down, up

_LARGEST = 700.0


class Clause(Enum):
    """The four clauses of Theorem 1 in Balle et al. 2019."""

    DOBRUSHIN = "Dobrushin: δ' = γδ"
    CURVE = "(γ, ε̃)-Dobrushin, the exact curve: δ' = δ·γ(log(1 + (e^ε − 1)/δ))"
    DOEBLIN = "Doeblin: ε' = log(1 + γ(e^ε − 1)), δ' = γ(1 − e^{ε'−ε}(1 − δ))"
    ULTRA_MIXING = "ultra-mixing: ε' = log(1 + γ(e^ε − 1)), δ' = γδe^{ε'−ε}"


@dataclass(frozen=True, eq=False)
class Mixing:
    """What is known of a kernel. A coefficient of 1 says nothing."""

    dobrushin: float
    curve: Callable[[Floats], Floats]
    doeblin: float = 1.0
    ultra_mixing: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Amplified(Notion):
    """A guarantee after post-processing by a Markov kernel; `clause(epsilon)` is the best clause at this ε."""

    before: Notion
    mixing: Mixing

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.before.adjacency

    def _log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.min(list(self._clauses(epsilons).values()), axis=0))

    def clause(self, epsilon: float) -> Clause:
        """The clause with the smallest δ at this ε."""
        found = self._clauses(np.array([checked_number("epsilon", epsilon, NON_NEGATIVE)]))
        return min(found, key=lambda clause: float(found[clause][0]))

    def _clauses(self, epsilons: Floats) -> dict[Clause, Floats]:
        before = _deltas(self.before, epsilons)
        return {
            Clause.DOBRUSHIN: np.minimum(up(self.mixing.dobrushin * before), 1.0),
            Clause.CURVE: self._by_curve(epsilons, before),
            Clause.DOEBLIN: self._after_lift(epsilons, self.mixing.doeblin, _doeblin),
            Clause.ULTRA_MIXING: self._after_lift(epsilons, self.mixing.ultra_mixing, _ultra_mixing),
        }

    def _by_curve(self, epsilons: Floats, before: Floats) -> Floats:
        """0 stays 0; a smaller ε̃ is on the safe side."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lifted = down(np.log1p(np.expm1(np.minimum(epsilons, _LARGEST)) / before))
        reached = self.mixing.curve(np.where(np.isfinite(lifted), lifted, _LARGEST))
        return np.where(before > 0, np.minimum(up(before * reached), 1.0), 0.0)

    def _after_lift(self, epsilons: Floats, gamma: float, bound: Callable[[Floats, Floats, float], Floats]) -> Floats:
        """The clause at an ε that it turns into this one, or into a little less, which is worse."""
        if gamma >= 1:
            return np.ones_like(epsilons)
        if gamma == 0:
            return np.zeros_like(epsilons)
        with np.errstate(over="ignore"):
            lifted = down(np.log1p(np.expm1(np.minimum(epsilons, _LARGEST)) / gamma))
        known = lifted < _LARGEST
        lifted = np.where(known, lifted, 0.0)
        reached = np.log1p(gamma * np.expm1(lifted))
        found = up(bound(reached - lifted, _deltas(self.before, lifted), gamma))
        return np.where(known, np.clip(found, 0.0, 1.0), 1.0)


def _deltas(notion: Notion, epsilons: Floats) -> Floats:
    return np.asarray(notion.delta(epsilons), float)


def _doeblin(shift: Floats, deltas: Floats, gamma: float) -> Floats:
    """1 − e^{−x}(1 − δ), without cancellation."""
    return gamma * (-np.expm1(shift) + np.exp(shift) * deltas)


def _ultra_mixing(shift: Floats, deltas: Floats, gamma: float) -> Floats:
    return gamma * deltas * np.exp(shift)
