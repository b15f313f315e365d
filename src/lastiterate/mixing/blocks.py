"""The profile recursion over many blocks, as a privacy profile: which grid to put it on.

Whatever the grid, the profile is valid. The scale of the answer is not known before: it may be that of the block from any
two states, or far below it. So a coarse grid comes first, and is narrowed until the answer fills it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.mixing.grids import SMALLEST, chords, even, narrowed
from lastiterate.mixing.recursion import Block, for_ever, from_common_start
from lastiterate.numerics.arrays import Floats

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
