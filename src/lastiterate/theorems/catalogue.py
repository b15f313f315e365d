"""Every theorem, written out. To be listed is to be tested."""

from __future__ import annotations

from lastiterate.theorems import bok2024, boninsegna2023, kong2025, one_pass, shift_engine
from lastiterate.theorems.theorem import Theorem

CATALOGUE: tuple[Theorem, ...] = (
    shift_engine.SHIFT_ENGINE,
    shift_engine.RANDOM_ORDER,
    bok2024.CONTRACTING_FULL,
    bok2024.BOUNDED_FULL,
    bok2024.CONTRACTING_CYCLIC,
    bok2024.BOUNDED_CYCLIC,
    one_pass.FELDMAN,
    one_pass.BALLE_NONEXPANSIVE,
    one_pass.BALLE_CONTRACTING,
    boninsegna2023.FIXED_BATCHES,
    kong2025.BOUNDED_DOMAIN,
    kong2025.UNBOUNDED_DOMAIN,
    bok2024.FULL_COMPOSITION,
    bok2024.PASSES_COMPOSITION,
    bok2024.RANDOM_COMPOSITION,
)
