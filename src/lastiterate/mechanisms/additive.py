"""A value with noise, and noise again: each pair of mechanisms with what both together are worth. (Balle et al. 2019, §4)"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.profile import Profile
from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.display import summary
from lastiterate.errors import FINITE, POSITIVE, check_fields, checked_array, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.exact_noise import NoiseLaw, laplace, normal
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.roots import decreasing_root
from lastiterate.numerics.rounding import up
from lastiterate.training.objectives import leaves

_SPLITS = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True)
class _Additive:
    """The data's own value moves by at most `sensitivity` when a record is replaced."""

    sensitivity: float
    first: float
    second: float

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "sensitivity", "first", "second")


class GaussianAfterGaussian(_Additive):
    """f(D) + N(0, first²) + N(0, second²), sensitivity in the Euclidean norm: variances add. (Example 1)"""

    @property
    def guarantee(self) -> GaussianDP:
        return gaussian(self.sensitivity / math.hypot(self.first, self.second))

    def release(self, value: Any, seed: int | None = None) -> Release:
        return released(value, ((normal, math.hypot(self.first, self.second)),), Source(seed))


@dataclass(frozen=True)
class LipschitzThenGaussian(_Additive):
    """ψ(f(D) + N(0, first²)) + N(0, second²) for an L-Lipschitz map ψ: noise √(first² + second²/L²) in all. (Example 3)"""

    lipschitz: float = 1.0
    map: Callable[[Floats], Floats] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, POSITIVE, "lipschitz")

    @property
    def guarantee(self) -> GaussianDP:
        return gaussian(self.sensitivity / math.hypot(self.first, self.second / self.lipschitz))

    def release(self, value: Any, seed: int | None = None) -> Release:
        source = Source(seed)
        before = released(value, ((normal, self.first),), source).value
        return released(mapped(self.map, before), ((normal, self.second),), source)


class LaplaceAfterLaplace(_Additive):
    """f(D) + Lap(first) + Lap(second) for one number: no gain at δ = 0, a large one at every δ > 0. (Example 2)"""

    @property
    def pure_epsilon(self) -> float:
        """Smallest ε that holds with δ = 0 (Lemma 3)."""
        return up(self.sensitivity / max(self.first, self.second))

    @property
    def guarantee(self) -> Profile:
        """The exact profile: the density is log-concave, so the best test is a threshold."""
        return Profile(function=self._deltas)

    @property
    def renyi(self) -> RenyiDP:
        """Rényi bound by the coupling that splits the distance between both noises best for each order."""
        divergences = [self._divergence(order) for order in DEFAULT_ORDERS.tolist()]
        return RenyiDP(orders=DEFAULT_ORDERS, divergences=divergences)

    def density(self, x: Any) -> Floats:
        """Density of the noise at `x` (equation 6)."""
        distances = np.abs(np.asarray(checked_array("x", x, FINITE), float))
        wide, narrow = self._ordered
        return np.asarray(np.exp(-distances / wide) * (1 + self._rise(distances)) / (2 * (wide + narrow)))

    def release(self, value: Any, seed: int | None = None) -> Release:
        """Release one number with noise. For several numbers, compose several mechanisms."""
        if np.size(value) != 1:
            raise must_be("value", "one number", f"{np.size(value)}; release each separately, and compose")
        return released(value, ((laplace, self.first), (laplace, self.second)), Source(seed))

    def _divergence(self, order: float) -> float:
        shares = _SPLITS * self.sensitivity
        logs = _log_moment(order, shares / self.first) + _log_moment(order, (self.sensitivity - shares) / self.second)
        return up(float(logs.min()) / (order - 1))

    def _deltas(self, epsilons: Floats) -> Floats:
        """P(X > t) − e^ε·P(X > t + Δ) at the t where the densities cross; X is the noise, its neighbour is Δ away.

        Where they cross far out, P(X > t) alone is small enough.
        """
        thresholds = self._crossings(epsilons)
        near, far = self._tail(thresholds), self._tail(thresholds + self.sensitivity)
        seen = np.where(thresholds < self._far_out, np.exp(np.minimum(epsilons, 700.0)) * far, 0.0)
        inside = epsilons < self.pure_epsilon
        return np.where(inside, np.clip(near - seen + 1e-14 * near, 0.0, 1.0), 0.0)

    @property
    def _far_out(self) -> float:
        return 60 * max(self.first, self.second)

    def _crossings(self, epsilons: Floats) -> Floats:
        """t with log p(t) − log p(t + Δ) = ε: grows from −Δ/max to Δ/max; below it the ratio is not worth the test."""

        def short(t: Floats) -> Floats:
            return epsilons - self._log_ratio(t)

        low, high = np.full_like(epsilons, -self.sensitivity / 2), np.full_like(epsilons, self._far_out)
        return np.asarray(decreasing_root(short, low, high))

    def _log_ratio(self, t: Floats) -> Floats:
        """log p(t) − log p(t + Δ) for t ≥ −Δ/2; beyond 0 without the cancellation."""
        wide, narrow = self._ordered
        gap, later = wide - narrow, t + self.sensitivity
        positive = np.maximum(t, 0.0)
        if gap == 0:
            grown = np.full_like(t, self.sensitivity / wide)
        else:
            rate = gap / wide / narrow
            grown = -narrow * np.exp(-rate * positive) * math.expm1(-rate * self.sensitivity) / gap
        ahead = self.sensitivity / wide - np.log1p(grown / (1 + self._rise(positive)))
        around = (np.abs(later) - np.abs(t)) / wide + np.log1p(self._rise(np.abs(t))) - np.log1p(self._rise(later))
        return np.where(t >= 0, ahead, around)

    def _tail(self, x: Floats) -> Floats:
        """Probability that the noise exceeds `x`."""
        distances = np.abs(x)
        wide, narrow = self._ordered
        upper = np.exp(-distances / wide) * (wide + narrow + narrow * self._rise(distances)) / (2 * (wide + narrow))
        return np.where(x >= 0, upper, 1 - upper)

    @property
    def _ordered(self) -> tuple[float, float]:
        return max(self.first, self.second), min(self.first, self.second)

    def _rise(self, distances: Floats) -> Floats:
        """b·(1 − e^{−x(a−b)/(ab)})/(a − b) for scales a ≥ b, which is x/a where they are equal."""
        wide, narrow = self._ordered
        gap = wide - narrow
        if gap == 0:
            return distances / wide
        return np.asarray(-narrow * np.expm1(-distances * gap / (wide * narrow)) / gap)


