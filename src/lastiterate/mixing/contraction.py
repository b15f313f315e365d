"""Hockey-stick contraction by Gaussian noise on a bounded state: linear (Asoodeh2023), and the exact curve (Balle2019).

With θ = θ_ε(r), r the diameter of what the noise is added to, over the noise: two laws at hockey-stick distance x are at
most x·θ apart after the noise, and at most g(x) = x·θ_{ε(x)}(r), ε(x) = log(1 + (e^ε − 1)/x), which is never more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion, log_expm1
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import LOG_SQRT_2PI, log_gap_above, log_gap_below, mills
from lastiterate.numerics.roots import FARTHEST, decreasing_root
from lastiterate.numerics.rounding import down, up

# Of the logarithms of two numbers, to a relative 1e-12: 690 at most, over 2⁵⁰; fewer are looser, never wrong.
_HALVINGS = 50
# A distance below it counts as this, before it is multiplied: the logarithm of 0 is not a number to work with.
_TINY = 1e-300
_MOST_STEPS = 100  # beyond, the fixed point takes less time, and loses what so many steps have not reached yet


def linear_contraction(epsilons: Floats, ratio: float, rate: float, steps: int) -> Floats:
    """p·θ·(1 − ((1−p)θ)^T)/(1 − (1−p)θ): δ_t = (1 − p)·θ·δ_{t−1} + p·θ from δ_0 = 0."""
    theta = np.exp(log_gap_above(epsilons, ratio))
    lost = rate * theta + (1 - theta)  # 1 − (1 − p)·θ, without rounding a small p away
    if not steps:
        return np.zeros_like(epsilons)
    with np.errstate(divide="ignore"):
        terms = -np.expm1(steps * np.log1p(-lost)) / lost
    return np.minimum(up(rate * theta * terms), 1.0)


def contracted(distances: Floats, epsilons: Floats, ratio: float) -> Floats:
    """g(x): the exact curve; convex and increasing in x, g(0) = 0."""
    # In logarithms, in which neither ε nor x has a limit; rounded down, as a smaller ε(x) has a larger θ.
    lifted = down(np.logaddexp(0.0, log_expm1(epsilons) - np.log(np.maximum(distances, _TINY))))
    return np.minimum(up(distances * np.exp(log_gap_above(lifted, ratio))), 1.0)


def curved_contraction(epsilons: Floats, ratio: float, rate: float, steps: int) -> Floats:
    """δ_t = (1 − p)·g(δ_{t−1}) + p·g(1) from δ_0 = 0; of many steps, the fixed point, which bounds them all."""

    fresh = contracted(np.ones_like(epsilons), epsilons, ratio)

    def after(distances: Floats) -> Floats:
        return _after(distances, epsilons, ratio, rate, fresh)

    if steps <= _MOST_STEPS:
        reached = np.zeros_like(epsilons)
        for _ in range(steps):
            reached = after(reached)
        return reached
    return _fixed_point(after, np.ones_like(epsilons))


@dataclass(frozen=True, eq=False)
class CurvedContraction(Notion):
    """The guarantee of so many steps, each with this inclusion and ratio."""

    ratio: float
    rate: float
    steps: int
    adjacency: Adjacency = REPLACE_ONE

    def log_delta(self, epsilons: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(curved_contraction(epsilons, self.ratio, self.rate, self.steps))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        """Where δ is not raised by a step, it bounds any number of them: no fixed point has to be found."""
        deltas = down(np.exp(log_deltas), operations=500)

        def raised(epsilons: Floats) -> Floats:
            fresh = contracted(np.ones_like(epsilons), epsilons, self.ratio)
            return _after(deltas, epsilons, self.ratio, self.rate, fresh) - deltas

        high = np.ones_like(deltas)
        while (short := (raised(high) > 0) & (high < FARTHEST)).any():
            high = np.where(short, 2 * high, high)
        for_ever = decreasing_root(raised, np.zeros_like(high), high)
        if self.steps > _MOST_STEPS:
            return np.where(raised(for_ever) <= 0, for_ever, np.inf)
        if (raised(for_ever) > 0).any():
            return super().epsilon_at_log(log_deltas)

        def lacking(epsilons: Floats) -> Floats:
            return self.log_delta(epsilons) - log_deltas

        return decreasing_root(lacking, np.zeros_like(high), for_ever)


def _after(distances: Floats, epsilons: Floats, ratio: float, rate: float, fresh: Floats) -> Floats:
    """What a step makes of these distances; `fresh`, of two states that may be anything."""
    return np.minimum(up((1 - rate) * contracted(distances, epsilons, ratio) + rate * fresh), 1.0)


def _fixed_point(after, high: Floats) -> Floats:  # type: ignore[no-untyped-def]
    """A point that the map does not raise: the map is convex and above the identity at 0, so there is one crossing."""
    low = after(np.zeros_like(high))
    for _ in range(_HALVINGS):
        middle = np.sqrt(low) * np.sqrt(high)
        falls = after(middle) <= middle
        low, high = np.where(falls, low, middle), np.where(falls, middle, high)
    return high


# Two normal laws at a distance, coupled so that what they have in common stays together. Trusted: all is rounded up.
#
# P = N(0, 1) and Q = N(r, 1), and a level c ≥ 0. The mass min(P, e^c·Q) is put where both are, at distance 0. What is
# left of
# P, x = θ_c(r) of it, has the density (p − e^c·q)₊; what is left of e^c·Q, e^c − 1 + x of it, has (e^c·q − p)₊. These two
# are
# coupled against each other: the smallest of the one with the greatest of the other. Proof: docs/proofs.md.


_COUPLING_HALVINGS = (
    16  # where the two tails meet: any place is valid, and this one is off by a part in 10⁵ of the distance
)
_GUESSES = 3  # by Newton's method, for all halvings at once: what they miss is halved one by one
_SMALLEST = 1e-3  # distances below are not reflected: differences of tails would lose their digits
_LEAST_APART = 1e-13  # of mass that is left: below, it is not worth its rounding
_LOWEST = -20.0  # beyond, the tails of what is left of Q are all but everything: taken for everything
_FARTHEST = 1e100  # its square is a float, and φ has long been 0
_LEAST_NEAR = -37.0  # before, a Mills ratio is no float any more, and the tail is taken for everything
_ULPS = 4e-15  # of a Mills ratio: twenty times what scipy's is off by


@dataclass(frozen=True, eq=False)
class Reflected:
    """For each level (first axis) and each distance (second).

    `apart` and `apart_below`: the mass of P that is left, rounded up and down. `lift`: by how much the loss of what is left
    is larger, rounded down. `landing`: how likely its distance is to be counted as each of the rows (third axis).
    """

    apart: Floats
    apart_below: Floats
    lift: Floats
    landing: Floats


def reflected(levels: Floats, distances: Floats, rows: Floats) -> Reflected:
    """Distances of what is left are rounded up to the next of `rows`; the last of them is the largest there can be."""
    level, distance = levels[:, None], np.maximum(distances, _SMALLEST)[None, :]
    above, below = (np.exp(gap(level, distance)) for gap in (log_gap_above, log_gap_below))
    above, below = np.minimum(up(above), 1.0), down(below)
    kept = (distances[None, :] >= _SMALLEST) & (below > _LEAST_APART)
    lift = down(np.log1p(np.expm1(level) / np.maximum(above, _LEAST_APART))) - level * (1 + 1e-15)
    beyond = np.zeros((*kept.shape, len(rows)))
    of_each = [np.broadcast_to(one, kept.shape)[kept][:, None] for one in (level, distance, below)]
    beyond[kept] = _beyond(_Tails(*(one.ravel() for one in np.broadcast_arrays(*of_each, rows))), len(rows))
    landing = -np.diff(beyond, axis=-1, prepend=1.0)
    nowhere_else = (np.arange(len(rows)) == len(rows) - 1).astype(float)
    return Reflected(
        np.where(kept, above, 1.0),
        np.where(kept, below, 0.0),
        np.where(kept, np.maximum(lift, 0.0), 0.0),
        np.where(kept[..., None], landing, nowhere_else),
    )


def _beyond(tails: _Tails, rows: int) -> Floats:
    """How likely what is left is farther apart than each row, rounded up; for each level with a distance, so many rows."""
    found = np.minimum(up(tails.met(), by=1e-10), 1.0).reshape(-1, rows)
    found[:, -1] = 0.0
    return np.asarray(np.maximum.accumulate(found[:, ::-1], axis=-1)[:, ::-1])


@dataclass(frozen=True, eq=False)
class _Tails:
    """U(y) and V(y + row), the tails of what is left, where one rises with y and the other falls.

    Where the coupling's quantile is above both, the one is above y and the other below y + row. This holds for any y: a
    good one is where they meet.
    """

    level: Floats
    distance: Floats
    apart: Floats
    row: Floats

    def met(self) -> Floats:
        """The larger of the two where they meet, by halving; what Newton's method foresees need not be looked at."""
        guess = self._guessed()
        low, high = self._halved(lambda y: y > guess)
        first, second = self._left(high)
        missed = np.flatnonzero(self._over(low) | ~(first * self._rest > second * self.apart))
        if missed.size:
            few = _Tails(self.level[missed], self.distance[missed], self.apart[missed], self.row[missed])
            first[missed], second[missed] = few._left(few._halved(few._over)[1])
        return np.maximum(first / self.apart, second / self._rest)

    def _halved(self, over: Callable[[Floats], NDArray[np.bool_]]) -> tuple[Floats, Floats]:
        low, high = self._middle - self.row, self._middle
        for _ in range(_COUPLING_HALVINGS):
            y = (low + high) / 2
            beyond = over(y)
            low, high = np.where(beyond, low, y), np.where(beyond, y, high)
        return low, high

    def _over(self, y: Floats) -> NDArray[np.bool_]:
        first, second = self._left(y)
        return first * self._rest > second * self.apart

    @np.errstate(all="ignore")  # a guess may be anything
    def _guessed(self) -> Floats:
        """By √(−log U) and √(−log V), which are all but straight lines, as of normal tails."""
        y = self._middle - self.row / 2
        for _ in range(_GUESSES):
            first, second = self._left(y)
            (rise, here), (fall, there) = self._line(first, self.apart, y), self._line(second, self._rest, y + self.row)
            y = np.clip(y + (here - there) / (rise + fall), self._middle - self.row, self._middle)
        return y

    def _line(self, left: Floats, mass: Floats, x: Floats) -> tuple[Floats, Floats]:
        """How steep √(−log) of the share that is left is, and what it is."""
        share = np.clip(left / mass, 1e-300, 1 - 1e-12)
        root = np.sqrt(-np.log(share))
        return np.maximum(self._density(x) / (2 * mass * share * root), 1e-300), root

    def _density(self, x: Floats) -> Floats:
        """|p − e^c·q|."""
        return np.abs(_normal(x) - self._power * _normal(x - self.distance))

    def _left(self, y: Floats) -> tuple[Floats, Floats]:
        """The masses of what is left in both tails."""
        first = _left_of_first(y, self.level, self.distance)
        return first, _left_of_second(y + self.row, self.level, self.distance)

    @cached_property
    def _middle(self) -> Floats:
        return self.distance / 2 - self.level / self.distance

    @cached_property
    def _rest(self) -> Floats:
        return np.expm1(self.level) + self.apart

    @cached_property
    def _power(self) -> Floats:
        return np.exp(self.level)


