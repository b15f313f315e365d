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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammaln, xlog1py, xlogy

from lastiterate.numerics.arrays import Floats
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
        """The width of a block; the first may be shorter."""
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
        """The end of the lattice, on both sides."""
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
        """What is lost of payments in advance, all along the window."""
        return self.steps * (1 - self.least)

    @cached_property
    def payments(self) -> NDArray[np.intp]:
        """The payments of blocks (columns) at each level (rows), in points: none at first, and in the end the largest."""
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
    """Return the law of the least sum of squares of such payments."""
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


# The law of what a random sequence of coins costs along its convex minorant.
#
# Coins of probability p fall at k steps; S_t of the first t show heads. The greatest convex minorant of S has faces, each
# of w
# steps and h heads, and every face has its cost. Sparre Andersen, and Abramson and Pitman 2011: the faces (those of one
# slope
# taken together) have the law of the cycles of a random permutation of the steps, each with the heads that fall on it.
# So, for
# costs that add up along one slope, the law F_k of the sum is (1/k)·Σ_w G_w ∗ F_{k−w}, G_w that of one cycle of w steps.
#
# Laws are rounded up: costs to a lattice, and for long sequences k − w to one of a few lengths, because F_k grows with k.
# The transform is tilted, so that rounding errors are small where costs are large. Proof: docs/proofs.md.


Counts = NDArray[np.intp]

_MOST_CELLS, _LEAST_CELLS = 4096, 1024  # of the lattice: costs are rounded up to it, with fewer by more
_WORK = 4_000_000  # cells times steps: fewer cells for more steps
_EXACT = 64  # lengths up to here are followed one by one
_RATIO = 1.03  # between longer ones: a wider one rounds more, a closer one takes longer
_LOG_UNLIKELY = math.log(1e-26)  # of the heads of one cycle: more heads are counted as lost
_LOST = 1e-19  # the probability of sums beyond the lattice, and of such heads in one of at most 1e5 cycles
_CHERNOFF = 10  # tilts that are tried
_TILTED, _LARGEST_MOMENT = math.log(1e10), 1e3  # between the ends of the lattice; of all: what roundoff is a part of
_ROUNDOFF = 1e-12  # of transforms and of sums of 4096 terms, as a part of the largest transform: 100 times what is seen


@dataclass(frozen=True, eq=False)
class CostLaw:
    """Costs with their probabilities, each no less than it is; `lost` is the probability of more than the largest cost."""

    costs: Floats
    weights: Floats
    lost: float


def minorant_law(steps: int, rate: float, factor: float) -> CostLaw:
    """Return the law of the cost of `steps` coins, with the cost of a face by `face_costs`."""
    lengths = _lengths(steps)
    costs, weights = _faces(steps, rate, factor)
    largest, tilt = _largest_and_tilt(costs, weights, lengths)
    lattice = _lattice(largest, _cells_for(steps))
    found = _recursion(np.fft.rfft(_on_lattice(costs, weights, lattice, tilt), axis=1), lengths)
    if not np.isfinite(found).all():
        return CostLaw(np.zeros(1), np.ones(1), 1.0)
    tilted = np.maximum(np.fft.irfft(found, len(lattice)), 0.0) + _ROUNDOFF * float(found[0].real)
    return CostLaw(up(lattice), np.minimum(tilted * np.exp(-tilt * lattice), 1.0), 2 * _LOST)


def face_costs(heads: Floats, width: Floats, factor: float) -> Floats:
    """The least sum of squares that pays for pushes of 1 at the heads of a face, where what is left shrinks by `factor`.

    The heads of a face come no later than evenly spread, which is the worst. Paid evenly, as if nothing shrank: h²/w. Or
    each before the next: a push that is spread over g steps costs L^{2(g−1)}/Σ_{j<g} L^{2j}.
    """
    evenly = np.square(heads) / width
    if factor >= 1:
        return evenly
    gaps = np.floor(width / heads)
    longer = width - heads * gaps
    alone = (heads - longer) * _alone(gaps, factor) + longer * _alone(gaps + 1, factor)
    return np.minimum(evenly, alone)


def _alone(gaps: Floats, factor: float) -> Floats:
    if factor == 0:
        return np.where(gaps > 1, 0.0, 1.0)
    square = 2 * math.log(factor)
    return np.exp((gaps - 1) * square) * math.expm1(square) / np.expm1(gaps * square)


