"""Epochs with hidden places composed, against exact mixtures over all orders and against the engine's pairs."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import Fact, fact
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.epochs import (
    EPOCH_BY_EPOCH,
    HIDDEN_EPOCHS,
    hidden_among,
    hidden_epoch,
    mus_by_place,
    pair_mus_by_place,
    tabled,
    whole_epoch,
)
from mixtures import EPSILONS, exact_delta, in_both_orders, means, random_pushes
from processes import process, reasons, steps_of


def test_pairs_are_the_engine_with_two_turns() -> None:
    """Never below it, and above it by about a tenth at most: blocks that would pay for both together are left out."""
    source = np.random.default_rng(90)
    for _ in range(30):
        push, noise, factor = source.uniform(0.1, 1, 7), source.uniform(0.5, 2, 7), source.uniform(0.5, 1.5, 7)
        found = pair_mus_by_place(push, noise, factor)
        for pair in itertools.combinations(range(7), 2):
            exact = best_schedule(steps_of(np.where(np.isin(np.arange(7), pair), push, 0.0), noise, factor))[0]
            assert exact * (1 - 1e-11) <= found[pair] <= exact * 1.11
            assert found[pair] == found[pair[::-1]]


@cache
def said(batches: int, steps: int, push: float, factor: float) -> np.ndarray:
    """The same whichever way records push."""
    given = process(li.Shuffled(records=batches, batch_size=1), steps, sensitivity=push, lipschitz=factor)
    return np.asarray(HIDDEN_EPOCHS.notion(given).delta(EPSILONS))


@pytest.mark.xdist_group("hidden epochs")
@pytest.mark.parametrize("kind", ["one-sided", "opposite", "exchanged", "any"])
@pytest.mark.parametrize(("batches", "steps"), [(2, 2), (4, 4), (2, 4), (3, 6), (3, 5)])
def test_no_mixture_over_orders_is_above_the_bound(batches: int, steps: int, kind: str) -> None:
    source = np.random.default_rng(91)
    for factor, push in itertools.product([1.0001, 1.2, 2.0], [0.3, 1.0]):
        bound = said(batches, steps, push, factor)
        deviation = math.sqrt(sum(factor ** (2 * step) for step in range(steps)))
        pushes = push * random_pushes(source, batches, steps, kind)
        replaced = np.append(pushes[-1:], pushes[1:-1], axis=0)
        pair = [means(one, factor, True) for one in (pushes[:-1], replaced)]
        for exact in in_both_orders(*pair, deviation):
            assert (exact <= bound * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize("factor", [0.2, 0.5])
def test_one_epoch_meets_an_exact_mixture(factor: float) -> None:
    """Steps that forget, with pairs that pull apart: an exact mixture comes close to the bound, and would refute less."""
    given = process(li.Shuffled(records=2, batch_size=1), 2, sensitivity=1.0, lipschitz=factor)
    bound = hidden_epoch(given, whole_epoch(given)).delta(EPSILONS)
    pushes = random_pushes(np.random.default_rng(0), 2, 2, "exchanged")
    replaced = np.append(pushes[-1:], pushes[1:-1], axis=0)
    first, second = (means(one, factor, True) for one in (pushes[:-1], replaced))
    exact = exact_delta(first, second, math.hypot(1.0, factor))
    assert (exact <= bound * (1 + 1e-6)).all()
    assert (exact >= 0.75 * bound).any()


@pytest.mark.parametrize(("factor", "most"), [(1.0001, 1.57), (1.05, 1.83)])
def test_three_epochs_of_twenty_batches(factor: float, most: float) -> None:
    given = process(li.Shuffled(records=20, batch_size=1), 60, sensitivity=0.5, lipschitz=factor)
    assert HIDDEN_EPOCHS.notion(given).epsilon(1e-6) <= most
    assert EPOCH_BY_EPOCH.notion(given).epsilon(1e-6) >= 2.65


def test_steps_that_differ_and_an_epoch_that_is_cut_short() -> None:
    """Each group of epochs counts as one that is no better; in the last two steps of four the record may be absent."""
    source = np.random.default_rng(92)
    values = {"sensitivity": source.uniform(0.3, 0.5, 34), "lipschitz": source.uniform(1.0, 1.1, 34)}
    given = process(li.Shuffled(records=4, batch_size=1), 34, **values)
    worst = process(li.Shuffled(records=4, batch_size=1), 34, sensitivity=0.5, lipschitz=1.1)
    least = process(li.Shuffled(records=4, batch_size=1), 34, sensitivity=0.3, lipschitz=1.0 + 1e-9)
    found = [HIDDEN_EPOCHS.notion(one).epsilon(1e-5) for one in (least, given, worst)]
    assert found == sorted(found)
    averaged = EPOCH_BY_EPOCH.notion(given).epsilon(1e-5)
    assert found[1] <= averaged * 1.01


def test_many_places_count_in_groups_to_the_safe_side() -> None:
    steps = (np.full(150, 0.5), np.ones(150), np.full(150, 1.01))
    mus, pairs = mus_by_place(*(one[None] for one in steps))[0], pair_mus_by_place(*steps)
    grouped = hidden_among(pairs, mus, np.ones(150), 150)
    each = li.notions.HiddenPlaceDP(mus=mus, pair_mus=pairs, weights=np.full(150, 1 / 150))
    assert len(grouped.mus) < 97
    assert grouped.weights.sum() == pytest.approx(1.0)
    assert each.epsilon(1e-6) * 0.999 <= grouped.epsilon(1e-6) <= each.epsilon(1e-6) * 1.05


def test_a_table_lies_above() -> None:
    given = process(li.Shuffled(records=30, batch_size=1), 30, sensitivity=0.7, lipschitz=1.02)
    notion = hidden_epoch(given, whole_epoch(given))
    between = np.linspace(0.0, 3.0, 77)
    assert (tabled(notion).delta(between) >= notion.delta(between) * (1 - 1e-9)).all()
    assert tabled(notion).epsilon(1e-6) <= notion.epsilon(1e-6) * 1.005


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"batches": li.Shuffled(records=40, batch_size=10, each_epoch=False)},
            fact("not_covered", feature="one_order"),
        ),
        ({"batches": li.Shuffled(records=2049, batch_size=1)}, fact("too_many_batches", at_most=2048, batches=2049)),
    ],
)
def test_refusals(change: dict[str, object], reason: Fact) -> None:
    values = {"batches": li.Shuffled(records=40, batch_size=10), "steps": 12, "sensitivity": 0.8, "lipschitz": 1.2}
    assert isinstance(HIDDEN_EPOCHS.apply(process(**values)), li.theorems.Guarantee)  # type: ignore[arg-type]
    assert reasons(HIDDEN_EPOCHS, process(**{**values, **change})) == (reason,)  # type: ignore[arg-type]
    (hopeless,) = reasons(HIDDEN_EPOCHS, process(**{**values, "sensitivity": 9.0}))  # type: ignore[arg-type]
    assert hopeless == fact("hardly_protected", at_most=8.0, mu=dict(hopeless.values)["mu"])
    assert dict(hopeless.values)["mu"] >= 9.0  # type: ignore[operator]
