"""Every erratum has a test that names it, and its numbers say what its effect says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lastiterate.reproduction.errata import ERRATA, Effect, Erratum, markdown_table

ROOT = Path(__file__).parent.parent.parent
WITH_NUMBERS = [one for one in ERRATA if one.evidence is not None]


@pytest.mark.parametrize("one", ERRATA, ids=lambda one: one.name)
def test_it_has_a_test_that_names_it(one: Erratum) -> None:
    assert re.sub(r"(?<=\d)b$", "", one.name) in (ROOT / one.test).read_text()


@pytest.mark.parametrize("one", WITH_NUMBERS, ids=lambda one: one.name)
def test_its_numbers_say_what_its_effect_says(one: Erratum) -> None:
    """E0.1, E1.6, E2.4, E2.6 and the others: an unsound number is below an instance or the truth, a loose one above."""
    found = one.evidence()  # type: ignore[misc]
    if one.effect is Effect.UNSOUND:
        assert found.printed < 0.99 * (found.corrected if found.exact is None else found.exact)
    if one.effect is Effect.LOOSE:
        assert found.printed > 1.01 * found.corrected
    if found.exact is not None:
        assert found.exact <= found.corrected * (1 + 1e-9)


NUMBERS = {  # from the derivations: printed, an instance, corrected
    "E0.1": (0.210, 0.688, 0.714),
    "E0.1b": (0.0062285, 0.0099968, 0.0099995),
    "E0.3": (3.647, None, 0.580),
    "E1.3": (151.7, None, 400.2),
    "E1.4": (0.01, 0.01704, 0.01704),
    "E1.4b": (1e-5, 1.9e-3, 1.9e-3),
    "E2.4": (1.414, 1.96, 1.96),
    "E3.4": (2.4e-7, None, 1.3e-10),
    "E4.1": (0.9999, 1.0275, 1.0275),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_known_numbers_are_met(name: str) -> None:
    one = next(one for one in ERRATA if one.name == name)
    found = one.evidence()  # type: ignore[misc]
    for value, expected in zip((found.printed, found.exact, found.corrected), NUMBERS[name], strict=True):
        assert value == expected or value == pytest.approx(expected, rel=0.04 if expected < 1e-2 else 2e-3)


def test_lemma_a7_of_kong_2025_is_true() -> None:
    """Errata E2.3: h + m + m²/(2(M + m)) − h²/(2(M + m)) is concave in h and not negative at −m and at M."""
    source = np.random.default_rng(2)
    top, weak = source.uniform(0.01, 5, 10_000), source.uniform(0.0, 5, 10_000)
    share = source.uniform(0, 1, 10_000)
    h = -weak + share * (top + weak)
    value = h + weak + (weak**2 - h**2) / (2 * (top + weak))
    assert (value >= -1e-12).all()


def test_the_document_is_the_table() -> None:
    lines = (ROOT / "docs" / "errata.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("|")] == markdown_table()
