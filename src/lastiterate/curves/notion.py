"""The interface of every guarantee, and the formulas that lead from one kind of guarantee to another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx

from lastiterate.curves.adjacency import Adjacency
from lastiterate.display import summary
from lastiterate.errors import (
    ABOVE_ONE,
    INSIDE_UNIT,
    MU,
    NON_NEGATIVE,
    UNIT,
    InvalidInput,
    Unavailable,
    checked_array,
    checked_count,
    checked_number,
)
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats, like_input
from lastiterate.numerics.bracketed import Bracketed, exactly
from lastiterate.numerics.roots import FARTHEST, decreasing_root
from lastiterate.numerics.rounding import up

_SMALLEST_DELTA = 5e-324  # the least float above 0: a δ that underflows must not become 0


class Notion(ABC):
    """A privacy guarantee for every pair of neighbouring data sets, in both orders.

    All answers are on the safe side: `epsilon` and `delta` are upper bounds, `tradeoff` is a lower bound. `caveats`: known
    defects of the execution that it is about, for which it does not hold.

    A kind of guarantee implements `log_delta`, and `epsilon_at_log` where it has a better way than a search. Guarantees ask
    each other by these two: flat arrays that nobody checks, in logarithms, since δ may be below every float above 0.
    """

    adjacency: Adjacency
    caveats: tuple[Fact, ...] = ()

    def __repr__(self) -> str:
        return summary(self, self._said(), str(self.adjacency.unit()))

    def _said(self) -> str:
        """Return its numbers in a few words, where there are few."""
        return ""

    @abstractmethod
    def log_delta(self, epsilons: Floats) -> Floats:
        """Return log δ(ε), rounded up, for a flat array of ε ≥ 0."""

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Return the least ε with δ(ε) ≤ δ, rounded up, ∞ where there is none, for a flat array of log δ."""
        high = np.full_like(log_deltas, 1.0)
        while (short := (self.log_delta(high) > log_deltas) & (high < FARTHEST)).any():
            high = np.where(short, 2 * high, high)
        if (high >= FARTHEST).all() and (self.log_delta(high) > log_deltas).all():
            return np.full_like(log_deltas, np.inf)
        root = decreasing_root(lambda x: self.log_delta(x) - log_deltas, np.zeros_like(high), high)
        return np.where(self.log_delta(root) <= log_deltas, root, np.inf)

    def epsilon_bracketed(self, log_delta: float) -> Bracketed:
        """Return ε(δ) for a search that compares guarantees: computed later, or never, where quick bounds decide."""
        return exactly(float(self.epsilon_at_log(np.array([log_delta]))[0]))

    def epsilon_estimate(self, log_delta: float) -> float:
        """A quick ESTIMATE of ε(δ), to steer a search, never to report; 0 where there is no quick way to say."""
        return 0.0

    def log_delta_estimate(self, epsilon: float) -> float:
        """A quick ESTIMATE of log δ(ε), to steer a search, never to report; nan where there is no quick way to say."""
        return np.nan

    def _rdp(self, orders: Floats) -> Floats:
        raise Unavailable("no_renyi_divergences", of=type(self).__name__)

    def epsilon(self, delta: ArrayLike) -> Any:
        """The least ε for which the guarantee implies (ε, δ)-differential privacy."""
        deltas = checked_array("delta", delta, INSIDE_UNIT)
        return like_input(self.epsilon_at_log(np.log(deltas).ravel()), delta)

    def delta(self, epsilon: ArrayLike) -> Any:
        """The least δ for which the guarantee implies (ε, δ)-differential privacy."""
        epsilons = checked_array("epsilon", epsilon, NON_NEGATIVE)
        logs = self.log_delta(epsilons.ravel())
        # e^x may round to 0 or down; δ = 0 is a much stronger claim, made only where log δ = −∞.
        rounded_up = np.maximum(np.exp(logs) * (1 + 4e-16 + 2.3e-16 * np.minimum(np.abs(logs), 800.0)), _SMALLEST_DELTA)
        return like_input(np.where(np.isneginf(logs), 0.0, np.minimum(rounded_up, 1.0)), epsilon)

    def tradeoff(self, type_i_error: ArrayLike) -> Any:
        """A lower bound on the type II error of every test that distinguishes adjacent data sets at this type I error."""
        errors = checked_array("type_i_error", type_i_error, UNIT)
        return like_input(self._tradeoff(errors.ravel()), type_i_error)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        """Return a lower bound by a table: any set of ε gives one."""
        return np.maximum(profile_to_tradeoff(*self._table, type_i_errors) - 1e-15, 0.0)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        largest = min(float(self.epsilon_at_log(np.array([np.log(1e-14)]))[0]), 700.0)
        epsilons = largest * np.linspace(0.0, 1.0, 257) ** 1.5
        return epsilons, up(np.exp(self.log_delta(epsilons)), operations=50)

    def rdp(self, order: ArrayLike) -> Any:
        """The Rényi divergence bound at this order, in both directions."""
        orders = checked_array("order", order, ABOVE_ONE)
        return like_input(self._rdp(orders.ravel()), order)

    def as_notion(self) -> Notion:
        """Return the guarantee itself, for whatever is derived from it; raise if it has a caveat."""
        return self

    def relabelled(self, adjacency: Adjacency) -> Notion:
        """Return this curve under another adjacency: for theorems whose proof covers that one."""
        if adjacency is self.adjacency:
            return self
        other = copy(self)
        object.__setattr__(other, "adjacency", adjacency)
        return other

    def after(self, mu: float) -> Notion:
        """Return the guarantee together with an earlier mu-GDP release; this one must hold for every outcome of that."""
        return self.as_notion() if checked_number("mu", mu, MU) == 0 else self.as_notion()._after(mu)

    def _after(self, mu: float) -> Notion:
        """Compose with an earlier release of mu > 0, by tables; a kind that knows better overrides it."""
        from lastiterate.curves.transformed import AfterGaussian

        return AfterGaussian(self, mu)

    def group(self, size: int) -> Notion:
        """The guarantee for groups of up to `size` records: size·μ for μ-GDP, and exact for other notions.

        This guarantee must hold for all data sets in between, which may have up to `size` records less if records are zeroed
        out or removed. A run with `user_records` ensures that.
        """
        from lastiterate.curves.group import of_group

        return of_group(self.as_notion(), size)

    def compose(self, times: int) -> Notion:
        """Return the composition of `times` such releases, chosen adaptively."""
        from lastiterate.curves.compose import compose_counted

        return compose_counted(((self.as_notion(), checked_count("times", times)),))


