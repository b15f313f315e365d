"""The shift engine beside every closed form, and both above the quadratics that they are about."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from drawn import OF_PROFILES, guarantees
from lastiterate.testing.draws import BATCHES, random_process
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from processes import exact_mu_of_quadratics


@pytest.mark.parametrize("batches", BATCHES[:2], ids=repr)
def test_the_engine_is_never_above_a_closed_form(batches: object) -> None:
    """A thousand runs, with steps alike and not, contracting and expanding; all bounds as deltas at one epsilon."""
    source = np.random.default_rng(8)
    seen: set[str] = set()
    for _ in range(500):
        given = random_process(source, batches, alike=bool(source.random() < 0.7))
        if source.random() < 0.2:
            given = random_process(
                source, li.Cyclic(records=600, batch_size=10), alike=True
            )  # long enough for one pass
        given = replace(given, drift=np.broadcast_to(np.inf, len(given)))  # which the engine does not use
        engine, *others = guarantees(given, besides=(*OF_PROFILES, "prepayment"))
        assert engine.theorem is SHIFT_ENGINE
        for other in others:
            seen.add(other.theorem.name)
            for epsilon in (0.1, 1.0, 4.0):
                assert engine.notion.delta(epsilon) <= other.notion.delta(epsilon) * (1 + 1e-9), other.theorem.name
    assert len(seen) >= (4 if isinstance(batches, li.FullBatch) else 6)


@pytest.mark.parametrize("batches", BATCHES[:4], ids=repr)
def test_every_guarantee_is_above_the_quadratic_that_attains_it(batches: object) -> None:
    """The record that the last step sees, in one order; only what knows of a random order may lie below it."""
    source = np.random.default_rng(9)
    in_order = li.Cyclic(records=120, batch_size=30) if isinstance(batches, li.Shuffled) else batches
    for _ in range(60):
        drawn = random_process(source, batches, alike=bool(source.random() < 0.5))
        # A quadratic has gradients of any size, and needs room.
        given = replace(drawn, diameter=math.inf, drift=np.broadcast_to(np.inf, len(drawn)))
        exact = li.notions.GaussianDP(exact_mu_of_quadratics(replace(given, batches=in_order)))
        for one in guarantees(given):
            if not one.theorem.name.startswith(("random-order", "hidden-place", "prepayment/")):
                assert one.notion.delta(1.0) >= exact.delta(1.0) * (1 - 1e-9), one.theorem.name
