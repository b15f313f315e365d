"""Noise that came before a record's turn hides it, too: paths with prepayment, and what they cost.

Two runs differ at a turn by s·U(x), |U| ≤ 1, and U turns by at most ℓ times the way that the iterate has gone. A path says
what is kept between them after each step: b along the coming push, against it (prepaid), or ρ in any direction. A step maps
b to c·b, give or take (ω + c·γ)·b, where γ bounds how far U turned, and ρ to at most L·ρ. So the step pays at most

    a_t = max(0, s + b_t − c·b_{t−1} + q·b_{t−1} + L·ρ_{t−1} − ρ_t),   q = ω + c·γ,

and μ² = Σ(a/ν)². Every path b, ρ ≥ 0 that is 0 at both ends and keeps b_t ≥ c·b_{t−1} − s is a proof, but for a probability
δ0 that some step of the noise is longer than κ. (docs/proofs.md, "Prepayment")
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri

from .places import NewOrders, Places
from .steps import Floats, Refused, Steps, greatest

_UP, _ULP = 1 + 2.0**-50, 2.0**-52
_CANCELLED = 16 * _ULP  # of the largest term of a payment: what its sum of five products may have lost
_SUM_UP = 1 + 1e-13  # squares and pairwise sums of up to 2⁵⁰ of them
_DECAY_DOWN = 1 - 1e-11  # decay is rounded up, by less than this; what stays must not be rounded down with it
_LEAST_SLACK = 1e-305  # shared among steps and functions it keeps as many digits as are counted on
_LEAST_SQUARE = 1e-300  # more than all squares that underflow come to

_CHUNK = 1 << 16

FACTS = ("center", "radius", "movement", "decay", "rough")


class TooLarge(Refused):
    """A payment moves the iterate farther than was assumed."""


@dataclass(frozen=True, eq=False)
class Smooth:
    """One entry per step: c and ω of its ball, what gradients move the iterate by, what decay takes, what rounding adds.

    `turning` is ℓ, `rank` the dimension that U sees, `start` the norm of the first iterate.
    """

    center: Floats
    radius: Floats
    movement: Floats
    decay: Floats
    rough: Floats
    turning: float
    rank: int
    start: float

    @property
    def alike(self) -> bool:
        """Whether one number for every step is all that is stored, and no step enlarges what is prepaid."""
        arrays = [getattr(self, name) for name in FACTS]
        return all(x.strides == (0,) or x.size == 1 for x in arrays) and float(self.center[0]) <= 1

    def like_the_first(self, steps: int) -> Smooth:
        """Return the facts of so many steps, each like the first."""
        return self._each(lambda values: np.broadcast_to(values[0], steps))

    def part(self, first: int, last: int) -> Smooth:
        """Return the facts of the steps `first` to `last`, the latter left out."""
        return self._each(lambda values: values[first:last])

    def pushed(self, times: float) -> Smooth:
        """Return the facts where pushes, and what rounding adds to them, are so many times as large."""
        return self if times == 1 else replace(self, rough=self.rough * times)

    def _each(self, change: Callable[[Floats], Floats]) -> Smooth:
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in FACTS}
        return replace(self, **changed)


@dataclass(frozen=True, eq=False)
class Kept:
    """What each step keeps of what is prepaid: c, and q of a ball around it; without either, nothing may be prepaid."""

    center: Floats
    lost: Floats

    @property
    def least(self) -> Floats:
        """The part of what is prepaid that a step surely keeps."""
        return np.maximum(self.center - self.lost, 0.0)

    def part(self, first: int, last: int) -> Kept:
        return Kept(self.center[first:last], self.lost[first:last])


def kept(smooth: Smooth, noise: Floats, largest: float, slack: float, functions: int) -> Kept:
    """Return what steps keep if payments are up to `largest`, with probability 1 − slack, for so many different U."""
    if not (_LEAST_SLACK <= slack < 1 and largest >= 0 and functions >= 1 and smooth.rank >= 1 and smooth.start >= 0):
        raise Refused(
            f"slack must be from {_LEAST_SLACK:g} to 1, payments and the start at least 0, functions and rank at least 1."
        )
    if not smooth.turning >= 0:
        raise Refused("how a push turns must be known, and at least 0.")
    if not ((smooth.center > 0) & (smooth.decay >= 0) & (smooth.decay <= 1)).all():
        raise Refused("a step must keep its direction, and decay must be from 0 to 1.")
    moved = _moved(smooth, noise, largest, longest(smooth.rank, slack / (len(noise) * functions)))
    turned = smooth.turning * (moved if moved.strides == (0,) else np.append(0.0, moved[:-1])) * _UP
    return Kept(smooth.center, (smooth.radius + smooth.center * turned) * _UP)


def longest(rank: int, probability: float) -> float:
    """Return a length that a standard normal vector of this dimension exceeds with no greater probability."""
    found = float(np.sqrt(chdtri(rank, probability))) * (1 + 1e-9)
    if chdtrc(rank, found * found) * (1 + 1e-9) <= probability:
        return found
    return (math.sqrt(rank) + math.sqrt(-2 * math.log(probability))) * _UP


def _moved(smooth: Smooth, noise: Floats, largest: float, farthest: float) -> Floats:
    """Return how far each step may take the iterate, as far as U sees it."""
    if not smooth.decay.any():
        once = smooth.movement.strides == noise.strides == (0,)
        way, std = (smooth.movement[:1], noise[:1]) if once else (smooth.movement, noise)
        return np.broadcast_to((way + largest + std * farthest) * _UP, len(noise))
    if smooth.alike and noise.strides == (0,):
        at = float(smooth.decay[0])
        ends = 2 * (smooth.movement[:1] + largest) + at * smooth.start + noise[:1] * farthest * math.sqrt(2 / (2 - at))
        return np.broadcast_to(ends * _UP, len(noise))
    far, variance, moved = smooth.start, 0.0, []
    for way, lost, std in zip(smooth.movement.tolist(), smooth.decay.tolist(), noise.tolist(), strict=True):
        moved.append(way + largest + lost * far + farthest * math.sqrt(std * std + lost * lost * variance))
        stays = 1 - lost * _DECAY_DOWN
        far = (stays * far + way + largest) * _UP
        variance = (stays * stays * variance + std * std) * _UP
    return np.array(moved) * (1 + 8 * _ULP)


def price(steps: Steps, given: Kept, path: Floats) -> tuple[float, float, float]:
    """An upper bound on μ for this path; the largest payment of a step that leaves something prepaid, and of all steps."""
    if path.shape != (len(steps),) or path[-1] != 0:
        raise Refused("a path must have an entry for each step, and end with nothing.")
    squares, prepaying, largest = [0.0], 0.0, 0.0
    for first in range(0, len(steps), _CHUNK):
        cut = slice(first, first + _CHUNK)
        before = np.append(path[first - 1] if first else 0.0, path[cut][:-1])
        paid = payments(steps.part(first, first + _CHUNK), given.part(first, first + _CHUNK), before, path[cut])
        with np.errstate(over="ignore"):
            squares.append(float(np.square(paid / steps.noise[cut]).sum()) + (_LEAST_SQUARE if paid.any() else 0.0))
        prepaying = max(prepaying, float(paid[path[cut] < 0].max(initial=0.0)))
        largest = max(largest, float(paid.max()))
    mu = math.sqrt(math.fsum(squares)) * _SUM_UP if math.isfinite(sum(squares)) else math.inf
    return mu, prepaying, largest


def payments(steps: Steps, given: Kept, before: Floats, after: Floats) -> Floats:
    """Return the most that steps between these pay, rounded up; refuse them if what is prepaid would be given back."""
    prepaid, rest, kept_prepaid, left = (np.maximum(x, 0.0) for x in (-before, before, -after, after))
    carried = given.center * prepaid
    given_back = carried * (1 + 4 * _ULP) - steps.sensitivity * (1 - 4 * _ULP) > kept_prepaid
    if given_back.any() or (prepaid[given.least <= 0] > 0).any() or np.isnan(after).any():
        raise Refused("what is prepaid must be kept until the turn.")
    with np.errstate(invalid="ignore"):
        grown = np.where(rest > 0, steps.lipschitz * rest, 0.0) + given.lost * prepaid
        paid = steps.sensitivity + kept_prepaid - carried + grown - left
    return np.maximum(paid + _CANCELLED * (carried + steps.sensitivity + kept_prepaid + grown + left), 0.0)


@np.errstate(all="ignore")  # what leaves the range of floats costs ∞, and what is then no number is refused
def prepaid_mu(steps: Steps, smooth: Smooth, given: Kept, path: Floats, largest: float) -> float:
    """μ of a stretch along this path. What rounding adds to a push, in whatever direction, is paid where it comes."""
    mu, prepaying, most = price(steps, given, path)
    extra = np.where(steps.sensitivity > 0, smooth.rough, 0.0)
    # Where weights decay, how far the iterate moves depends on all payments before; else on those that prepay alone.
    if not (most if smooth.decay.any() else prepaying) + extra.max() <= largest:
        raise TooLarge("a payment is larger than the largest that is named.")
    return (mu + math.sqrt(float(np.square(extra / steps.noise).sum()))) * _SUM_UP


def when_prepaid(places: Places, smooth: Smooth) -> Places:
    """Return the places, none of which stands for another unless all steps are alike in everything."""
    return places if places.steps.alike and smooth.alike else replace(places, each=True)


def prepaid_places(places: Places, smooth: Smooth, largest: float, times: float) -> dict[int, float]:
    """The places to look at: with all steps alike that bring nothing apart, a later one is no better (docs/proofs.md).

    Where some places stand for others, the payments of these are bounded as well; a push may be so many `times` as large.
    """
    alike = places.steps.alike and smooth.alike
    if isinstance(places, NewOrders) and not alike:
        raise Refused("with a new order each epoch all steps have to be alike.")
    if isinstance(places, NewOrders) or (alike and greatest(places.steps.lipschitz) <= 1):
        if not largest >= largest_payment(places.steps, smooth, times):
            raise Refused("the payments of other places may be larger than the largest that is named.")
        return places.wanted
    count = places.every if places.averaged else min(places.every, len(places.steps))
    return {place: places.probability(place, place + 1) if places.averaged else 0.0 for place in range(count)}


def largest_payment(steps: Steps, smooth: Smooth, times: float) -> float:
    """Return `times` the largest payment of the best schedule of steps all alike: s, or s·(1 + L)/(1 + L^T) if L < 1."""
    factor = float(steps.lipschitz[0])
    more = 1.0 if factor >= 1 else (1 + factor) / (1 + factor ** len(steps)) * _UP
    return (more * greatest(steps.sensitivity) + greatest(smooth.rough)) * times * _UP
