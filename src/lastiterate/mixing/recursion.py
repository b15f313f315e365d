"""The profile recursion: what a block of steps makes of a privacy profile. Small, and trusted.

Let h bound the profile of the state before a block, d that of the block from one common state, M that of the block from any
two states. With x = h(e0), for every 0 ≤ e0 ≤ ε the state after the block has a profile of at most

    max{ d(ε − e0), (1 − x)·d(ε − e0) + x·M(ε − e0 + log(1 + (e^{e0} − 1)/x)) }.

Proof (docs/proofs.md): Balle et al. 2019 write the two laws before the block as overlapping mixtures at e0; the common part
goes through d, the rest through M. On an even grid of ε, e0 runs through the grid as well and d is only needed on it; M is
interpolated in e^ε, in which it is convex, so that a chord lies above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down, up

_LEAST = 1e-250  # below, products would be rounded to 0, which is a claim; far above, small δ would be lost


@dataclass(frozen=True, eq=False)
class Block:
    """One block of steps: d on an even grid of ε from 0 on, and M at increasing ε from 0 on. All are upper bounds."""

    epsilons: Floats
    common: Floats
    apart_epsilons: Floats
    apart: Floats

    def after(self, before: Floats) -> Floats:
        """A profile after the block, on the grid, from one before it: the best e0 of the grid for each ε of the grid."""
        weights = np.maximum(np.minimum.accumulate(np.minimum(before, 1.0)), _LEAST)
        with np.errstate(over="ignore"):
            # Rounded down: a smaller ε makes for a larger M.
            lifts = down(np.log1p(np.expm1(self.epsilons) / weights))
        rest, split = self._pairs
        elsewhere = self._apart_at(down(self.epsilons[rest]) + lifts[split])
        common = self.common[rest]
        mixed = up(np.maximum(common, (1 - weights[split]) * common + weights[split] * elsewhere))
        best = np.ones_like(weights)
        np.minimum.at(best, rest + split, mixed)
        return np.maximum(best, _LEAST)

    def _apart_at(self, epsilons: Floats) -> Floats:
        """Beyond the last ε, what it is there."""
        known = self.apart_epsilons
        return np.interp(np.exp(np.minimum(epsilons, known[-1])), np.exp(known), self.apart)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Every (ε − e0, e0) whose sum is on the grid."""
        along = np.arange(len(self.epsilons))
        rest, split = np.meshgrid(along, along, indexing="ij")
        inside = rest + split < len(along)
        return rest[inside], split[inside]


def from_common_start(block: Block, blocks: int) -> Floats:
    """The profile after so many blocks from one common state: h = 0, and block after block h grows."""
    profile = np.zeros_like(block.epsilons)
    for _ in range(blocks):
        profile = block.after(profile)
    return profile


def for_ever(block: Block, known: Floats, rounds: int) -> Floats:
    """A profile after any number of blocks from a common state, given one that is known to hold after any number.

    What a block makes of a valid h is valid. After a first block, or a shorter one, the profile is at most d, and no
    block makes less than d of anything.
    """
    profile = known
    for _ in range(rounds):
        following = np.minimum(profile, block.after(profile))
        if (following >= profile * (1 - 1e-4)).all():
            return following
        profile = following
    return profile


# Grids of ε for profile recursions: a coarse one first, narrowed until the profile fills it.
#
# Whatever the grid, a profile on it is valid: where it ends is a matter of tightness.


COARSE = 40  # cells: a round takes the square of it, and a coarse grid only finds where the fine one has to end
SMALLEST = 1e-17  # profiles are followed down to here, below any δ that is asked for; a longer grid would be coarser


def even(largest: float, cells: int) -> Floats:
    return largest * np.arange(cells + 1) / cells


def chords(epsilons: Floats, known_epsilons: Floats, deltas: Floats) -> Floats:
    """Between known points of a profile, the chord in e^ε, in which it is convex; beyond the last, what it is there."""
    return up(np.interp(np.exp(epsilons), np.exp(known_epsilons), deltas))


def narrowed(reach: float, filled: int, settle: Callable[[Floats, Floats], Floats]) -> tuple[Floats, Floats]:
    """A coarse grid that ends where the profile has fallen to its smallest, and not long before; and that profile.

    `settle` makes of a grid and of a valid profile on it a better one. If the profile is not yet negligible after `filled`
    cells, the grid is fine enough.
    """
    grid = even(reach, COARSE)
    known = np.ones_like(grid)
    while True:
        known = settle(grid, known)
        small = np.flatnonzero(known <= SMALLEST)
        if not small.size or small[0] > filled or grid[-1] < 1e-9:
            return grid, known
        narrower = even(float(grid[max(small[0], 1)]) * 1.02, COARSE)
        grid, known = narrower, chords(narrower, grid, known)


# The profile recursion over many blocks, as a privacy profile: which grid to put it on.
#
# Whatever the grid, the profile is valid. The scale of the answer is not known before: it may be that of the block from
# any
# two states, or far below it. So a coarse grid comes first, and is narrowed until the answer fills it.


Bound = Callable[[Floats], Floats]

_FINE = 128  # cells: a round takes the square of it
_FILLED = 26  # cells of a coarse grid: if the profile is not yet negligible there, it is fine enough
_ROUNDS = 400  # each gives a bound; they end when nothing falls by 1e-4, and this ends those that fall slowly for long
_FEW = 40  # blocks that are gone through one by one, which is cheap; beyond, the bound for any number of blocks serves
_APART_POINTS = 400  # chords lie above M: with fewer points by more


def mixed_profile(common: Bound, apart: Bound, blocks: int) -> Profile:
    """δ(ε) after so many blocks; `common` and `apart` are upper bounds on d and M, for arrays of ε."""
    reach = _reach(apart)
    apart_epsilons = reach * np.linspace(0.0, 1.0, _APART_POINTS) ** 2
    table = np.minimum.accumulate(apart(apart_epsilons))

    def block(grid: Floats) -> Block:
        return Block(grid, common(grid), apart_epsilons, table)

    grid, known = narrowed(reach, _FILLED, lambda grid, known: for_ever(block(grid), known, _ROUNDS))
    epsilons = even(float(grid[-1]), _FINE)
    if blocks <= _FEW:
        deltas = from_common_start(block(epsilons), blocks)
    else:
        deltas = for_ever(block(epsilons), chords(epsilons, grid, known), _ROUNDS)
    return Profile(epsilons=np.append(epsilons, apart_epsilons), deltas=np.append(deltas, table))


def _reach(bound: Bound) -> float:
    """An ε beyond which the bound is negligible."""
    reach = 1e-3
    while reach < LARGEST_TABLED and bound(np.array([reach])).item() > SMALLEST * 1e-4:
        reach *= 1.5
    return min(reach, LARGEST_TABLED)
