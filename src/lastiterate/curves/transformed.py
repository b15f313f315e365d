"""A guarantee with something done to its ε and δ: a failure probability, a rounding, a Gaussian release before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.gaussian_cover import apart, tabled
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP, log_gap_anywhere
from lastiterate.curves.minimum import ForEachDepth, Least, Worst
from lastiterate.curves.notion import Adjusted, Notion, Wrapped
from lastiterate.curves.profile import Profile
from lastiterate.errors import Unavailable
from lastiterate.numerics.arrays import ROUNDOFF, Floats, lower_hull
from lastiterate.numerics.normal_gap import log_gap_above, shift_below, threshold_above
from lastiterate.numerics.rounding import down, up


def _log_sum(log_deltas: Floats, lost: float | Floats, rounding: float = 1e-15) -> Floats:
    """Return the logarithm of the sum of two probabilities, rounded up, given their logarithms; at most 0."""
    together = np.logaddexp(log_deltas, lost)
    return np.minimum(together + rounding * (1 + np.abs(together)), 0.0)


# A guarantee that holds but for an event of small probability.


@dataclass(frozen=True, eq=False)
class Slackened(Adjusted):
    """δ(ε) + slack: with failure probability `slack`, whatever the data, the mechanism is another one (joint convexity)."""

    slack: float

    def log_delta(self, epsilons: Floats) -> Floats:
        return _log_sum(self.inner.log_delta(epsilons), math.log(self.slack), 4e-16)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        left = down(np.exp(log_deltas), operations=500) - self.slack
        found = np.full_like(log_deltas, np.inf)
        if (enough := left > 0).any():
            found[enough] = self.inner.epsilon_at_log(np.log(left[enough]))
        return found


@dataclass(frozen=True, eq=False)
class NearlyAlways(Adjusted):
    """δ(ε) + (1 + e^ε)·slack: either run is another one with failure probability `slack`, which may depend on the data."""

    slack: float

    def _lost(self, epsilons: Floats) -> Floats:
        """Return log (1 + e^ε)·slack."""
        return np.asarray(math.log(self.slack) + np.logaddexp(0.0, epsilons))

    def log_delta(self, epsilons: Floats) -> Floats:
        return _log_sum(self.inner.log_delta(epsilons), self._lost(epsilons))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Spend a hundredth of δ, or half of it, on failures; ∞ where neither is enough."""
        found = np.full_like(log_deltas, np.inf)
        for share in (0.5, 0.01):
            epsilons = self.inner.epsilon_at_log(log_deltas + math.log1p(-share) - 1e-12)
            enough = self._lost(epsilons) <= log_deltas + math.log(share) - 1e-12
            found = np.where(enough, np.minimum(found, epsilons), found)
        return found


def with_slack(notion: Notion, slack: float) -> Notion:
    """Return the guarantee with this failure probability added to δ; `notion` itself if that is 0."""
    return Slackened(notion, slack) if slack else notion


@dataclass(frozen=True, eq=False, repr=False)
class ChosenSlack(ForEachDepth):
    """`with_exception(p)` but for a failure probability p, which is added to δ: a power of ten below the δ asked about."""

    with_exception: Callable[[float], Notion]
    adjacency: Adjacency = REPLACE_ONE

    def _make(self, power: int) -> Notion:
        exception = self.exception(power)
        try:
            return with_slack(self.with_exception(exception), exception)
        except Unavailable:
            return Profile(epsilons=[0.0], deltas=[1.0])  # nothing is proved

    def _after(self, mu: float) -> ChosenSlack:
        return replace(self, with_exception=lambda exception: self.with_exception(exception).after(mu))


# A guarantee of a mechanism that is executed up to rounding: what is computed is a known Gaussian distance away.


_FAR = 16.0
"""Times the displacement: the profile of the difference is below 1e-56 there, below every δ. More would add more to ε,
less would leave more for δ."""


