"""The profile recursion in layers: what a block of steps makes of a privacy profile. Small, and trusted.

As `mixing/recursion.py`, with h, d and M the same, but the two laws before the block are not cut at one level. For
0 ≤ c₂ ≤ c₁ ≤ ε, x = h(c₁) and a grid c₂ = g_0 < … < g_n = c₁,

    h_new(ε) ≤ d(ε − c₂) + Σ_{i<n} w_i·h(g_i) + x·M(ε − c₂ + log((e^{c₂} − 1 + x)/x)),

w_i ≥ 0 the increases of slope, at t_i = e^{g_i}, of the chords of t·d(ε − log t), whose slope before t_0 is d(ε − c₂). With
c₁ = c₂ the first term has the factor 1 − x, or the last is left out. Proof: docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.mixing.recursion import Block, chords, even, narrowed
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down, up

_LEAST = 1e-30  # of a profile: products of smaller ones might be rounded to 0, which is a claim
_WIDTHS = (0, 1, 2, 3, 5, 8, 12, 18, 27, 40, 60)  # from c₂ to c₁, in cells: any are valid, more take longer


@dataclass(frozen=True, eq=False)
class _Triples:
    """Every ε, c₂ and c₁ by their cells, the first `single` ones with c₁ = c₂; and what does not change with h.

    `firsts`: where another ε begins, which is that of `ends`.
    `start`: d(ε − c₂). `ahead`: by how much the first chord is steeper. `grown`: e^{c₂} − 1. `rest`: ε − c₂, rounded down.
    `paid_before`, `paid_low`, `paid_high`: where sums over the chords up to the cell before c₁, up to c₂ and to c₁ stand.
    """

    firsts: NDArray[np.intp]
    ends: NDArray[np.intp]
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    single: int
    start: Floats
    ahead: Floats
    grown: Floats
    rest: Floats
    paid_before: NDArray[np.intp]
    paid_low: NDArray[np.intp]
    paid_high: NDArray[np.intp]


class Layers(Block):
    """One block of steps, as there: d on an even grid of ε from 0 on, and M at increasing ε from 0 on."""

    def after(self, before: Floats) -> Floats:
        """A profile after the block, on the grid, from one before it: the best c₁ and c₂ for each ε."""
        known = np.maximum(np.minimum.accumulate(np.minimum(before, 1.0)), _LEAST)
        paid, at = np.cumsum(self._increases * known, axis=1).ravel(), self._triples
        x, single = known.take(at.high), slice(at.single)
        # The difference of two sums may have lost what is small beside them: that much is added.
        between = at.ahead * known.take(at.low) + paid.take(at.paid_before) - paid.take(at.paid_low)
        between += 1e-14 * paid.take(at.paid_high)
        with np.errstate(over="ignore"):
            raised = down(np.log1p(at.grown / x))
        elsewhere = x * self._apart_at(at.rest + raised)
        found = at.start + between + elsewhere
        found[single] = np.maximum(at.start[single], (1 - x[single]) * at.start[single] + elsewhere[single])
        best = np.ones_like(known)
        np.minimum.at(best, at.ends, up(np.minimum.reduceat(found, at.firsts)))
        return np.maximum(np.minimum.accumulate(best), _LEAST)

    @cached_property
    def _triples(self) -> _Triples:
        count = len(self.epsilons)
        along = np.arange(count)
        width, end, low = (one.ravel() for one in np.meshgrid(np.array(_WIDTHS), along, along, indexing="ij"))
        inside = low + width <= end
        width, end, low = width[inside], end[inside], low[inside]
        high, row, start = low + width, end * count, self.common[end - low]
        firsts = np.flatnonzero(np.diff(end, prepend=-1))
        return _Triples(
            firsts,
            end[firsts],
            low,
            high,
            int(np.count_nonzero(width == 0)),
            start,
            np.maximum(self._slopes[end, low] - start, 0.0),
            np.expm1(self.epsilons[low]),
            down(self.epsilons[end - low]),
            row + np.maximum(high - 1, 0),
            row + low,
            row + high,
        )

    @cached_property
    def _slopes(self) -> Floats:
        """For each ε (rows), of the chord of t·d(ε − log t) from each t = e^g to the next."""
        along = np.arange(len(self.epsilons))
        left = along[:, None] - along
        powers = np.exp(self.epsilons)
        values = np.where(left >= 0, powers * self.common[np.maximum(left, 0)], 0.0)
        slopes = up(np.diff(values, axis=1) / np.diff(powers), by=1e-13 / float(self.epsilons[1]))
        # Where d is bent by rounding, steeper chords lie above.
        slopes = np.maximum.accumulate(np.where(left[:, 1:] >= 0, slopes, 0.0), axis=1)
        return np.append(slopes, np.zeros((len(along), 1)), axis=1)

    @cached_property
    def _increases(self) -> Floats:
        return np.maximum(np.diff(self._slopes, axis=1, prepend=0.0), 0.0)


def for_ever(blocks: list[Layers], known: Floats, rounds: int) -> Floats:
    """A profile after any number of blocks, of whichever length, from one that is known to hold after any number."""
    profile = known
    for _ in range(rounds):
        following = profile
        for block in blocks:
            following = np.minimum(following, block.after(profile))
        if (following >= profile * (1 - 1e-4)).all():
            return following
        profile = following
    return profile


# Blocks of steps of several lengths, one after the other without end, as a privacy profile: which grid to put it on.
#
# Whatever the grid, the profile is valid: a coarse one comes first, and shows where the fine one has to end and which
# blocks
# are worth their time there.


_FINE = 120  # cells: a round takes the square of it
_FILLED = 24  # cells of a coarse grid: if the profile is not yet negligible there, it is fine enough
_ROUNDS = 60  # each gives a bound; they end when nothing falls by 1e-4
_MOST_BLOCKS = 3  # on the fine grid: those that are best at some δ


@dataclass(frozen=True, eq=False)
class BlockEnds:
    """What a block reveals: d, from a common state, as a function; and M, from any two states, at increasing ε."""

    common: Callable[[Floats], Floats]
    apart_epsilons: Floats
    apart: Floats

    def on(self, epsilons: Floats) -> Layers:
        return Layers(epsilons, self.common(epsilons), self.apart_epsilons, self.apart)


def settled(blocks: list[BlockEnds]) -> tuple[Floats, Floats]:
    """ε on an even grid, and δ after any number of blocks; each block may follow any other."""
    reach = float(max(block.apart_epsilons[-1] for block in blocks))
    grid, known = narrowed(
        reach, _FILLED, lambda grid, known: for_ever([block.on(grid) for block in blocks], known, _ROUNDS)
    )
    kept = _best(blocks, grid, known)
    fine = even(float(grid[-1]), _FINE)
    return fine, for_ever([block.on(fine) for block in kept], chords(fine, grid, known), _ROUNDS)


def _best(blocks: list[BlockEnds], grid: Floats, known: Floats) -> list[BlockEnds]:
    """The blocks that do most at some δ between certainty and next to nothing."""
    found = np.array([block.on(grid).after(known) for block in blocks])
    spots = [int(np.argmin(np.abs(np.log(known) - np.log(delta)))) for delta in (1e-2, 1e-5, 1e-8)]
    chosen = dict.fromkeys(int(np.argmin(found[:, spot])) for spot in spots)
    return [blocks[index] for index in list(chosen)[:_MOST_BLOCKS]]
