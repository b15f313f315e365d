"""Every theorem, written out. To be listed is to be tested."""

from __future__ import annotations

from lastiterate.theorems import (
    asoodeh2023,
    balle2019,
    block_mixing,
    bok2024,
    bok2024_random,
    boninsegna2023,
    epoch_by_epoch,
    feldman2018,
    hidden_epochs,
    hidden_place,
    kong2025,
    langevin,
    regularised,
    shift_engine,
    window_tail,
)
from lastiterate.theorems.theorem import Theorem

CATALOGUE: tuple[Theorem, ...] = (
    shift_engine.SHIFT_ENGINE,
    shift_engine.RANDOM_ORDER,
    hidden_place.HIDDEN_PLACE,
    epoch_by_epoch.EPOCH_BY_EPOCH,
    hidden_epochs.HIDDEN_EPOCHS,
    block_mixing.BLOCK_MIXING,
    regularised.REGULARISED_MIXING,
    asoodeh2023.CURVED,
    asoodeh2023.PROJECTED,
    asoodeh2023.REGULARISED,
    bok2024.CONTRACTING_FULL,
    bok2024.BOUNDED_FULL,
    bok2024.CONTRACTING_CYCLIC,
    bok2024.BOUNDED_CYCLIC,
    feldman2018.ONE_PASS_CONVEX,
    balle2019.ONE_PASS_CONVEX,
    balle2019.ONE_PASS_STRONGLY_CONVEX,
    boninsegna2023.FIXED_BATCHES,
    kong2025.BOUNDED_DOMAIN,
    kong2025.UNBOUNDED_DOMAIN,
    langevin.FULL_BATCH,
    langevin.RANDOM_BATCHES,
    langevin.PASSES,
    bok2024.FULL_COMPOSITION,
    bok2024.PASSES_COMPOSITION,
    bok2024_random.RANDOM_CONTRACTING,
    bok2024_random.RANDOM_BOUNDED,
    bok2024_random.RANDOM_COMPOSITION,
    window_tail.WINDOW_TAIL,
)