@dataclass(frozen=True, eq=False)
class Displaced(Adjusted):
    """The guarantee of what is computed, which on either data set is `displacement`-GDP away from what is accounted for.

    With a = 16·displacement, or 0: δ'(ε + 2a) ≤ e^a·δ(ε) + (1 + e^{a+ε})·θ_a(displacement), by the triangle inequality
    E_{a+b}(P‖R) ≤ E_a(P‖Q) + e^a·E_b(Q‖R), twice.
    """

    displacement: float

    @property
    def _moved(self) -> float:
        return _FAR * self.displacement

    def log_delta(self, epsilons: Floats) -> Floats:
        before = np.maximum(epsilons - 2 * self._moved, 0.0)
        far = np.where(epsilons >= 2 * self._moved, self._farther(before, self._moved), 0.0)
        return np.minimum(far, self._farther(epsilons, 0.0))

    def _farther(self, epsilons: Floats, moved: float) -> Floats:
        """Return log δ' at ε + 2a, for a = `moved`."""
        return _log_sum(self.inner.log_delta(epsilons) + moved, self._lost(epsilons, moved))

    def _lost(self, epsilons: Floats, moved: float) -> Floats:
        """Return log (1 + e^{a+ε})·θ_a(displacement), for a = `moved`."""
        apart = float(log_gap_above(np.array([moved]), self.displacement)[0])
        return apart + np.logaddexp(0.0, moved + epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Spend almost all of δ on `inner`; ∞ where what the displacement adds does not fit into the rest."""
        found = self.inner.epsilon_at_log(log_deltas - self._moved - 1e-9)
        fits = self._lost(found, self._moved) <= log_deltas + math.log(5e-10)
        return np.where(fits, found + 2 * self._moved, np.inf)


def as_computed(notion: Notion, displacement: float) -> Notion:
    """Return the guarantee of what is computed, displaced from what is accounted for; a Gaussian one stays Gaussian.

    The μ of both distances add up.
    """
    if displacement == 0:
        return notion
    if isinstance(notion, GaussianDP):
        return GaussianDP(up(notion.mu + 2 * displacement, operations=5), notion.adjacency)
    if isinstance(notion, AveragedGaussianDP):
        free = max(0.0, 1.0 - math.fsum(notion.weights))  # places that cost nothing before
        mus, weights = (*notion.mus, 0.0), (*notion.weights, free)
        moved = [up(mu + 2 * displacement, operations=5) for mu in mus]
        return AveragedGaussianDP(mus=moved, weights=weights, adjacency=notion.adjacency)
    if isinstance(notion, HiddenPlaceDP):
        own, pairs = (up(values + 2 * displacement, operations=5) for values in (notion.mus, notion.pair_mus))
        return HiddenPlaceDP(mus=own, pair_mus=pairs, weights=notion.weights, adjacency=notion.adjacency)
    return Displaced(notion, displacement)


# A guarantee together with what a Gaussian mechanism released before, on whose outcome it may depend.
#
# Whatever that outcome, δ(ε) bounds the release that follows. With L ~ N(μ²/2, μ²), the loss of the Gaussian mechanism,
# both together have the profile E δ(ε − L) at most. Points of δ have chords above it: they are the profile of a loss with
# atoms of mass m_i at ε_i, whose own is Σ m_i·(1 − e^{ε − ε_i})₊. With the Gaussian it is Σ m_i·θ_{ε − ε_i}(μ): no term
# is negative, so that small δ keep their digits. Proof: docs/proofs.md.


_OTHERWISE = (1e-3, 0.1, 0.9)  # δ that a table goes down to, where the guarantee never gets below the one that is asked

_LOG_TWO = math.log(2.0) + 1e-15
_FEW_QUESTIONS = 6  # each takes its time on a lattice


@dataclass(frozen=True, eq=False)
class AfterGaussian(Wrapped, ForEachDepth):
    """`inner` and a Gaussian mechanism with this mu before it: by tables of `inner`, each as deep as is asked."""

    mu: float

    def _after(self, mu: float) -> Notion:
        return replace(self, mu=up(math.hypot(self.mu, mu), operations=5))

    def _make(self, power: int) -> Notion:
        depths = (self.exception(power), *_OTHERWISE)
        tables = (tabled(self.inner, depth, raised=0.0) for depth in depths)
        points = next((table for table in tables if table is not None), (np.zeros(1), np.ones(1)))
        return AtomsAndGaussian(*atoms(*points), self.mu, self.adjacency)

    def epsilon_estimate(self, log_delta: float) -> float:
        """Estimate ε as if `inner` were Gaussian."""
        alone = self.inner.epsilon_estimate(log_delta)
        if not 0 < alone < math.inf:
            return alone
        return float(threshold_above(log_delta, math.hypot(float(shift_below(log_delta, alone)), self.mu)))

    def log_delta_estimate(self, epsilon: float) -> float:
        alone = self.inner.log_delta_estimate(epsilon)
        if math.isnan(alone) or alone >= 0:
            return alone
        return float(log_gap_above(epsilon, math.hypot(float(shift_below(alone, epsilon)), self.mu)))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Ask the tables; where ε is too large for one, add what `inner` and the Gaussian need at half of δ each."""
        found = super().epsilon_at_log(log_deltas)
        if np.isinf(found).any():
            halved = log_deltas - _LOG_TWO
            found = np.minimum(found, up(self.inner.epsilon_at_log(halved) + threshold_above(halved, self.mu)))
        return found


@dataclass(frozen=True, eq=False, repr=False)
class AfterLosses(AfterGaussian):
    """`losses` are those of `inner`, in both orders of the data sets; `otherwise` holds for the same release, too.

    A few questions are answered on the lattice of the losses, many by a table.
    """

    losses: Callable[[], tuple[Notion, Notion]]
    otherwise: Notion | None = None

    @cached_property
    def _by_losses(self) -> Notion:
        """The worse of both orders of the data sets, or what holds otherwise."""
        worse = Worst(tuple(order.after(self.mu) for order in self.losses()), self.adjacency)
        return worse if self.otherwise is None else Least((worse, self.otherwise.after(self.mu)), self.adjacency)

    def relabelled(self, adjacency: Adjacency) -> Notion:
        other = None if self.otherwise is None else self.otherwise.relabelled(adjacency)
        return replace(self, inner=self.inner.relabelled(adjacency), otherwise=other)

    def log_delta(self, epsilons: Floats) -> Floats:
        many = epsilons.size > _FEW_QUESTIONS
        return super().log_delta(epsilons) if many else self._by_losses.log_delta(epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return self._by_losses.epsilon_at_log(log_deltas)


@dataclass(frozen=True, eq=False, repr=False)
class AtomsAndGaussian(Notion):
    """A loss with mass masses[i] at losses[i] and `infinite` at +∞, plus the loss of a Gaussian mechanism with this mu."""

    losses: Floats
    masses: Floats
    infinite: float
    mu: float
    adjacency: Adjacency

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            weights, rest = np.log(self.masses), np.log(self.infinite)
        levels = epsilons[:, None] - self.losses
        levels = levels - 4 * ROUNDOFF * (epsilons[:, None] + np.abs(self.losses))  # rounded down
        logs = np.logaddexp.reduce(log_gap_anywhere(levels, np.array(self.mu)) + weights, axis=1)
        together = np.maximum(np.logaddexp(logs, rest), -1e300)
        return np.minimum(together + ROUNDOFF * (2 * self.masses.size + 8 + 2 * np.abs(together)), 0.0)


def atoms(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats, float]:
    """Return (losses, masses, the mass at +∞) of a symmetric pair whose profile is nowhere below these bounds on δ.

    In y = e^ε the slopes of the chords are −Q(L > ε): a kink at y is a Q-mass, y times it a P-mass. The mirror image of a
    P-mass m at ε is e^{−ε}·m at −ε; the rest sits at 0.
    """
    y, given = lower_hull(*apart(np.exp(epsilons), deltas))
    slopes = np.append(np.diff(given) / np.diff(y), 0.0)
    slopes = np.minimum.accumulate(slopes[::-1])[::-1]  # rounding may bend the chain
    masses, infinite = y[1:] * np.diff(slopes), float(given[-1])
    drawn = np.maximum(1 - y[:, None] / y[1:], 0.0) @ masses + infinite
    missing = np.divide(given, drawn, out=np.ones_like(given), where=drawn > 0).max()
    masses = up(masses * max(float(missing), 1.0))
    below = masses / y[1:]
    middle = max(1.0 - infinite - float(masses.sum()) - float(below.sum()), 0.0)
    losses = np.log(y[1:])
    together = np.concatenate([below[::-1], [up(middle)], masses])
    return np.concatenate([-losses[::-1], [0.0], losses]), together, infinite
