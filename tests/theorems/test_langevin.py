"""Chourasia2021 and Ye2022 as corrected, against the engine and against the printed numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.renyi import DEFAULT_ORDERS
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.papers.bok2024 import CONTRACTING_FULL
from lastiterate.theorems.papers.langevin import FULL_BATCH, PASSES, RANDOM_BATCHES
from lastiterate.theorems.shift_engine import own_mus
from processes import process, steps_of


@pytest.mark.parametrize(("epochs", "rho"), [(50, 0.716679), (100, 1.130618), (200, 1.746986)])
def test_the_rdp_column_of_bok2024(epochs: int, rho: float) -> None:
    """Bok2024, Tables 1 and 4, "RDP": l2 = 0.002, 40 batches; the values are those of the authors' script."""
    given = process(li.Cyclic(records=60_000, batch_size=1_500), 40 * epochs, sensitivity=2 / 3, lipschitz=0.9999)
    assert PASSES.apply(given).notion.rho == pytest.approx(rho, abs=5e-7)  # type: ignore[union-attr]


def test_shuffle_and_partition_is_above_the_engine_at_every_place() -> None:
    source = np.random.default_rng(3)
    for _ in range(200):
        every, epochs = int(source.integers(2, 9)), int(source.integers(1, 12))
        factor = float(1 - 10 ** source.uniform(-3, -0.1))
        batches = li.Cyclic(records=every, batch_size=1)
        given = process(batches, every * epochs, sensitivity=0.3, lipschitz=factor)
        assert own_mus(given).max() ** 2 / 2 <= PASSES.apply(given).notion.rho * (1 + 1e-9)  # type: ignore[union-attr]


def test_chourasia_is_above_the_exact_value_for_every_contraction() -> None:
    """Errata E1.7: consistent, twice the exact value in the limit; no assumption on the step size is needed."""
    for factor in (0.0, 0.1, 0.5, 0.9, 0.999):
        for steps in (1, 2, 5, 50, 10**6):
            given = process(li.FullBatch(records=10), steps, sensitivity=0.2, lipschitz=factor)
            exact = CONTRACTING_FULL.apply(given).notion.mu ** 2 / 2  # type: ignore[union-attr]
            assert FULL_BATCH.apply(given).notion.rho >= exact  # type: ignore[union-attr]


def test_the_recursion_is_above_the_average_over_all_batches() -> None:
    """Every sequence of batches, each by the engine: the divergence of the mixture is at most the average."""
    factor, push, steps, rate = 0.8, 0.7, 8, 0.3
    given = process(li.FixedSize(records=10, batch_size=3), steps, sensitivity=push, lipschitz=factor)
    orders = np.array([1.5, 2.0, 8.0])
    moments = np.zeros_like(orders)
    for pattern in range(2**steps):
        seen = np.array([pattern >> place & 1 for place in range(steps)], float)
        mu = best_schedule(steps_of(push * seen, 1.0, factor))[0] if seen.any() else 0.0
        weight = rate ** seen.sum() * (1 - rate) ** (steps - seen.sum())
        moments += weight * np.exp(orders * (orders - 1) * mu**2 / 2)
    exact = np.log(moments) / (orders - 1)
    assert (RANDOM_BATCHES.apply(given).notion.rdp(orders) >= exact * (1 - 1e-9)).all()  # type: ignore[union-attr]


def test_the_first_epoch_is_not_free() -> None:
    """Errata E1.5: with the printed start one epoch would cost nothing; a single step costs at least its own divergence."""
    given = process(li.FixedSize(records=10, batch_size=5), 1, sensitivity=1.0, lipschitz=0.5)
    order = float(DEFAULT_ORDERS[np.searchsorted(DEFAULT_ORDERS, 4.0)])
    exact = math.log(0.5 * math.exp(order * (order - 1) / 2) + 0.5) / (order - 1)
    assert RANDOM_BATCHES.apply(given).notion.rdp(order) == pytest.approx(exact, rel=1e-6)  # type: ignore[union-attr]


def test_a_tiny_push_is_not_rounded_away() -> None:
    """p·e^x + 1 − p for x = 1e-18 must not become 1."""
    given = process(li.FixedSize(records=10, batch_size=5), 1, sensitivity=1e-9, lipschitz=0.5)
    divergences = RANDOM_BATCHES.apply(given).notion.rdp(np.array([2.0, 32.0]))  # type: ignore[union-attr]
    assert (divergences >= 0.5 * np.array([2.0, 32.0]) * 1e-18 / 2 * (1 - 1e-9)).all()


def test_many_steps_end_at_the_fixed_point() -> None:
    few, many = (
        RANDOM_BATCHES.apply(
            process(li.FixedSize(records=1000, batch_size=10), steps, sensitivity=0.3, lipschitz=0.9)
        ).epsilon(1e-5)  # type: ignore[union-attr]
        for steps in (2000, 200_000)
    )
    assert few == pytest.approx(many, rel=1e-6)
