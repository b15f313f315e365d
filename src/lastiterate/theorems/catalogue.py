"""Every theorem, written out. To be listed is to be tested."""

from __future__ import annotations

from lastiterate.theorems import balle2019, bok2024, boninsegna2023, epoch_by_epoch, feldman2018, kong2025, shift_engine
from lastiterate.theorems.theorem import Theorem

CATALOGUE: tuple[Theorem, ...] = (
    shift_engine.SHIFT_ENGINE,
    shift_engine.RANDOM_ORDER,
    epoch_by_epoch.EPOCH_BY_EPOCH,
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
    bok2024.FULL_COMPOSITION,
    bok2024.PASSES_COMPOSITION,
    bok2024.RANDOM_COMPOSITION,
)
