"""Balls and bins: in each epoch a record goes to one of the batches at random, and every noisy sum is released."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, Adjacency
from lastiterate.curves.compose import PrivacyLoss
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import AfterLosses
from lastiterate.errors import INSIDE_UNIT, MU, checked_array, checked_choice, checked_count, checked_number
from lastiterate.numerics.arrays import Floats, like_input
from lastiterate.numerics.discretise import loss_from_above, loss_from_below, opposite_from_above
from lastiterate.numerics.lattice import LatticeSum, Masses
from lastiterate.numerics.lognormal_mean import lognormal_sum
from lastiterate.numerics.positive_sum import Law, Side
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.numerics.rounding import up

# More batches are more private, and more than these would gain little: a step's rounding is multiplied by their number.
_MOST_BATCHES = 2**20
# Smaller mu are raised to this, which is perfect privacy to all intents; above the larger, where ε is beyond 30 an epoch,
# the place is not counted as hidden.
_SMALLEST_MU, _LARGEST_MU = 1e-6, 8.0
_LOST = 1e-20  # of an epoch, added to δ: far below any that is asked about
_FEW = 8  # cells in one, where only an estimate is wanted
_WIDE = 1.5  # mu above which a ratio spans so many octaves that half the cells in each suffice


def _ratio(mu: float, batches: int, side: Side) -> Law:
    return lognormal_sum(mu, batches, _LOST, 1024 if mu > _WIDE else 2048, side)


@lru_cache(maxsize=2)
def _losses(mu: float, batches: int) -> tuple[Masses, Masses]:
    """Return the privacy loss of one epoch in both orders of the data sets."""
    ratio = _ratio(mu, batches, Side.ABOVE)
    return loss_from_above(ratio, float(batches)), opposite_from_above(ratio, float(batches))


@dataclass(frozen=True)
class BallsAndBinsDP(Notion):
    """(1/l)·Σ N(μ·e_j, I) against N(0, I) in l = `batches` dimensions, in both orders, composed over `epochs`.

    mu: how far one record moves the gradient sum of its batch, divided by the noise on that sum. All iterates may be
    released. Batches must be dealt independently for each record: this is not a bound for a random permutation.
    """

    mu: float
    batches: int
    epochs: int = 1
    adjacency: Adjacency = ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checked_number("mu", self.mu, MU))
        object.__setattr__(self, "batches", checked_count("batches", self.batches))
        object.__setattr__(self, "epochs", checked_count("epochs", self.epochs))
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))

    def compose(self, times: int) -> Notion:
        return replace(self, epochs=self.epochs * checked_count("times", times))

    @cached_property
    def _gaussian(self) -> GaussianDP | None:
        """The guarantee where the place is not hidden, or is not counted as hidden; else None."""
        if self.mu == 0 or self.batches == 1 or self.mu > _LARGEST_MU:
            return GaussianDP(up(self.mu * math.sqrt(self.epochs), operations=5), self.adjacency)
        return None

    @cached_property
    def _orders(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The losses with the record against without it, and the other way round."""
        parts = _losses(max(self.mu, _SMALLEST_MU), min(self.batches, _MOST_BATCHES))
        with_record, without = (LatticeSum((part,), (self.epochs,)) for part in parts)
        return PrivacyLoss.of_sum(with_record, self.adjacency), PrivacyLoss.of_sum(without, self.adjacency)

    def _after(self, mu: float) -> Notion:
        return AfterLosses(self, mu, lambda: self._orders) if self._gaussian is None else self._gaussian.after(mu)

    def log_delta(self, epsilons: Floats) -> Floats:
        if self._gaussian is not None:
            return self._gaussian.log_delta(epsilons)
        return np.maximum(*(order.log_delta(epsilons) for order in self._orders))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        if self._gaussian is not None:
            return self._gaussian.epsilon_at_log(log_deltas)
        first, second = self._orders
        found = first.epsilon_at_log(log_deltas)
        enough = second.log_delta(np.minimum(found, 1e15)) <= log_deltas
        return found if enough.all() else np.maximum(found, second.epsilon_at_log(log_deltas))

    def epsilon_estimate(self, log_delta: float) -> float:
        if self._gaussian is not None:
            return self._gaussian.epsilon_estimate(log_delta)
        return self._rough.threshold_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        if self._gaussian is not None:
            return self._gaussian.log_delta_estimate(epsilon)
        return min(self._rough.log_estimate(epsilon), 0.0)

    @cached_property
    def _rough(self) -> LatticeSum:
        """The loss with the record against without it, on few points: for estimates."""
        part = _losses(max(self.mu, _SMALLEST_MU), min(self.batches, _MOST_BATCHES))[0]
        padded = np.append(part.masses, np.zeros(-part.masses.size % _FEW)).reshape(-1, _FEW).sum(axis=1)
        middle = part.first + part.spacing * (_FEW - 1) / 2
        return LatticeSum((Masses(middle, part.spacing * _FEW, padded),), (self.epochs,))

    def _rdp(self, orders: Floats) -> Floats:
        """Return the divergences as if the place were known, which holds by joint convexity."""
        plain = GaussianDP(up(self.mu * math.sqrt(self.epochs), operations=5), self.adjacency)
        return plain._rdp(orders)

    def bracket(self, delta: ArrayLike) -> tuple[object, object]:
        """Return (lower, upper) bounds on the ε of the pair."""
        log_deltas = np.log(checked_array("delta", delta, INSIDE_UNIT)).ravel()
        if self._gaussian is not None and self.mu <= _LARGEST_MU:
            return self._gaussian.bracket(delta)
        lower = np.zeros_like(log_deltas)
        if _SMALLEST_MU <= self.mu <= _LARGEST_MU and self.batches <= _MOST_BATCHES:
            lower = np.array([self._lower_at(log_delta) for log_delta in log_deltas.tolist()])
        return like_input(lower, delta), like_input(self.epsilon_at_log(log_deltas), delta)

    def _lower_at(self, log_delta: float) -> float:
        """Return an ε that is seen not to be enough with the record against without it."""
        total = LatticeSum(
            (loss_from_below(_ratio(self.mu, self.batches, Side.BELOW), float(self.batches)),), (self.epochs,)
        )
        upper = float(self.epsilon_at_log(np.array([log_delta]))[0])
        tilted = total.tilt_for(upper)
        step = 1e-4 * max(upper, 1e-10)
        return -decreasing_crossing(lambda t: log_delta - tilted.log_lower(-t), -upper, 0.0, -upper, step, 1e-9)