def _log_moment(order: float, distances: Floats) -> Floats:
    """log g_α(z), g_α(z) = (α·e^{z(α−1)} + (α − 1)·e^{−zα})/(2α − 1): e^{(α−1)D_α} of Laplace noise. (Mironov2017)

    Near 0 the linear terms cancel, so they are left out.
    """
    up, down = distances * (order - 1), -distances * order
    near = (order * _beyond_linear(np.minimum(up, 1.0)) + (order - 1) * _beyond_linear(down)) / (2 * order - 1)
    large = math.log(order / (2 * order - 1)) + up
    small = math.log((order - 1) / (2 * order - 1)) + down
    return np.where(up < 1, np.log1p(near), np.logaddexp(large, small))


def _beyond_linear(x: Floats) -> Floats:
    """Return e^x − 1 − x without cancellation."""
    series = np.polyval([1 / math.factorial(k) for k in range(14, 1, -1)] + [0.0, 0.0], x)
    return np.where(np.abs(x) < 0.5, series, np.expm1(x) - x)


# Releases of a mechanism.


@dataclass(frozen=True, eq=False)
class Release:
    """A value with noise. If `private` is False, its noise came from a seed, and it must not be released."""

    value: np.ndarray
    private: bool

    def __repr__(self) -> str:
        return summary(self, f"value of shape {self.value.shape}", f"private={self.private}")


def released(value: Any, noises: Sequence[tuple[NoiseLaw, float]], source: Source, factor: float = 1.0) -> Release:
    """Release factor·value with these noises, rounded to a public grid; its law is exact."""
    return Release(leaves(checked_value(value), noises, source, factor), source.private)


def checked_value(value: Any) -> Floats:
    """Finite numbers, of any shape."""
    return np.asarray(checked_array("value", value, FINITE), float)


def mapped(function: Any, value: Any) -> Floats:
    """Return the checked value of a mechanism's map."""
    checked_function("map", function)
    return checked_value(function(checked_value(value)))


def checked_function(name: str, function: Any) -> None:
    if not callable(function):
        raise must_be(name, "a function", f"{shown(function):.60}")


# Gaussian guarantees from formulas of a few operations, rounded up.


LEAST = 1e-300  # what rounds to 0 is not perfect privacy


def gaussian(mu: float) -> GaussianDP:
    """Return μ-GDP with μ rounded up and above 0."""
    return GaussianDP(max(up(mu), LEAST))
