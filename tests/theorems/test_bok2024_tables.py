"""Bok2024's own numbers, to eight digits, and the engine beside them."""

from __future__ import annotations

import math

import pytest

import lastiterate as li
from lastiterate.reproduction.bok2024_reference import (
    TABLE_1_EPSILON,
    TABLE_3_MU,
    TABLE_7_MU,
    TABLE_8,
    TABLE_9_MU,
    TABLES_10_TO_12,
)
from lastiterate.runs.process import Process
from lastiterate.theorems import composition
from lastiterate.theorems.papers import bok2024, boninsegna2023
from lastiterate.theorems.shift_engine import HIDDEN_PLACE, RANDOM_ORDER, SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee, Theorem
from processes import process


def mu_of(theorem: Theorem, given: Process) -> float:
    answer = theorem.apply(given)
    assert isinstance(answer, Guarantee), answer
    return answer.notion.mu  # type: ignore[attr-defined]


def full(steps: int, **numbers: float) -> Process:
    return process(li.FullBatch(records=1000), steps, **numbers)


def cyclic(per_epoch: int, epochs: int, **numbers: float) -> Process:
    return process(li.Cyclic(records=per_epoch * 10, batch_size=10), per_epoch * epochs, **numbers)


def mnist(l2: float, epochs: int, batches: li.Cyclic | li.Shuffled | None = None) -> li.Run:
    return li.Run(
        loss=li.losses.general(smoothness=32 + l2, strong_convexity=l2, gradient_sensitivity=10.0),
        batches=batches or li.Cyclic(records=60_000, batch_size=1_500),
        step_size=0.05,
        noise=li.OnMeanGradient(std=0.01),
        steps=li.epochs(epochs),
    )


@pytest.mark.parametrize("cell", TABLE_3_MU)
def test_table_3(cell: tuple[float | str, int]) -> None:
    kind, epochs = cell
    if kind == "composition":
        assert mu_of(composition.PASSES_COMPOSITION, mnist(0.002, epochs).process) == pytest.approx(
            TABLE_3_MU[cell], rel=1e-8
        )
    else:
        given = mnist(kind, epochs).process  # type: ignore[arg-type]
        assert mu_of(bok2024.CONTRACTING_CYCLIC, given) == pytest.approx(TABLE_3_MU[cell], rel=1e-8)
        assert mu_of(SHIFT_ENGINE, given) == pytest.approx(TABLE_3_MU[cell], rel=1e-8)


@pytest.mark.parametrize("cell", TABLE_1_EPSILON)
def test_table_1(cell: tuple[float | str, int]) -> None:
    kind, epochs = cell
    report = li.account(mnist(0.002 if kind == "composition" else kind, epochs), delta=1e-5)  # type: ignore[arg-type]
    epsilon = report.epsilon_all_released if kind == "composition" else report.epsilon
    assert epsilon == pytest.approx(TABLE_1_EPSILON[cell], rel=1e-8)


@pytest.mark.parametrize("cell", TABLE_7_MU)
def test_table_7(cell: tuple[float | str, int]) -> None:
    factor, steps = cell
    if factor == "composition":
        assert mu_of(composition.FULL_COMPOSITION, full(steps, sensitivity=0.1)) == pytest.approx(
            TABLE_7_MU[cell], rel=1e-8
        )
    else:
        given = full(steps, sensitivity=0.1, lipschitz=factor)  # type: ignore[arg-type]
        assert mu_of(bok2024.CONTRACTING_FULL, given) == pytest.approx(TABLE_7_MU[cell], rel=1e-8)
        assert mu_of(SHIFT_ENGINE, given) == pytest.approx(TABLE_7_MU[cell], rel=1e-8)


@pytest.mark.parametrize("cell", TABLE_8)
def test_table_8(cell: tuple[float, float]) -> None:
    (gradient, step_size), (crossing, mu) = cell, TABLE_8[cell]
    given = full(1000, sensitivity=step_size * gradient, noise=step_size * 8, diameter=1.0)
    assert mu_of(bok2024.BOUNDED_FULL, given) == pytest.approx(mu, rel=1e-8)
    assert mu_of(SHIFT_ENGINE, given) <= mu * (1 + 1e-12)
    assert crossing == math.ceil((mu / (gradient / 8)) ** 2 - 1e-9)


