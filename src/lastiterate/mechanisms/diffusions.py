"""Diffusions of a private value: more private with time, and released again at a later time from an earlier one.

The mechanism at time t is P_t(f(D)), and P_s after P_t is P_{s+t}: release to a few early, to many later, and the late ones
learn nothing from the early ones that they would not have had anyway. Intrinsic sensitivity Λ(t): (α, αΛ(t))-RDP. (Balle et
al. 2019, §5)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.renyi import RenyiDP
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    Interval,
    InvalidInput,
    check_fields,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.mechanisms.additive import Release, checked_function, gaussian, released
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.exact_noise import normal
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import down, up

_POINTS = 1 << 20
_DECADES = 12.0
_TIMES = Interval(1e-100, 1e100)
_NOTHING = 1e-290  # below, rounding decides whether it falls


class _Semigroup(ABC):
    """P_t(x) = N(shrink(t)·x, variance(t)): a Gaussian mechanism at every time, so its μ is exact."""

    sensitivity: float

    @abstractmethod
    def shrink(self, time: float) -> float:
        """The factor on the value at this time."""

    @abstractmethod
    def variance(self, time: float) -> float:
        """Variance of the noise at this time."""

    def intrinsic_sensitivity(self, time: float) -> float:
        """Intrinsic sensitivity Λ(t)."""
        return _square(self.sensitivity * self._kept_over_noise(_checked_time(time))) / 2

    def guarantee(self, time: float) -> GaussianDP:
        """μ = √(2Λ(t)), which is exact; it implies (α, αΛ(t))-RDP."""
        return gaussian(self.sensitivity * self._kept_over_noise(_checked_time(time)))

    def _kept_over_noise(self, time: float) -> float:
        """Ratio of what is left of the value to the noise: μ at sensitivity 1."""
        spread = math.sqrt(self.variance(time))
        return self.shrink(time) / spread if spread > 0 else math.inf

    def release(self, value: Any, time: float, seed: int | None = None) -> Release:
        """Release the value with the noise of this time."""
        return self._moved(value, _checked_time(time), Source(seed))

    def continued(self, released: Release, time: float, seed: int | None = None) -> Release:
        """Continue a release of this diffusion by `time`: distributed as a release at the later time, rounded twice."""
        if not isinstance(released, Release):
            raise must_be("released", "what release returned", f"{shown(released):.60}")
        later = self._moved(released.value, _checked_time(time), Source(seed))
        return Release(later.value, later.private and released.private)

    def _moved(self, value: Any, time: float, source: Source) -> Release:
        return released(value, ((normal, math.sqrt(self.variance(time))),), source, self.shrink(time))

    def mean_squared_error(self, time: float, norm: float, dimension: int) -> float:
        """E‖f(D) − release‖² where ‖f(D)‖ is `norm`. (4)"""
        time, length = _checked_time(time), checked_number("norm", norm, NON_NEGATIVE)
        count = checked_count("dimension", dimension)
        return _square((1 - self.shrink(time)) * length) + count * self.variance(time)

    def gaussian_error(self, time: float, dimension: int) -> float:
        """Mean squared error of the Gaussian mechanism with the same guarantee."""
        count, square = checked_count("dimension", dimension), _square(self._kept_over_noise(_checked_time(time)))
        return count / square if square > 0 else math.inf

    def shrunk_gaussian_error(self, time: float, norm: float, dimension: int) -> float:
        """Mean squared error of the Gaussian mechanism, multiplied by the best constant for this norm."""
        plain = self.gaussian_error(time, dimension)
        square = _square(checked_number("norm", norm, POSITIVE))
        return square if math.isinf(plain) else plain / (plain / square + 1) if square > 0 else 0.0


def _square(number: float) -> float:
    """∞ where number**2 would raise an error."""
    return number * number


@dataclass(frozen=True)
class Brownian(_Semigroup):
    """dX = √2·dW: the Gaussian mechanism with variance 2t."""

    sensitivity: float

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "sensitivity")

    def shrink(self, time: float) -> float:
        return 1.0

    def variance(self, time: float) -> float:
        return 2 * _checked_time(time)


@dataclass(frozen=True)
class OrnsteinUhlenbeck(_Semigroup):
    """dX = −θX·dt + √2·ρ·dW (errata E3.2): pulled to 0 as it diffuses, so its error is bounded."""

    theta: float
    rho: float
    sensitivity: float

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "theta", "rho", "sensitivity")

    @classmethod
    def for_target(cls, *, rdp: float, sensitivity: float, norm: float, dimension: int) -> OrnsteinUhlenbeck:
        """(α, α·rdp)-RDP at time 1, for values with ‖f(D)‖ ≤ R = `norm`. (Theorem 8)

        Its error is at most (1 + x)⁻¹ of the Gaussian mechanism's, x = d·Δ²/(2·rdp·R²).
        """
        level, change = checked_number("rdp", rdp, POSITIVE), checked_number("sensitivity", sensitivity, POSITIVE)
        count, length = checked_count("dimension", dimension), checked_number("norm", norm, POSITIVE)
        excess = count * change**2 / (2 * level * length**2)
        theta = math.log1p(excess)
        return cls(theta, math.sqrt(theta * change**2 / (2 * level * math.expm1(2 * theta))), change)

    def shrink(self, time: float) -> float:
        return math.exp(-self.theta * _checked_time(time))

    def variance(self, time: float) -> float:
        return self.rho**2 / self.theta * -math.expm1(-2 * self.theta * _checked_time(time))


@dataclass(frozen=True)
class Diffusion:
    """Any symmetric diffusion, by its κ(t) = sup Γ(log p_t(x, ·)/p_t(x', ·)), vectorised; Λ(t) = ∫_t^∞ κ. (Theorem 6)

    κ must fall, and at least as fast as 1/t² (as Brownian motion's does): the integral is then bracketed by sums. Both are
    checked where κ is evaluated.
    """

    kappa: Callable[[Floats], Floats]

    def intrinsic_sensitivity(self, time: float) -> float:
        """An upper bound on Λ(t); `bracket` also returns a lower bound."""
        return self.bracket(time)[1]

    def bracket(self, time: float) -> tuple[float, float]:
        """(lower, upper) bounds on Λ(t): sums over cells, with κ at their later and at their earlier end; and the tail."""
        checked_function("kappa", self.kappa)
        start = checked_number("time", time, _TIMES)
        times = start * np.logspace(0.0, _DECADES, _POINTS + 1)
        try:
            values = np.asarray(self.kappa(times), dtype=None)
        except (TypeError, ValueError) as error:
            raise InvalidInput("kappa_raised", field="kappa", error=str(error)) from error
        _check_kappa(times, values)
        widths = np.diff(times)
        tail = values[-1] * times[-1]
        upper = float(widths @ values[:-1]) + tail
        return down(float(widths @ values[1:]), by=1e-9), up(float(upper), by=1e-9)

    def guarantee(self, time: float) -> RenyiDP:
        """Rényi guarantee at this time: (α, αΛ(t)) for every order α."""
        return RenyiDP(rho=self.intrinsic_sensitivity(time))


def _check_kappa(times: Floats, values: Floats) -> None:
    real = np.issubdtype(values.dtype, np.floating) or np.issubdtype(values.dtype, np.integer)
    if not real or values.shape != times.shape or not np.isfinite(values).all() or (values < 0).any():
        raise InvalidInput("kappa_values", field="kappa")
    scaled = values * times**2
    wrong = np.flatnonzero((np.diff(scaled) > 1e-9 * scaled[:-1]) & (values[1:] > _NOTHING))
    if wrong.size:
        raise InvalidInput("kappa_falls_slowly", field="kappa", time=float(times[wrong[0]]))


def _checked_time(time: float) -> float:
    return checked_number("time", time, POSITIVE)
