"""The law of the least steady payments that pay for pushes which come by chance.

Coins of probability p fall at k steps, and a head pushes by 1. A debt z starts at 0; a step keeps it, or l·z of what
is paid in advance, z < 0; then it adds the push and takes off a payment. Payments follow one profile, which does not fall:
min(level·profile, the largest), and the least level that leaves no debt in the end depends on the coins. For each level the
debt is a Markov chain, so the probability of a debt in the end is one sum after the other: no transforms, nothing drawn.

All is rounded up. Steps are taken in blocks with their pushes at the end, where they cost most; debts are put on the next
point of a lattice, which holds a push and the payments of a block; those beyond its upper end are never paid.
Proof: docs/proofs.md, "Hidden participation with prepayment".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammaln, xlog1py, xlogy

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.minorant_law import CostLaw
from lastiterate.numerics.rounding import up

LARGEST = 1.25  # payment of a step, in pushes
# Turns are moved to the end of their block, and every block is rounded up once: more blocks where more is lost.
_FEWEST_BLOCKS, _MOST_BLOCKS, _PER_LOSS = 15, 32, 24.0
_LEVELS, _MOST_LEVELS = 100, 140  # of payments, each rounded up to the next
_BETWEEN = (0.03, 0.08, 0.18, 0.35, 0.65)  # levels for each number of turns: most take little more
_FINEST, _COARSEST, _PER_TURN = 600, 48, 300.0  # points of the lattice in a push: rounding costs about half a percent
_DEVIATIONS, _MORE = 3.5, 5.0  # of the number of turns, and pushes: how far debts are followed
_AT_ONCE = 12  # levels
UNLIKELY = 1e-18  # that more turns come
_STEEPER, _POWER = 0.4, 0.55  # payments rise by e to this times (what is lost along the window) to that: near the best
_SAFE = 1e-12  # more than the relative error of a few operations


@dataclass(frozen=True)
class Steady:
    """`steps` coins of probability `rate`; of what is paid in advance a step keeps `least`, below 1."""

    steps: int
    rate: float
    least: float

    @cached_property
    def width(self) -> int:
        """Of a block; the first may be shorter."""
        blocks = min(max(_PER_LOSS * math.sqrt(self._lost), _FEWEST_BLOCKS), _MOST_BLOCKS)
        return math.ceil(self.steps / blocks)

    @cached_property
    def blocks(self) -> int:
        return -(-self.steps // self.width)

    @cached_property
    def first(self) -> int:
        return self.steps - (self.blocks - 1) * self.width

    @property
    def payable(self) -> bool:
        """Whether a push in every step can be paid with the largest payments."""
        return self.least > 0 and LARGEST * _kept(self.least, self.width)[1] >= 1

    @property
    def _turns(self) -> tuple[float, float]:
        """On average, and their deviation or more."""
        return self.steps * self.rate, math.sqrt(self.steps * self.rate)

    @cached_property
    def points(self) -> int:
        mean, deviation = self._turns
        return round(min(max(_PER_TURN * self.blocks / (mean + 5 * deviation + 1), _COARSEST), _FINEST))

    @cached_property
    def end(self) -> int:
        """Of the lattice, on both sides."""
        deviation = self._turns[1]
        return math.ceil(min(_DEVIATIONS * deviation + _MORE, self.steps + 1.0) * self.points)

    @property
    def _levels(self) -> Floats:
        """In pushes: none, a few for each number of turns, or evenly spread where these are many; and the largest."""
        turns = min(most_turns(self.steps, self.rate) * (1 + 0.2 * self._lost), LARGEST * self.steps)
        mean, deviation = self._turns
        fewest = max(mean - 3 * deviation, 0.0)
        few = (np.arange(1, math.ceil(turns) + 1)[:, None] + np.array(_BETWEEN)).ravel()
        many = fewest + (turns - fewest) * np.linspace(0.0, 1.0, _LEVELS + 1)[1:] ** 1.3
        return np.concatenate([[0.0], few if len(few) <= _MOST_LEVELS else many])

    @property
    def _lost(self) -> float:
        """Of what is paid in advance, all along the window."""
        return self.steps * (1 - self.least)

    @cached_property
    def payments(self) -> NDArray[np.intp]:
        """Of blocks (columns) at each level (rows), in points: none at first, and in the end the largest."""
        profile = np.exp(_STEEPER * self._lost**_POWER * np.arange(1 - self.blocks, 1) / self.blocks)
        per_step = np.minimum(self._levels[:, None] / (self.steps * profile.mean()) * profile, LARGEST)
        whole = np.floor(per_step * self.width * self.points)
        whole[:, 0] = np.floor(whole[:, min(1, self.blocks - 1)] * self.first / self.width)
        return whole.astype(np.intp)

    @property
    def costs(self) -> Floats:
        """The sum of the squares of the payments at each level, in pushes."""
        widths = np.full(self.blocks, float(self.width))
        widths[0] = self.first
        return np.asarray(up((np.square(self.payments / self.points) / widths).sum(axis=1), by=_SAFE))


@lru_cache(maxsize=16)
def payment_law(given: Steady) -> CostLaw:
    """Of the least sum of squares of such payments."""
    unpaid = np.minimum.accumulate(np.minimum(_unpaid(given) * (1 + 1e-10), 1.0))
    weights = np.append(1.0, unpaid[:-1]) - unpaid
    return CostLaw(given.costs, np.maximum(weights, 0.0) * (1 + 1e-12) + 1e-30, float(unpaid[-1]))


def _unpaid(given: Steady) -> Floats:
    """How likely it is that each level leaves a debt, at most; a few levels at a time, which fit into a cache."""
    payments = given.payments
    parts = [payments[first : first + _AT_ONCE] for first in range(0, len(payments), _AT_ONCE)]
    return np.concatenate([_unpaid_at(given, part) for part in parts])


def _unpaid_at(given: Steady, payments: NDArray[np.intp]) -> Floats:
    law: Floats = np.zeros((len(payments), 2 * given.end + 1))
    law[:, given.end] = 1.0
    beyond = np.zeros(len(law))
    for block in range(given.blocks):
        width = given.first if block == 0 else given.width
        law = _paid(law, payments[:, block], *_kept(given.least, width))
        law, more = _pushed(law, given.points, *_turns(width, given.rate))
        beyond += more
    return law[:, given.end + 1 :].sum(axis=1) + beyond


def _paid(law: Floats, payments: NDArray[np.intp], kept: float, early: float) -> Floats:
    """After a block without turns: debts less what is paid; of payments in advance, and of debts that turn into such, less.

    From a debt of 0 to one that is just paid off, where both meet, the chord lies above.
    """
    end = law.shape[1] // 2
    found = np.zeros_like(law)
    ahead, nearest = _gathered(law[:, end - 1 :: -1], kept * np.arange(1.0, end + 1))
    for row, paid in enumerate(payments.tolist()):
        over = min(paid, end + 1)
        turned, least = _gathered(law[row, end : end + over][::-1], early * np.arange(paid - over + 1.0, paid + 1))
        _add(found[row], end - math.floor(early * paid) - nearest, ahead[row])
        _add(found[row], end - least, turned)
        found[row, end : 2 * end + 1 - over] += law[row, end + over :]
    return found


def _gathered(law: Floats, places: Floats) -> tuple[Floats, int]:
    """What lies at these places, at most 1 apart, on the whole numbers below; and the first of these."""
    if not len(places):
        return law, 0
    whole = np.floor(places).astype(np.intp)
    starts = np.append(0, np.flatnonzero(np.diff(whole)) + 1)
    return np.asarray(np.add.reduceat(law, starts, axis=-1)), int(whole[0])


def _add(law: Floats, last: int, weights: Floats) -> None:
    """Downwards from this place on; what lies below the lattice is put on its lower end."""
    inside = min(max(last + 1, 0), len(weights))
    law[last + 1 - inside : last + 1] += weights[:inside][::-1]
    law[0] += weights[inside:].sum()


def _kept(least: float, width: int) -> tuple[float, float]:
    """What so many steps keep at least of what was paid before them, and of what each of them pays, on average."""
    if width == 1:
        return least, 1.0
    part = -math.expm1(width * math.log1p(least - 1))
    return (1 - part) * (1 - _SAFE), min(part / (width * (1 - least)), 1.0) * (1 - _SAFE)


def _pushed(law: Floats, points: int, chances: Floats, rest: float) -> tuple[Floats, Floats]:
    """After some turns, each with its chance; and how much of the law has left the lattice, with the rest of the chances."""
    found = chances[0] * law
    beyond = rest * law.sum(axis=1)
    for turns, chance in enumerate(chances[1:].tolist(), 1):
        cut = max(law.shape[1] - turns * points, 0)
        found[:, turns * points :] += chance * law[:, :cut]
        beyond += chance * law[:, cut:].sum(axis=1)
    return found, beyond


@lru_cache(maxsize=8)
def _turns(width: int, rate: float) -> tuple[Floats, float]:
    """How likely 0, 1, 2, … turns are in a block, rounded up, and more than these."""
    heads = np.arange(most_turns(width, rate) + 1.0)
    left = width - heads
    logs = gammaln(width + 1.0) - gammaln(heads + 1) - gammaln(left + 1) + xlogy(heads, rate) + xlog1py(left, -rate)
    with np.errstate(under="ignore"):
        return np.exp(logs) * (1 + 1e-11), float(bdtrc(heads[-1], width, rate)) * (1 + 1e-9) if left[-1] else 0.0


def most_turns(width: int, rate: float) -> int:
    """More are unlikely."""
    counts = np.arange(width + 1.0)
    return int(np.argmax(bdtrc(counts, width, rate) <= UNLIKELY))