@pytest.mark.parametrize("cell", TABLE_9_MU)
def test_table_9(cell: tuple[int | str, float, int]) -> None:
    """Theorem 4.5 by Lemma C.10 as corrected (errata E4.3)."""
    per_epoch, factor, epochs = cell
    if per_epoch == "composition":
        given = cyclic(10, epochs, sensitivity=0.2)
        assert mu_of(composition.PASSES_COMPOSITION, given) == pytest.approx(TABLE_9_MU[cell], rel=1e-8)
    else:
        given = cyclic(per_epoch, epochs, sensitivity=0.2, lipschitz=factor)  # type: ignore[arg-type]
        assert mu_of(bok2024.CONTRACTING_CYCLIC, given) == pytest.approx(TABLE_9_MU[cell], rel=1e-8)
        assert mu_of(SHIFT_ENGINE, given) == pytest.approx(TABLE_9_MU[cell], rel=1e-12)


def constrained(cell: tuple[int, float, float], epochs: int) -> Process:
    per_epoch, gradient, step_size = cell
    return cyclic(per_epoch, epochs, sensitivity=step_size * gradient, noise=step_size * 3, diameter=1.0)


@pytest.mark.parametrize("cell", TABLES_10_TO_12)
def test_tables_10_to_12_with_the_right_epochs(cell: tuple[int, float, float]) -> None:
    """Theorem 4.6 by Lemma C.11 as corrected (errata E4.2); E* is printed too small in every cell (errata E4.9)."""
    mu, printed, correct, valid_from, convex = TABLES_10_TO_12[cell]
    assert mu_of(bok2024.BOUNDED_CYCLIC, constrained(cell, valid_from)) == pytest.approx(mu, rel=1e-8)
    assert isinstance(bok2024.BOUNDED_CYCLIC.apply(constrained(cell, valid_from - 1)), li.theorems.Inapplicable)

    def composed(epochs: int) -> float:
        return mu_of(composition.PASSES_COMPOSITION, constrained(cell, epochs))

    def without_domain(epochs: int) -> float:
        return math.sqrt(2 * boninsegna2023.FIXED_BATCHES.apply(constrained(cell, epochs)).notion.rho)  # type: ignore[union-attr]

    for curve, epochs in ((composed, correct), (without_domain, convex)):
        assert curve(epochs) >= mu * (1 - 1e-9) > curve(epochs - 1)
    assert printed < correct
    assert mu_of(SHIFT_ENGINE, constrained(cell, valid_from)) < mu


def test_first_cell_of_table_10() -> None:
    cell = (10, 0.25, 0.04)
    assert mu_of(SHIFT_ENGINE, constrained(cell, 31)) == pytest.approx(0.16667, abs=5e-6)
    assert TABLES_10_TO_12[cell][0] == pytest.approx(0.5336, abs=5e-5)


def test_mnist_at_fifty_epochs() -> None:
    worst = li.account(mnist(0.002, 50), delta=1e-5)
    shuffled = li.account(mnist(0.002, 50, li.Shuffled(60_000, 1_500, each_epoch=False)), delta=1e-5)
    assert worst.epsilon == pytest.approx(4.339, abs=5e-4)
    assert worst.epsilon_all_released == pytest.approx(30.506, abs=5e-4)
    assert shuffled.epsilon == pytest.approx(3.483, abs=5e-4)
    assert shuffled.best.theorem is RANDOM_ORDER  # a hidden place adds nothing here
    new_orders = li.account(mnist(0.002, 50, li.Shuffled(60_000, 1_500)), delta=1e-5)
    assert new_orders.epsilon == pytest.approx(3.281, abs=5e-4)
    assert new_orders.best.theorem is HIDDEN_PLACE
    assert shuffled.mu is None
