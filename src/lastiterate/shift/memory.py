"""How fast a linear optimiser forgets: after how many steps nothing that matters is left of a push.

Hessians change from step to step and differ from the middle one; by the small-gain theorem, with exponential weights, that
cannot make up for what the filter loses. Proof: docs/proofs.md, "A very long run".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.signal import lfilter

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.shift.momentum import Hidden

_TERMS = (
    4096  # of a power series: an optimiser that remembers more than about a thousand steps counts as never forgetting
)
_LARGEST_LOG = 400.0  # of powers: they stay within floats
_DENSE = 16  # points on a circle for each coefficient: between them a polynomial is at most 2 % larger
_RATES = np.geomspace(1e-3, 4.0, 40)  # by which a step forgets, all of them tried: a choice of effort
_ROUNDED = 1e-12  # of sums of products, each off by an ulp or so
_INEXACT = 1e-9  # of what follows from them


@dataclass(frozen=True)
class Memory:
    """After n steps at most `size`/`rate`^n of a push is left in what is released, in units of the last noise there."""

    rate: float
    size: float

    def needed(self, push: float, negligible: float) -> float:
        """Steps after which a push of this size at each step before them leaves at most `negligible`, all together.

        Infinite if the push is: no number of steps makes it small.
        """
        left = push * self.size * self.rate / (self.rate - 1) / negligible
        if not math.isfinite(left):
            return math.inf
        return max(1, math.ceil(math.log(max(left, 1.0)) / math.log(self.rate) * (1 + _INEXACT)) + 1)


@lru_cache(maxsize=16)
def memories(hidden: Hidden, released: tuple[float, ...]) -> tuple[Memory, ...]:
    """What is proved of a filter of whose p Σ released[i]·p_{T−i} is released; nothing where it may never forget."""
    found = (_memory(hidden, released, 1.0 + rate) for rate in _RATES.tolist())
    return tuple(one for one in found if one is not None)


def _memory(hidden: Hidden, released: tuple[float, ...], rate: float) -> Memory | None:
    """None if what is owed has a zero within this radius, or if the loop through the Hessians has a gain of 1 or more."""
    inverse = _inverse(hidden.owed, rate)
    if inverse is None:
        return None
    series, times = inverse
    loop = up(rate * hidden.half * times * _largest(series, hidden.linear.point, rate), by=_INEXACT)
    if not loop < 1:
        return None
    of_last_noise = abs(released[0] / hidden.linear.steps[0])
    return Memory(rate, up(times * _largest(series, released, rate) / of_last_noise / (1 - loop), by=_INEXACT))


def _inverse(taps: Floats, radius: float) -> tuple[Floats, float] | None:
    """A polynomial h and a factor c with |1/taps(z)| <= c·|h(z)| in the disc of this radius; None if a zero may lie there.

    |1 − taps·h| <= q < 1 in the disc, whatever h is: there is no zero in it, and |1/taps| <= |h|/(1 − q).
    """
    terms = min(_TERMS, int(_LARGEST_LOG / math.log(radius)))
    with np.errstate(over="ignore", invalid="ignore"):
        series = np.asarray(lfilter([1.0], taps, np.eye(1, terms)[0]))
        product, sizes = np.convolve(series, taps), np.convolve(np.abs(series), np.abs(taps))
        product[0] -= 1
        missed = float(((np.abs(product) + _ROUNDED * sizes) * radius ** np.arange(float(len(product)))).sum())
    return (series, up(1 / (1 - missed), by=_INEXACT)) if missed < 0.5 else None


def _largest(series: Floats, taps: tuple[float, ...], radius: float) -> float:
    """At least the largest |series·taps| on the circle of this radius: that on many points of it, by Ehlich and Zeller."""
    scaled = np.convolve(series, taps)
    scaled *= radius ** np.arange(float(len(scaled)))
    points = _DENSE * len(scaled)
    found = float(np.abs(np.fft.fft(scaled, points)).max() / math.cos(math.pi / _DENSE))
    return up(found + _ROUNDED * float(np.abs(scaled).sum()), by=_INEXACT)
