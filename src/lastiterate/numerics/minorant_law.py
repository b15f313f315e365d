"""The law of what a random sequence of coins costs along its convex minorant.

Coins of probability p fall at k steps; S_t of the first t show heads. The greatest convex minorant of S has faces, each of w
steps and h heads, and every face has its cost. Sparre Andersen, and Abramson and Pitman 2011: the faces (those of one slope
taken together) have the law of the cycles of a random permutation of the steps, each with the heads that fall on it. So, for
costs that add up along one slope, the law F_k of the sum is (1/k)·Σ_w G_w ∗ F_{k−w}, G_w that of one cycle of w steps.

Laws are rounded up: costs to a lattice, and for long sequences k − w to one of a few lengths, because F_k grows with k.
The transform is tilted, so that rounding errors are small where costs are large. Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up

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
    """Of `steps` coins, with the cost of a face by `face_costs`."""
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
