"""Window and tail: everything the last steps reveal, and what they leave of the difference that was there before.

S is the neighbour's state before the window, continued on the first data set. E_{a+b}(P‖Q) ≤ E_a(P‖S) + e^a·E_b(S‖Q):
P and S run on the same data from two states that are close (the tail); S and Q from the same state on neighbouring data (the
window). The evaluator is `joined`; how ε is split is searched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.minimum import Either
from lastiterate.curves.notion import Notion
from lastiterate.mixing.table import Tabled
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.bracketed import Bracketed, exactly, least
from lastiterate.numerics.normal_gap import gap_estimate, log_gap_above
from lastiterate.numerics.roots import FARTHEST, decreasing_root, newton_root
from lastiterate.numerics.rounding import down, up

# Of δ for the tail: any share is valid, and ε is flat around the best one, in the logarithm of the share. The best by its
# estimate is tried, which costs a question to the window; a third beyond the better of two where there is no estimate.
_SHARES = (0.0007, 0.0045, 0.013, 0.03, 0.08, 0.2, 0.5, 0.9)
_LOW, _HIGH = 0.03, 0.2
_LESS, _MORE = 0.0045, 0.9
_ROUGH_SHARES = (0.02, 0.2, 0.9)  # are enough to compare windows
_SPLITS = 24  # ways to split ε, each valid: fewer are looser, more take longer
_RELIABLE = 0.01  # of an estimate: if it is off by less, it tells which share is the best
_ROUGH_SPLITS = 6  # are enough to compare windows
_LEAST_LEFT = -1e6  # of log δ, for an estimate: beyond any that floats tell apart


def joined(log_tail: Floats, splits: Floats, log_window: Floats) -> Floats:
    """log(E_a + e^a·E_b), rounded up: the bound on δ at ε = a + b, for each a of `splits`."""
    together = np.logaddexp(log_tail, splits + log_window)
    together = np.maximum(together, -1e300)  # where nothing is left, an infinite slack would not be a number
    return np.minimum(together + 1e-14 * (1 + np.abs(together) + splits), 0.0)


@dataclass(frozen=True, eq=False)
class WindowTail(Notion):
    """The guarantee of one window."""

    tail: Tail
    window: Notion
    adjacency: Adjacency = REPLACE_ONE
    _known: dict[float, Bracketed] = field(default_factory=dict, init=False, repr=False)

    def log_delta(self, epsilons: Floats) -> Floats:
        """Over splits from those that leave all to the window to those that leave nothing, and once more around the best."""
        if not self.tail.mus.any():
            return self.window.log_delta(epsilons)
        grid = np.linspace(0.0, 1.0, _SPLITS)
        first = self._over(epsilons, np.broadcast_to(grid, (epsilons.size, _SPLITS)))
        best = grid[first.argmin(axis=1)][:, None]
        around = np.clip(best + (2 * grid - 1) / (_SPLITS - 1), 0.0, 1.0)
        return np.asarray(np.minimum(first.min(axis=1), self._over(epsilons, around).min(axis=1)))

    def _over(self, epsilons: Floats, roots: Floats) -> Floats:
        """Bounds on log δ where the tail takes the square of each of these of ε."""
        splits = epsilons[:, None] * roots**2
        left = down(epsilons[:, None] - splits, operations=2)
        log_tail, log_window = (
            f(x.ravel()).reshape(x.shape) for f, x in ((self.tail.log_delta, splits), (self._tabled.log_delta, left))
        )
        return joined(log_tail, splits, log_window)

    def log_delta_estimate(self, epsilon: float) -> float:
        if not self.tail.mus.any():
            return self.window.log_delta_estimate(epsilon)
        splits = epsilon * np.linspace(0.0, 1.0, _ROUGH_SPLITS) ** 2
        of_window = np.array([self.window.log_delta_estimate(rest) for rest in (epsilon - splits).tolist()])
        if np.isnan(of_window).any():
            return np.nan
        return float(joined(self.tail.log_delta(splits), splits, of_window).min())

    @property
    def _chosen(self) -> Notion:
        return self.window.chosen if isinstance(self.window, Either) else self.window

    @cached_property
    def _tabled(self) -> Tabled:
        return Tabled(self._chosen)

    def _after(self, mu: float) -> WindowTail:
        """Between the two runs stands one with the first one's outcome of what came before: only the window sees both."""
        return replace(self, window=self.window.after(mu))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        if not self.tail.mus.any():
            return self.window.epsilon_at_log(log_deltas)
        return np.array([self.epsilon_bracketed(x).value for x in log_deltas.tolist()])

    def epsilon_bracketed(self, log_delta: float) -> Bracketed:
        """Return the least ε of the shares of δ that are tried; of these, only those are computed that may be it."""
        if not self.tail.mus.any():
            return self.window.epsilon_bracketed(log_delta)
        if log_delta not in self._known:
            self._known[log_delta] = least(epsilon for epsilon, _ in self.split_for(log_delta).values())
        return self._known[log_delta]

    def epsilon_estimate(self, log_delta: float) -> float:
        """For a few shares of δ, what the tail takes and an estimate of what the window does."""
        if not self.tail.mus.any():
            return self.window.epsilon_estimate(log_delta)
        splits, rests = self._estimates(self.window, log_delta, _ROUGH_SHARES)
        return float((splits + rests).min()) if rests.all() else 0.0

    def _estimates(self, window: Notion, log_delta: float, shares: tuple[float, ...]) -> tuple[Floats, Floats]:
        """For each of these shares of δ: about what the tail takes, and the window; 0 where the window has no estimate."""
        given = np.array(shares)
        splits = self.tail.epsilon_estimate(log_delta + np.log(given))
        left = np.maximum(log_delta + np.log1p(-given) - splits, _LEAST_LEFT)
        return splits, np.array([window.epsilon_estimate(one) for one in left.tolist()])

    def split_for(self, log_delta: float) -> dict[float, tuple[Bracketed, float]]:
        """For each share of δ that was tried: ε, and the part of it that the tail takes.

        First the best by its estimate. If the window takes another part of ε than estimated, it is thought to do so at other
        shares as well, and those around the best are tried one by one.
        """
        splits, rests = self._estimates(self._chosen, log_delta, _SHARES)
        if not rests.all():
            return self._without_estimates(log_delta)
        first = int(np.argmin(splits + rests))
        found = {first: self._with_share(log_delta, _SHARES[first])}
        around = self._best_if_scaled(splits, rests, first, *found[first])
        if around is not None:
            for towards in (0, -1, 1):
                index = around + towards
                while 0 <= index < len(_SHARES):
                    best = least(epsilon for epsilon, _ in found.values())
                    found[index] = found.get(index) or self._with_share(log_delta, _SHARES[index])
                    if not towards or not found[index][0] < best:
                        break
                    index += towards
        return {_SHARES[index]: pair for index, pair in found.items()}

    @staticmethod
    def _best_if_scaled(splits: Floats, rests: Floats, first: int, epsilon: Bracketed, split: float) -> int | None:
        """Where ε is least if all estimates are off by the factor that `first` is off by; None if that is too near to 1."""

        def where(whole: float) -> int | None:
            taken = (whole - split) / rests[first] if np.isfinite(rests[first]) else np.inf
            return int(np.argmin(splits + rests * taken)) if np.isfinite(taken) and abs(taken - 1) > _RELIABLE else None

        either_way = {where(epsilon.low), where(epsilon.high)}
        return either_way.pop() if len(either_way) == 1 else where(epsilon.value)

    def _without_estimates(self, log_delta: float) -> dict[float, tuple[Bracketed, float]]:
        """Two shares, and a third beyond the better of them."""
        found = {share: self._with_share(log_delta, share) for share in (_LOW, _HIGH)}
        share = _MORE if found[_HIGH][0] < found[_LOW][0] else _LESS
        return {**found, share: self._with_share(log_delta, share)}

    def _with_share(self, log_delta: float, share: float) -> tuple[Bracketed, float]:
        split = self.tail.epsilon(np.array([log_delta + np.log(share) - 1e-12])).item()
        if np.isinf(split):
            return exactly(split), split
        left = log_delta + float(np.log1p(-share)) - split - 1e-12 * (1 + split)
        return self._tabled.epsilon(left).through(lambda rest: up(split + rest)), split


