"""The theorems, written out. To be listed is to be tested."""

from __future__ import annotations

import re

from lastiterate.theorems import (
    balls_and_bins,
    block_mixing,
    composition,
    epoch_by_epoch,
    hidden_epochs,
    hidden_participation,
    hidden_place,
    linear_optimiser,
    prepaid_epochs,
    prepaid_momentum,
    prepaid_participation,
    prepayment,
    reflection,
    regularised,
    shift_engine,
    window_tail,
)
from lastiterate.theorems.evidence import About
from lastiterate.theorems.papers import asoodeh2023, balle2019, bok2024, boninsegna2023, feldman2018, kong2025, langevin
from lastiterate.theorems.theorem import Theorem

_PAPER = re.compile(r"[a-z]+\d{4}/")  # in names: the first author and the year

# What `account` tries.
CATALOGUE: tuple[Theorem, ...] = (
    shift_engine.SHIFT_ENGINE,
    shift_engine.RANDOM_ORDER,
    prepayment.PREPAYMENT,
    prepayment.PREPAID_ORDER,
    hidden_place.HIDDEN_PLACE,
    hidden_place.PREPAID_HIDDEN_PLACE,
    epoch_by_epoch.EPOCH_BY_EPOCH,
    hidden_epochs.HIDDEN_EPOCHS,
    prepaid_epochs.PREPAID_EPOCHS,
    block_mixing.BLOCK_MIXING,
    reflection.REFLECTION,
    regularised.REGULARISED_MIXING,
    asoodeh2023.CURVED,
    kong2025.BOUNDED_DOMAIN,
    langevin.RANDOM_BATCHES,
    composition.FULL_COMPOSITION,
    composition.PASSES_COMPOSITION,
    composition.RANDOM_COMPOSITION,
    linear_optimiser.LINEAR_OPTIMISER,
    linear_optimiser.RANDOM_LINEAR_OPTIMISER,
    prepaid_momentum.PREPAID_MOMENTUM,
    window_tail.WINDOW_TAIL,
    hidden_participation.HIDDEN_PARTICIPATION,
    balls_and_bins.BALLS_AND_BINS,
    balls_and_bins.HIDDEN_ALLOCATION,
    balls_and_bins.PREPAID_ALLOCATION,
    balls_and_bins.WINDOW_OF_EPOCHS,
    prepaid_participation.PREPAID_PARTICIPATION,
)

# Of the papers, corrected where they are wrong: one of the above is always as sharp. For comparisons, and for certificates.
PAPERS: tuple[Theorem, ...] = (
    asoodeh2023.PROJECTED,
    asoodeh2023.REGULARISED,
    bok2024.CONTRACTING_FULL,
    bok2024.BOUNDED_FULL,
    bok2024.CONTRACTING_CYCLIC,
    bok2024.BOUNDED_CYCLIC,
    bok2024.RANDOM_CONTRACTING,
    bok2024.RANDOM_BOUNDED,
    feldman2018.ONE_PASS_CONVEX,
    balle2019.ONE_PASS_CONVEX,
    balle2019.ONE_PASS_STRONGLY_CONVEX,
    boninsegna2023.FIXED_BATCHES,
    kong2025.UNBOUNDED_DOMAIN,
    langevin.FULL_BATCH,
    langevin.PASSES,
)

ALL: tuple[Theorem, ...] = (*CATALOGUE, *PAPERS)
# Whatever is released of a run, these cover it.
OF_EVERY_ITERATE: tuple[Theorem, ...] = tuple(one for one in CATALOGUE if one.about is About.EVERY_ITERATE)
# All that papers have; the others are this library's own.
OF_PAPERS: tuple[Theorem, ...] = tuple(one for one in ALL if _PAPER.match(one.name))
