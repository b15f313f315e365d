"""Linear optimisers: paths along which a push is paid for, a little at every step, until nothing of it is left.

A push of a record moves the hidden state; θ is what is left of it. θ is written by a sequence p (`LinearFilter`), which may
be any: the payments that a path asks for follow from it, are rounded up, and are what has to be believed. Which path is
cheap is found by least squares with changing weights, and nobody has to believe that. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solveh_banded
from scipy.signal import lfilter

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.optimizers import LinearFilter

_ROUNDED = 2.0**-47  # of all terms together: coefficients and sums of a dozen products are off by far less
_ENOUGH, _SETTLED = 120, 1e-9  # rounds of least squares, and when to stop; a choice of effort
_LEAST = 1e-8  # of the largest: smaller parts get no larger weight


@dataclass(frozen=True)
class Hidden:
    """Steps of a linear optimiser on losses whose Hessian, times the step size, lies within `half` of `middle`."""

    linear: LinearFilter
    middle: float
    half: float

    @cached_property
    def owed(self) -> Floats:
        """How what is left of a push moves on by itself: the next step, and the pull of the middle Hessian."""
        steps, point = self.linear.steps, self.linear.point
        found = np.zeros(max(len(steps), len(point) + 1))
        found[: len(steps)] += steps
        found[1 : len(point) + 1] += self.middle * np.array(point)
        return found

    @cached_property
    def doubts(self) -> tuple[Floats, ...]:
        """Coefficients of p by which the pull may differ from that of the middle Hessian."""
        return (np.append(0.0, self.half * np.array(self.linear.point)),)

    @property
    def order(self) -> int:
        """How many zeros at the end of p leave nothing of a push in any part of the state."""
        return len(self.owed) - 1

    def payments(self, path: Floats, pushes: Floats) -> Floats:
        """Return the payments that p = path asks for at each step, for pushes of these sizes; rounded up."""
        count = len(pushes)
        terms = sum((_along(np.abs(path), np.abs(taps), count) for taps in (self.owed, *self.doubts)), np.abs(pushes))
        paid = np.abs(pushes - _along(path, self.owed, count))
        doubt = sum((np.abs(_along(path, taps, count)) for taps in self.doubts), np.zeros(count))
        return np.asarray((paid + doubt + _ROUNDED * terms) * (1 + _ROUNDED))


def _along(path: Floats, taps: Floats, count: int) -> Floats:
    return np.asarray(np.convolve(path, taps)[:count])


@dataclass(frozen=True)
class Turning(Hidden):
    """Heavy ball, what is left being along the push as it is now, which turns by at most so much in a step."""

    turned: float

    @cached_property
    def doubts(self) -> tuple[Floats, ...]:
        """Also what was along the push one step ago, and two."""
        return (
            *super().doubts,
            self.turned * np.append(0.0, self.owed[1:]),
            self.turned * np.append([0.0, 0.0], self.owed[2:]),
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """A path for these pushes whose last `zeros` are 0, and the steps whose payments are added up before they are squared:
    those with the same number in `together`, and what is paid there `already`."""

    pushes: Floats
    zeros: int
    together: NDArray[np.intp]
    already: Floats | float = 0.0


def one_push(length: int, zeros: int, period: int) -> Asked:
    """Ask for one push at the first of `length` steps; payments that are `period` steps apart are added up."""
    pushes = np.zeros(length)
    pushes[0] = 1.0
    return Asked(pushes, zeros, np.arange(length, dtype=np.intp) % period)


def best_memory_path(hidden: Hidden, asked: Asked) -> Floats:
    """Nearly the cheapest p: (|x| + |y|)² is the least x²/w + y²/(1 − w), so that weights and p are found in turns."""
    count = len(asked.pushes)
    free = count - asked.zeros
    path = np.zeros(count)
    if free <= 0:
        return path
    squares = _Squares(hidden, asked.pushes, free)
    weights = np.ones((1 + len(hidden.doubts), count))
    best, least = path, _price(hidden, asked, path)
    for _ in range(_ENOUGH):
        found = squares.least(weights)
        if found is None:
            break
        path = np.append(found, np.zeros(asked.zeros))
        parts, total = _parts(hidden, asked, path)
        groups = np.bincount(asked.together, total) + asked.already
        price = float(np.square(groups).sum())
        settled = least - price < _SETTLED * least and price >= least * (1 - _SETTLED)
        best, least = (path, price) if price < least else (best, least)
        if settled:
            break
        smallest = _LEAST * float(groups[asked.together].max())
        weights = np.maximum(groups[asked.together], smallest) / np.maximum(parts, smallest)
    return best


def _parts(hidden: Hidden, asked: Asked, path: Floats) -> tuple[Floats, Floats]:
    count = len(asked.pushes)
    parts = [np.abs(_along(path, taps, count)) for taps in hidden.doubts]
    found = np.array([np.abs(asked.pushes - _along(path, hidden.owed, count)), *parts])
    return found, found.sum(axis=0)


def _price(hidden: Hidden, asked: Asked, path: Floats) -> float:
    return float(np.square(np.bincount(asked.together, _parts(hidden, asked, path)[1]) + asked.already).sum())


class _Squares:
    """Σ_k Σ_t weights_kt·(Σ_i taps_ki·p_{t−i} − [k = 0]·pushes_t)², as a banded system for the p with the least of it."""

    def __init__(self, hidden: Hidden, pushes: Floats, free: int) -> None:
        self.owed, self.pushes, self.free = hidden.owed, pushes, free
        self.bands, self.beyond = min(len(self.owed), free), np.zeros((1 + len(hidden.doubts), len(self.owed)))
        self.products = [
            (which, later, later - earlier, first * taps[later])
            for which, taps in enumerate((self.owed, *hidden.doubts))
            for earlier, first in enumerate(taps)
            for later in range(earlier, min(len(taps), earlier + self.bands))
            if first * taps[later]
        ]

    def least(self, weights: Floats) -> Floats | None:
        """None if the system cannot be solved."""
        padded, matrix = np.hstack([weights, self.beyond]), np.zeros((self.bands, self.free))
        for which, later, apart, product in self.products:
            inside = self.free - apart
            matrix[apart, :inside] += product * padded[which, later : later + inside]
        matrix[0] *= 1 + 1e-14
        weighted = np.append(weights[0] * self.pushes, self.beyond[0])
        right = sum(tap * weighted[i : i + self.free] for i, tap in enumerate(self.owed))
        try:
            found = np.asarray(solveh_banded(matrix, right, True, True, lower=True, check_finite=False))
        except (LinAlgError, ValueError):
            return None
        return found if np.isfinite(found).all() else None


# How fast a linear optimiser forgets: after how many steps nothing that matters is left of a push.
#
# Hessians change from step to step and differ from the middle one; by the small-gain theorem, with exponential weights,
# that
# cannot make up for what the filter loses. Proof: docs/proofs.md, "A very long run".


_TERMS = (
    4096  # of a power series: an optimiser that remembers more than about a thousand steps counts as never forgetting
)
_LARGEST_LOG = 400.0  # of powers: they stay within floats
_DENSE = 16  # points on a circle for each coefficient: between them a polynomial is at most 2 % larger
_RATES = np.geomspace(1e-3, 4.0, 40)  # by which a step forgets, all of them tried: a choice of effort
_ROUNDED_DECAY = 1e-12  # of sums of products, each off by an ulp or so
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
    """Return how fast a filter forgets of whose p Σ released[i]·p_{T−i} is released; nothing if it may never forget."""
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
        missed = float(((np.abs(product) + _ROUNDED_DECAY * sizes) * radius ** np.arange(float(len(product)))).sum())
    return (series, up(1 / (1 - missed), by=_INEXACT)) if missed < 0.5 else None


def _largest(series: Floats, taps: tuple[float, ...], radius: float) -> float:
    """At least the largest |series·taps| on the circle of this radius: that on many points of it, by Ehlich and Zeller."""
    scaled = np.convolve(series, taps)
    scaled *= radius ** np.arange(float(len(scaled)))
    points = _DENSE * len(scaled)
    found = float(np.abs(np.fft.fft(scaled, points)).max() / math.cos(math.pi / _DENSE))
    return up(found + _ROUNDED_DECAY * float(np.abs(scaled).sum()), by=_INEXACT)


# The turns of a record under a linear optimiser, each paid for over several epochs: payments of one step add up.


# Epochs over which a turn is paid for, tried one after the other until two are no better: a choice of effort.
_EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_LONGEST = 20_000  # steps of one path: a tenth of a second


@lru_cache(maxsize=256)
def paid(hidden: Hidden, length: int, zeros: int, period: int) -> Floats:
    """The payments for one push, over so many steps."""
    asked = one_push(min(length, _LONGEST), min(zeros, length), min(period, _LONGEST))
    found = hidden.payments(best_memory_path(hidden, asked), asked.pushes)
    found.setflags(write=False)
    return found


def square_of(hidden: Hidden, length: int, zeros: int) -> float:
    """Σ payments² for one push over so many steps; 1 where it is paid for at once."""
    return min(up(float(np.square(paid(hidden, length, zeros, length)).sum())), 1.0)


_Key = tuple[Hidden, int] | None


@dataclass(frozen=True)
class TurnsOfRecord:
    """`turns` of a record, `every` steps apart, the last of them `left` steps before the end of `steps`.

    Up to `begins` the state is that of `before`, and then of `after`, which also averages. A push before that is paid for
    until then. All payments are in units of the push.
    """

    before: Hidden
    after: Hidden
    begins: int
    steps: int
    every: int
    left: int

    @property
    def turns(self) -> int:
        return (self.steps - 1 - self.left) // self.every + 1

    def square(self) -> float:
        """The least Σ payments² of those that are tried, all turns together."""
        return self._best[0]

    def payments(self, last: int) -> Floats:
        """Return what each step pays for all turns but the `last` ones; 0 if each turn is paid for at once."""
        epochs, total = self._best[1], np.zeros(self.steps)
        for index in range(last, self.turns):
            first, key = self._time(index) - 1, self._key(index, epochs) if epochs else None
            if key is None:
                total[first] += 1.0
            else:
                part = paid(*key, key[0].order, self.every)
                total[first : first + len(part)] += part
        return up(total)

    @cached_property
    def _best(self) -> tuple[float, int]:
        """That, and over how many epochs each push is then paid for; 0 for at once."""
        least, chosen, worse = float(self.turns), 0, 0
        for epochs in _EPOCHS:
            if epochs > max(self.turns - 1, 1) or (epochs > 1 and epochs * self.every > _LONGEST):
                break
            found = self._square_over(epochs)
            least, chosen, worse = (found, epochs, 0) if found < least else (least, chosen, worse + 1)
            if worse == 2 + 4 * (self.every == 1):
                break
        return least, chosen

    def _square_over(self, epochs: int) -> float:
        """Σ payments² if each push is paid for over so many epochs, or as many as are left."""
        total = min(self._last_square(), 1.0)
        for index, count in self._different(epochs):
            total += count * self._block(tuple(self._key(index + ago, epochs) for ago in range(epochs)))
        return up(total)

    def _last_square(self) -> float:
        room = self.begins - self._time(0) + 1
        if room > 0:
            return square_of(self.before, room, self.before.order)
        return square_of(self.after, self.left + 1, self.after.linear.taps)

    def _time(self, index: int) -> int:
        """The step of a turn, counted from the last."""
        return self.steps - self.left - index * self.every

    def _key(self, index: int, epochs: int) -> _Key:
        """Which path a turn, not the last, is paid along."""
        if index >= self.turns:
            return None
        room = self.begins - self._time(index) + 1
        if room <= 0:
            return self.after, min(epochs, index) * self.every
        whole = min(epochs, index, room // self.every)
        return self.before, whole * self.every if whole else room

    def _block(self, keys: tuple[_Key, ...]) -> float:
        """Σ payments² of the steps from one turn to the next: what is paid there for it, and for turns before."""
        total = np.zeros(min(self.every, _LONGEST))
        for ago, key in enumerate(keys):
            if key is not None:
                hidden, length = key
                part = paid(hidden, length, hidden.order, self.every)[ago * self.every : (ago + 1) * self.every]
                total[: len(part)] += part
        return float(np.square(total).sum())

    def _different(self, epochs: int) -> Iterator[tuple[int, int]]:
        """Turns but the last, and how many are like them: only near the ends, and where averaging begins, do they differ."""
        begun = -(-(self.steps - self.left - self.begins) // self.every)  # the first turn that is before it
        near = {*range(1, epochs + 3), *range(self.turns - epochs - 1, self.turns)}
        near |= set(range(begun - epochs - 2, begun + epochs + 3))
        inside = sorted(index for index in near if 1 <= index < self.turns)
        for index, following in pairwise([*inside, self.turns]):
            yield index, 1
            if following > index + 1:
                yield index + 1, following - index - 1
