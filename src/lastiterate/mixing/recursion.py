"""The profile recursion: what a block of steps makes of a privacy profile. Small, and trusted.

Let h bound the profile of the state before a block, d that of the block from one common state, M that of the block from any
two states. With x = h(e0), for every 0 ≤ e0 ≤ ε the state after the block has a profile of at most

    max{ d(ε − e0), (1 − x)·d(ε − e0) + x·M(ε − e0 + log(1 + (e^{e0} − 1)/x)) }.

Proof (docs/proofs.md): Balle et al. 2019 write the two laws before the block as overlapping mixtures at e0; the common part
goes through d, the rest through M. On an even grid of ε, e0 runs through the grid as well and d is only needed on it; M is
interpolated in e^ε, in which it is convex, so that a chord lies above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