def _normal(x: Floats) -> Floats:
    return np.exp(-0.5 * np.square(x) - LOG_SQRT_2PI)


def _left_of_first(y: Floats, level: Floats, distance: Floats) -> Floats:
    """∫_{−∞}^y (p − e^c·q), for y up to where the densities meet."""
    return tail_difference(-y, distance, distance * (distance / 2 - y) - level)


def _left_of_second(z: Floats, level: Floats, distance: Floats) -> Floats:
    """∫_z^∞ (e^c·q − p), for z from where the densities meet."""
    near = z - distance
    found = np.exp(level) * tail_difference(np.maximum(near, _LOWEST), distance, level + distance * (z - distance / 2))
    return np.where(near < _LOWEST, 1e300, found)


def tail_difference(near: Floats, distance: Floats | float, fall: Floats | float) -> Floats:
    """φ(a)·(m(a) − e^{−fall}·m(a + distance)), rounded up: Q(a) − e^c·Q(a + distance) without its cancellation."""
    near, everything = np.clip(near, _LEAST_NEAR, _FARTHEST), near < _LEAST_NEAR
    far = np.exp(-np.maximum(fall, 0.0)) * mills(near + distance)
    difference = mills(near) * (1 + _ULPS) - far * (1 - _ULPS)
    found = np.exp(-0.5 * np.square(near) - LOG_SQRT_2PI) * np.maximum(difference, 0.0)
    return np.where(everything, 1.0, found)
