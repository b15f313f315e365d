"""The theorems, written out. To be listed is to be tested."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.facts import Fact, fact
from lastiterate.theorems import (
    balls_and_bins,
    block_mixing,
    composition,
    epochs,
    linear_optimiser,
    participation,
    prepayment,
    reflection,
    shift_engine,
    window_tail,
)
from lastiterate.theorems.evidence import About
from lastiterate.theorems.papers import asoodeh2023, balle2019, bok2024, boninsegna2023, feldman2018, kong2025, langevin
from lastiterate.theorems.theorem import Theorem

_PAPER = re.compile(r"[a-z]+\d{4}/")  # in names: the first author and the year
_LONGEST = 100  # characters of a name

# What `account` tries.
CATALOGUE: tuple[Theorem, ...] = (
    shift_engine.SHIFT_ENGINE,
    shift_engine.RANDOM_ORDER,
    prepayment.PREPAYMENT,
    prepayment.PREPAID_ORDER,
    shift_engine.HIDDEN_PLACE,
    prepayment.PREPAID_HIDDEN_PLACE,
    epochs.EPOCH_BY_EPOCH,
    epochs.HIDDEN_EPOCHS,
    epochs.PREPAID_EPOCHS,
    block_mixing.BLOCK_MIXING,
    reflection.REFLECTION,
    block_mixing.REGULARISED_MIXING,
    asoodeh2023.CURVED,
    # Formulas of the limit, for runs of 10⁹ steps and more that hardly contract: too long for a search.
    bok2024.CONTRACTING_FULL,
    bok2024.CONTRACTING_CYCLIC,
    kong2025.UNBOUNDED_DOMAIN,
    kong2025.BOUNDED_DOMAIN,
    langevin.RANDOM_BATCHES,
    composition.FULL_COMPOSITION,
    composition.PASSES_COMPOSITION,
    composition.RANDOM_COMPOSITION,
    linear_optimiser.LINEAR_OPTIMISER,
    linear_optimiser.RANDOM_LINEAR_OPTIMISER,
    linear_optimiser.PREPAID_MOMENTUM,
    window_tail.WINDOW_TAIL,
    participation.HIDDEN_PARTICIPATION,
    balls_and_bins.BALLS_AND_BINS,
    balls_and_bins.HIDDEN_ALLOCATION,
    balls_and_bins.PREPAID_ALLOCATION,
    balls_and_bins.WINDOW_OF_EPOCHS,
    participation.PREPAID_PARTICIPATION,
)

# Of the papers, corrected where they are wrong: none was smaller than all of the above in runs that were drawn.
# For comparisons, and for certificates.
PAPERS: tuple[Theorem, ...] = (
    asoodeh2023.PROJECTED,
    asoodeh2023.REGULARISED,
    bok2024.BOUNDED_FULL,
    bok2024.BOUNDED_CYCLIC,
    bok2024.RANDOM_CONTRACTING,
    bok2024.RANDOM_BOUNDED,
    feldman2018.ONE_PASS_CONVEX,
    balle2019.ONE_PASS_CONVEX,
    balle2019.ONE_PASS_STRONGLY_CONVEX,
    boninsegna2023.FIXED_BATCHES,
    langevin.FULL_BATCH,
    langevin.PASSES,
)

ALL: tuple[Theorem, ...] = (*CATALOGUE, *PAPERS)
# Whatever is released of a run, these cover it.
OF_EVERY_ITERATE: tuple[Theorem, ...] = tuple(one for one in CATALOGUE if one.about is About.EVERY_ITERATE)
# All that papers have; the others are this library's own.
OF_PAPERS: tuple[Theorem, ...] = tuple(one for one in ALL if _PAPER.match(one.name))


# Theorems that somebody brings along, beside those of the library.


def of_the_library(theorem: Theorem) -> bool:
    """Whether it is one of the catalogue, and not only called like one."""
    return theorem in ALL


def checked_theorems(theorems: Any) -> tuple[Theorem, ...]:
    """Return the theorems that are to be tried, each by a name of its own; the catalogue if none are given."""
    if theorems is None:
        return CATALOGUE
    found = tuple(theorems) if isinstance(theorems, Iterable) and not isinstance(theorems, str) else ()
    wrong = next((one for one in found if not isinstance(one, Theorem)), None if found else theorems)
    if wrong is not None:
        raise must_be("theorems", "such as [*li.theorems.CATALOGUE, MINE]", f"{shown(wrong):.60}")
    for one in found:
        _check_name(one)
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise must_be("theorems", "of different names", f"{twice!r} twice")
    return found


def _check_name(theorem: Theorem) -> None:
    name: Any = theorem.name
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or not name.isprintable():
        raise must_be(
            "theorems", f"one line of 1 to {_LONGEST} characters", f"{shown(name):.60}", called="the name of a theorem"
        )
    if not of_the_library(theorem) and any(name == one.name for one in ALL):
        raise InvalidInput("name_of_another_theorem", field="theorems", name=name)


def own_assumption(theorem: Theorem) -> Fact:
    """Return the fact that has to be guaranteed of a theorem that is not of the library: that it is true."""
    cited = isinstance(theorem.citation, str) and theorem.citation.isprintable()
    return fact("theorem_true", theorem=theorem.name, citation=theorem.citation[:400] if cited else "no citation")
