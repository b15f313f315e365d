"""Every theorem, written out. To be listed is to be tested."""

from __future__ import annotations

import re

from lastiterate.theorems import (
    asoodeh2023,
    balle2019,
    balls_and_bins,
    block_mixing,
    bok2024,
    bok2024_random,
    boninsegna2023,
    epoch_by_epoch,
    feldman2018,
    hidden_epochs,
    hidden_participation,
    hidden_place,
    kong2025,
    langevin,
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
from lastiterate.theorems.theorem import Theorem

_PAPER = re.compile(r"[a-z]+\d{4}/")  # in names: the first author and the year

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

# Whatever is released of a run, these cover it.
OF_EVERY_ITERATE: tuple[Theorem, ...] = tuple(one for one in CATALOGUE if one.about is About.EVERY_ITERATE)
# As the papers have them, corrected where they are wrong; all others are this library's own.
OF_PAPERS: tuple[Theorem, ...] = tuple(one for one in CATALOGUE if _PAPER.match(one.name))