def _faces(steps: int, rate: float, factor: float) -> tuple[Floats, Floats]:
    """(costs, probabilities) of cycles of 1, 2, … steps (rows) with 0, 1, … heads."""
    widths = np.arange(1.0, steps + 1)[:, None]
    heads = np.arange(_most_heads(steps, rate) + 1.0)
    possible = heads <= widths
    left = np.where(possible, widths - heads, 0.0)
    with np.errstate(under="ignore"):
        logs = gammaln(widths + 1) - gammaln(heads + 1) - gammaln(left + 1) + xlogy(heads, rate) + xlog1py(left, -rate)
        weights = np.where(possible, np.exp(logs) * (1 + 1e-10), 0.0)
    costs = np.zeros_like(weights)
    costs[:, 1:] = np.where(possible, face_costs(np.clip(heads, 1.0, widths), widths, factor), 0.0)[:, 1:]
    return costs, weights


def _most_heads(width: int, rate: float) -> int:
    """More are unlikely, by Chernoff's bound."""
    low, high = math.ceil(width * rate), width
    while low < high:
        middle = (low + high) // 2
        if _log_chernoff(middle + 1, width, rate) <= _LOG_UNLIKELY:
            high = middle
        else:
            low = middle + 1
    return high


def _log_chernoff(heads: int, width: int, rate: float) -> float:
    if heads > width:
        return -math.inf
    part = heads / width
    if part <= rate:
        return 0.0
    rest = (1 - part) * math.log((1 - part) / (1 - rate)) if part < 1 else 0.0
    return -width * (part * math.log(part / rate) + rest)


def _lengths(steps: int) -> Counts:
    """From 0 on, all that are short, and some of the others."""
    found = list(range(min(steps, _EXACT) + 1))
    while found[-1] < steps:
        found.append(min(max(found[-1] + 1, int(found[-1] * _RATIO)), steps))
    return np.array(found, np.intp)


def _largest_and_tilt(costs: Floats, weights: Floats, lengths: Counts) -> tuple[float, float]:
    """A cost that is exceeded with a probability of at most _LOST, by Chernoff's bound; and a moderate tilt."""
    tilts = np.geomspace(min(5.0 / float(costs.max()), 1.0), 8.0, _CHERNOFF)
    with np.errstate(over="ignore", under="ignore"):
        moments = np.stack([(weights * np.exp(np.minimum(tilt * costs, 700.0))).sum(axis=1) for tilt in tilts], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        totals = _recursion(moments, lengths)
    known = np.isfinite(totals) & (totals > 0)
    bounds = (np.log(totals[known]) + 1e-6 - math.log(_LOST)) / tilts[known]
    largest = float(bounds.min(initial=float(costs.max()) * lengths[-1]))
    moderate = float(tilts[known][totals[known] <= _LARGEST_MOMENT].max(initial=0.0))
    return largest, min(moderate, _TILTED / largest)


def _lattice(largest: float, cells: int) -> Floats:
    """From 0 to beyond the largest cost; 1, which is what a turn costs at the end, lies on it."""
    return (
        np.arange(cells) * largest / (cells - 1)
        if largest >= cells - 1
        else np.arange(cells) / ((cells - 1) // largest)
    )


def _cells_for(steps: int) -> int:
    cells = _MOST_CELLS
    while cells > _LEAST_CELLS and cells * steps > _WORK:
        cells //= 2
    return cells


def _on_lattice(costs: Floats, weights: Floats, lattice: Floats, tilt: float) -> Floats:
    """For each width its probabilities on the lattice, tilted; what lies beyond the lattice is lost."""
    cells = len(lattice)
    places = np.searchsorted(lattice, costs)
    kept = (places < cells) & (weights > 0)
    rows = np.broadcast_to(np.arange(len(costs))[:, None], costs.shape)[kept]
    values = weights[kept] * np.exp(tilt * lattice[places[kept]])
    return np.asarray(np.bincount(rows * cells + places[kept], values, len(costs) * cells), float).reshape(-1, cells)


def _recursion(transforms: Any, lengths: Counts) -> Any:
    """F_k at the last of the lengths, from the transforms of G_w, w = 1, 2, …; every k − w is rounded up to a length."""
    sums = np.concatenate([np.zeros((1, transforms.shape[1])), np.cumsum(transforms, axis=0)])
    found = np.empty((len(lengths), transforms.shape[1]), transforms.dtype)
    found[0] = 1.0
    for index in range(1, len(lengths)):
        length, shorter = lengths[index], lengths[:index]
        ends = sums[length - 1 - np.append(-1, shorter)]
        own = ends[-1]
        sums_so_far = np.einsum("jf,jf->f", ends[:-1] - ends[1:], found[:index])
        found[index] = np.where(np.abs(own) < length / 2, sums_so_far / (length - own), np.inf)
    return found[-1]
