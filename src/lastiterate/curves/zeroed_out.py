"""Steps on batches of fixed size, where the neighbour's record contributes nothing.

Another record takes the place in the batch, so that three laws meet: with the record, N(z, 1), with its neighbour that
contributes nothing, N(0, 1), and with another in its stead, N(v, 1). The record is at most `near` from nothing, and at most
`far` from others, mostly twice as far; others are at most `near` from nothing. For ε ≥ 0 the worst of the data set with the
record against the one without is p·N(0) + (1 − p)·N(far) against p·N(near) + (1 − p)·N(far); of the other order it is
p·N(0) + (1 − p)·N(near) against N(near). For ε < 0 each order is the mirror image of the other. Proof: docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from lastiterate.curves.adjacency import FIXED_SIZE, ZERO_OUT, Adjacency
from lastiterate.curves.compose import PrivacyLoss, profile_to_masses, spacing_for
from lastiterate.curves.hidden_place import log_gap_anywhere
from lastiterate.curves.minimum import Least, Worst
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.curves.transformed import AfterLosses
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.lattice import LatticeSum, Masses
from lastiterate.numerics.rounding import down, up

_HALVINGS = 60  # of where the laws are compared: any place is valid
_LEAST = 1e-300  # nothing is rounded to 0, which would be a claim
_FEW_QUESTIONS, _POINTS, _LOG_SMALL = 6, 24, np.log(1e-13)  # of a table, and where it ends: each point takes its time

Step = tuple[float, float, float]  # near, far, inclusion
Counted = Sequence[tuple[Step, int]]


def present_delta(near: float, far: float, inclusion: float, epsilons: Floats) -> Floats:
    """Return δ with the record against without it: p·(λ·θ_a(near) + (1 − λ)·θ_b(far)), rounded up.

    λ·e^a = e^ε and (1 − λ)·e^b = (e^ε − 1)·(1 − p)/p. Valid for every λ; the best compares all laws at the same point.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        others = epsilons + np.log(-np.expm1(-epsilons)) + np.log1p(-inclusion) - np.log(inclusion)
        share = np.where(epsilons > 0, np.clip(_share(near, far, epsilons, others), _LEAST, 1.0), 1.0)
        own, rest = down(epsilons - np.log(share), operations=5), _below(others - np.log1p(-share))
        with_neighbour = np.exp(log_gap_anywhere(own, np.array(near)))
        with_others = np.where(share < 1, np.exp(log_gap_anywhere(rest, np.array(far))), 0.0)
        found = up(inclusion * (share * with_neighbour + (1 - share) * with_others), operations=50)
    return np.clip(found, _LEAST, 1.0)


def _share(near: float, far: float, epsilons: Floats, others: Floats) -> Floats:
    """Return λ = e^{ε + near·t − near²/2}, t such that it and e^{others + far·t − far²/2} add up to 1."""
    high = np.minimum(near / 2 - epsilons / near, far / 2 - others / far)
    low = high - np.log(2.0) / near
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        less = np.exp(epsilons + near * (middle - near / 2)) + np.exp(others + far * (middle - far / 2)) < 1
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray(np.exp(epsilons + near * (low - near / 2)))


def _below(levels: Floats) -> Floats:
    """Return levels of either sign rounded down, infinite ones as ±1e300."""
    return np.where(np.isfinite(levels), levels - 1e-14 * (1 + np.abs(levels)), np.where(levels > 0, 1e300, -1e300))


def _present(step: Step) -> Profile:
    return Profile(function=partial(present_delta, *step), adjacency=ZERO_OUT)


def _absent(step: Step) -> Notion:
    near, _, inclusion = step
    return subsampled_gaussian(mu=near, inclusion=inclusion, sampling=FIXED_SIZE, adjacency=ZERO_OUT)


@dataclass(frozen=True, eq=False, repr=False)
class ZeroedOut(Notion):
    """Steps on batches of fixed size, composed, where the neighbour's record contributes nothing.

    It is the worse of both orders, or `replaced`, as if any other record took the place.
    """

    steps: tuple[tuple[Step, int], ...]
    replaced: Notion
    adjacency: Adjacency = ZERO_OUT

    def _said(self) -> str:
        return f"{sum(count for _, count in self.steps)} steps"

    @cached_property
    def _orders(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        spacing = spacing_for([_present(step) for step, _ in self.steps])
        return _composed(self.steps, spacing, _with_the_record), _composed(self.steps, spacing, _without_the_record)

    def _after(self, mu: float) -> Notion:
        return AfterLosses(self, mu, lambda: self._orders, self.replaced)

    def log_delta(self, epsilons: Floats) -> Floats:
        """Answer a few questions one by one, and many by chords, which lie above."""
        few = epsilons.size <= _FEW_QUESTIONS
        return (self._least if few else self._chords).log_delta(epsilons)

    @cached_property
    def _worse(self) -> Notion:
        return Worst(self._orders, self.adjacency)

    @cached_property
    def _least(self) -> Notion:
        return Least((self._worse, self.replaced), self.adjacency)

    @cached_property
    def _chords(self) -> Profile:
        largest = min(float(self.epsilon_at_log(np.array([_LOG_SMALL]))[0]), LARGEST_TABLED)
        epsilons = largest * np.linspace(0.0, 1.0, _POINTS) ** 1.5
        deltas = np.minimum(up(np.exp(self._worse.log_delta(epsilons)), operations=50), 1.0)
        return Profile(epsilons=epsilons, deltas=deltas, adjacency=self.adjacency)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return self._least.epsilon_at_log(log_deltas)

    def epsilon_estimate(self, log_delta: float) -> float:
        """Estimate ε as if the record were replaced: as good, to compare windows with each other."""
        return self.replaced.epsilon_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        return self.replaced.log_delta_estimate(epsilon)

    def _rdp(self, orders: Floats) -> Floats:
        return self.replaced._rdp(orders)


def _composed(steps: Counted, spacing: float, masses: Callable[[Step, float], Masses]) -> PrivacyLoss:
    parts = tuple(masses(step, spacing) for step, _ in steps)
    return PrivacyLoss.of_sum(LatticeSum(parts, tuple(count for _, count in steps)), ZERO_OUT)


@lru_cache(maxsize=8)
def _with_the_record(step: Step, spacing: float) -> Masses:
    return joined(*(profile_to_masses(one, spacing) for one in (_present(step), _absent(step))))


@lru_cache(maxsize=8)
def _without_the_record(step: Step, spacing: float) -> Masses:
    return joined(*(profile_to_masses(one, spacing) for one in (_absent(step), _present(step))))


def joined(above: Masses, below: Masses) -> Masses:
    """Return the losses above 0 of one symmetric pair, those below 0 of another, and the rest at 0.

    Its profile is that of the first for ε ≥ 0, and for ε < 0 the mirror image of the second's.
    """
    gains, losses = above.masses[above.masses.size // 2 + 1 :], below.masses[: below.masses.size // 2]
    rest = max(1.0 - above.infinite - float(gains.sum()) - float(losses.sum()), 0.0)
    masses = np.concatenate([losses, [up(rest, by=1e-10)], gains])
    return Masses(-above.spacing * losses.size, above.spacing, masses, above.infinite)