# What is left of a distance that is random.


_TOLERANCE = 1e-12  # of ε, in a search: the rest is told what was taken
_ABOVE = 1e-9  # of an estimate: so much beyond it the bound is seen to hold, mostly
_CLOSE = 1e-11  # of an estimate


@dataclass(frozen=True, eq=False)
class Tail:
    """States whose distance is random: μ_1 ≤ μ_2 ≤ … with how likely it is that the one before does not do."""

    mus: Floats
    weights: Floats

    def log_delta(self, epsilons: Floats) -> Floats:
        """log Σ weight·θ_ε(μ), rounded up."""
        if not self.mus.any():
            return np.full_like(epsilons, -np.inf)
        logs = log_gap_above(epsilons[:, None], np.maximum(self.mus, 1e-300)) + self._log_weights
        total = np.logaddexp.reduce(logs, axis=1)
        return np.minimum(total + 1e-14 * (1 + np.abs(total)), 0.0)

    def epsilon(self, log_deltas: Floats) -> Floats:
        """About the least ε at which `log_delta` is no more than this, seen to hold there; ∞ where it is astronomical."""
        if not self.mus.any():
            return np.zeros_like(log_deltas)
        beyond = self.epsilon_estimate(log_deltas) * (1 + _ABOVE)
        return beyond if (self.log_delta(beyond) <= log_deltas).all() else self._searched(log_deltas)

    def _searched(self, log_deltas: Floats) -> Floats:
        high = self._above(log_deltas)
        while (short := (self.log_delta(high) > log_deltas) & (high < FARTHEST)).any():
            high = np.where(short, 2 * high, high)
        root = decreasing_root(lambda x: self.log_delta(x) - log_deltas, np.zeros_like(high), high, _TOLERANCE)
        return np.where(self.log_delta(root) <= log_deltas, root, np.inf)

    def epsilon_estimate(self, log_deltas: Floats) -> Floats:
        """Estimate ε, to steer a search."""
        if not self.mus.any():
            return np.zeros_like(log_deltas)
        return newton_root(self._estimated, log_deltas, 2 * self._above(log_deltas), _CLOSE)

    def _estimated(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """About log Σ weight·θ_ε(μ), and its slope in ε."""
        log_densities, gaps, falls = gap_estimate(epsilons[:, None], np.maximum(self.mus, 1e-300))
        logs = np.maximum(log_densities + self._log_weights, -1e300)
        top = logs.max(axis=1)
        parts = np.exp(logs - top[:, None])
        total = (parts * gaps).sum(axis=1)
        return top + np.log(total), -(parts * falls).sum(axis=1) / total

    @cached_property
    def _log_weights(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def _above(self, log_deltas: Floats) -> Floats:
        """About what the largest μ alone would take: θ_ε(μ) ≤ e^{−a²/2} at ε = μ²/2 + μ·a."""
        largest = min(float(self.mus.max()), FARTHEST**0.5)
        return largest**2 / 2 + largest * np.sqrt(-2.0 * np.minimum(log_deltas, 0.0)) + 1e-300


# What a block of steps reveals: from one common state, and from any two states. Trusted.


_WINDOWS = 24  # ways to split ε, each valid: fewer are looser, more take longer


@dataclass(frozen=True, eq=False)
class Ends:
    """`common`: the guarantee from one state. `apart`: the μ of any two states, the record in every batch that it may be in.

    `same`: the μ of any two states on the same data. ∞ where there is none.
    """

    common: Notion
    common_mu: float
    apart: float
    same: float

    def common_delta(self, epsilons: Floats) -> Floats:
        """d: the better of sampling and of the record in every batch."""
        in_every_batch = up(np.exp(_log_gap(epsilons, self.common_mu)))
        return np.minimum(self._table.delta(epsilons), in_every_batch)

    @cached_property
    def _table(self) -> Tabled:
        return Tabled(self.common)

    def apart_delta(self, epsilons: Floats) -> Floats:
        """M: the record in every batch, or the same data first and then the record (window and tail)."""
        log_direct = _log_gap(epsilons, self.apart)
        if math.isfinite(self.same):
            windows, log_windows = self._windows
            splits = epsilons[:, None] - windows
            log_tail = Tail(np.array([self.same]), np.ones(1)).log_delta(np.maximum(splits, 0.0).ravel())
            bounds = joined(log_tail.reshape(splits.shape), np.maximum(splits, 0.0), log_windows)
            log_direct = np.minimum(log_direct, np.where(splits >= 0, bounds, 0.0).min(axis=1))
        return np.minimum(up(np.exp(log_direct)), 1.0)

    @cached_property
    def _windows(self) -> tuple[Floats, Floats]:
        """A few ε, and log d there."""
        epsilons = self._table.reach * np.linspace(0.0, 1.0, _WINDOWS) ** 1.5
        with np.errstate(divide="ignore"):
            return epsilons, np.log(self.common_delta(epsilons))


def _log_gap(epsilons: Floats, mu: float) -> Floats:
    return log_gap_above(epsilons, mu) if math.isfinite(mu) else np.zeros_like(epsilons)
