"""Blocks of steps of several lengths, one after the other without end, as a privacy profile: which grid to put it on.

Whatever the grid, the profile is valid: a coarse one comes first, and shows where the fine one has to end and which blocks
are worth their time there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lastiterate.mixing.grids import chords, even, narrowed
from lastiterate.mixing.layers import Layers, for_ever
from lastiterate.numerics.arrays import Floats

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