@dataclass(frozen=True, eq=False, repr=False)
class Wrapped(Notion):
    """A guarantee that follows from another one, `inner`, for the same neighbouring data sets."""

    inner: Notion

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.inner.adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, inner=self.inner.relabelled(adjacency))


class Adjusted(Wrapped):
    """A guarantee whose ε and δ are those of `inner`, or nearly: its estimates steer as well.

    A Gaussian release before composes with `inner`, and both together are adjusted.
    """

    def epsilon_estimate(self, log_delta: float) -> float:
        return self.inner.epsilon_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        return self.inner.log_delta_estimate(epsilon)

    def _after(self, mu: float) -> Notion:
        return replace(self, inner=self.inner.after(mu))


def refuse_caveats(caveats: tuple[Fact, ...]) -> None:
    """Raise if a guarantee has caveats: it does not hold, and nothing follows from it."""
    if caveats:
        raise InvalidInput("guarantee_with_caveat", field="guarantees", caveat=caveats[0])


@dataclass(frozen=True, eq=False, repr=False)
class WithCaveats(Notion):
    """The guarantee if an execution had no defects, which it has: it answers with numbers, and nothing is derived from it.

    Composition, groups, other adjacencies, selections and exports read the curve through `as_notion` or the methods below,
    all of which refuse: a derivation that forgets to ask for caveats fails instead of losing them.
    """

    _proved: Notion
    caveats: tuple[Fact, ...]

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self._proved.adjacency

    def __repr__(self) -> str:
        return summary(self, *map(str, self.caveats), repr(self._proved))

    def epsilon(self, delta: ArrayLike) -> Any:
        return self._proved.epsilon(delta)

    def delta(self, epsilon: ArrayLike) -> Any:
        return self._proved.delta(epsilon)

    def tradeoff(self, type_i_error: ArrayLike) -> Any:
        return self._proved.tradeoff(type_i_error)

    def rdp(self, order: ArrayLike) -> Any:
        return self._proved.rdp(order)

    def epsilon_estimate(self, log_delta: float) -> float:
        return self._proved.epsilon_estimate(log_delta)

    def log_delta_estimate(self, epsilon: float) -> float:
        return self._proved.log_delta_estimate(epsilon)

    def as_notion(self) -> Notion:
        refuse_caveats(self.caveats)
        return self._proved

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return self.as_notion().relabelled(adjacency)

    def log_delta(self, epsilons: Floats) -> Floats:
        return self.as_notion().log_delta(epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return self.as_notion().epsilon_at_log(log_deltas)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        return self.as_notion()._tradeoff(type_i_errors)

    def _rdp(self, orders: Floats) -> Floats:
        return self.as_notion()._rdp(orders)


def with_caveats(notion: Notion, caveats: tuple[Fact, ...]) -> Notion:
    """Return `notion` marked with these caveats; `notion` itself if there are none."""
    return WithCaveats(notion, caveats) if caveats else notion


def without_caveats(notion: Notion) -> Notion:
    """Return the curve behind the caveats, for certificates and pages that state them."""
    return notion._proved if isinstance(notion, WithCaveats) else notion


# The arrows between notions that are formulas. None ever improves a guarantee.


def renyi_to_log_delta(order: ArrayLike, divergence: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return log δ at ε from one Rényi bound: the better of two, each ≤ Mironov's e^{(α−1)(ρ − ε)}.

    Balle et al. 2020, Theorem 21: δ = e^{(α−1)(ρ−ε)}·(1 − 1/α)^{α−1}/α.
    Asoodeh et al. 2021, Lemma 1: δ = (e^{(α−1)ρ} − 1)/(α·(e^{(α−1)ε} − 1)), better for small divergences.
    """
    order, divergence, epsilon = (np.asarray(x, float) for x in (order, divergence, epsilon))
    excess = order - 1
    balle = excess * (divergence - epsilon) + excess * np.log1p(-1 / order) - np.log(order)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        asoodeh = log_expm1(excess * divergence) - log_expm1(excess * epsilon) - np.log(order)
    return np.minimum(np.minimum(balle, np.where(np.isnan(asoodeh), np.inf, asoodeh)), 0.0)


def renyi_to_epsilon(order: ArrayLike, divergence: ArrayLike, log_delta: ArrayLike) -> Floats:
    """Return ε at δ from one Rényi bound: the two formulas of `renyi_to_log_delta`, inverted."""
    order, divergence, log_delta = (np.asarray(x, float) for x in (order, divergence, log_delta))
    excess = order - 1
    balle = divergence + np.log1p(-1 / order) - (log_delta + np.log(order)) / excess
    asoodeh = np.logaddexp(0.0, log_expm1(excess * divergence) - np.log(order) - log_delta) / excess
    return np.maximum(np.minimum(balle, asoodeh), 0.0)


def concentrated_to_log_delta(rho: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return log δ at ε for a divergence of ρ·order at every order.

    Bun and Steinke 2016, Lemma 3.5, before its last estimates: P(L > x) ≤ e^{−(x−ρ)²/4ρ} for x ≥ ρ, integrated against
    e^{ε−x}: δ ≤ √(πρ)·e^{−(ε−ρ)²/4ρ}·erfcx((ε + ρ)/(2√ρ)), valid for ε ≥ ρ.
    """
    rho, epsilon = np.asarray(rho, float), np.asarray(epsilon, float)
    integral = 0.5 * np.log(np.pi * rho) + np.log(erfcx((epsilon + rho) / (2 * np.sqrt(rho))))
    return np.where(epsilon >= rho, np.minimum(integral, 0.0) - (epsilon - rho) ** 2 / (4 * rho), 0.0)


def profile_to_tradeoff(epsilons: Floats, deltas: Floats, type_i_errors: Floats) -> Floats:
    """Return f(α) = max over the given ε of 0, 1 − δ − e^ε·α and e^{−ε}(1 − δ − α)."""
    alpha = type_i_errors[:, None]
    lines = np.maximum(1 - deltas - np.exp(epsilons) * alpha, np.exp(-epsilons) * (1 - deltas - alpha))
    return np.maximum(lines.max(axis=1), 0.0)


def tradeoff_to_delta(type_i_errors: Floats, type_ii_errors: Floats, epsilons: Floats) -> Floats:
    """Return δ(ε) = sup_α 1 − f(α) − e^ε·α, for f known at increasing points only.

    Between two points f is at least its value at the right one, which is all that a decreasing function promises.
    """
    return polygon_to_delta(np.append(0.0, type_i_errors), np.append(type_ii_errors, 0.0), epsilons)


def polygon_to_delta(type_i_errors: Floats, type_ii_errors: Floats, epsilons: Floats) -> Floats:
    """Return δ(ε) = sup_α 1 − f(α) − e^ε·α for a polygon f: the supremum is at a vertex."""
    gains, deltas = 1 - type_ii_errors, np.empty_like(epsilons)
    with np.errstate(over="ignore", invalid="ignore"):
        for i, slope in enumerate(np.exp(epsilons)):
            deltas[i] = np.max(gains - np.where(type_i_errors, slope * type_i_errors, 0.0))
    return np.clip(deltas, 0.0, 1.0)


def log_expm1(x: Floats) -> Floats:
    """Return log(e^x − 1), for x of any size."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(x > 1, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), np.log(np.expm1(np.minimum(x, 1.0))))
