"""Worst and average places, against every place and every sequence of places."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.process import Process
from lastiterate.theorems.shift_engine import RANDOM_ORDER, SHIFT_ENGINE
from processes import mu_with_turns, process

EPSILONS = np.array([0.0, 0.3, 1.0, 2.0])


def random_process(
    source: np.random.Generator, batches: object, steps: int, alike: bool, releases: tuple[int, ...]
) -> Process:
    size = 1 if alike else steps
    values = {
        "sensitivity": source.uniform(0.2, 1, size),
        "noise": source.uniform(0.5, 2, size),
        "lipschitz": source.uniform(0.6, source.choice([1.0, 1.3]), size),
    }
    numbers = {name: value[0] if alike else value for name, value in values.items()}
    return process(batches, steps, diameter=float(source.choice([math.inf, 0.5])), releases=releases, **numbers)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("steps", "releases"), [(12, ()), (11, ()), (2, ()), (12, (5,)), (10, (4, 8))])
def test_fixed_orders(alike: bool, steps: int, releases: tuple[int, ...]) -> None:
    source = np.random.default_rng(13)
    for _ in range(15):
        cyclic = random_process(source, li.Cyclic(records=40, batch_size=10), steps, alike, releases)
        mus = np.array([mu_with_turns(cyclic, list(range(place, steps, 4))) for place in range(4)])
        assert SHIFT_ENGINE.apply(cyclic).notion.mu == pytest.approx(mus.max(), rel=1e-9)  # type: ignore[union-attr]
        shuffled = process_with(cyclic, li.Shuffled(records=40, batch_size=10, each_epoch=False))
        exact = np.mean([li.notions.GaussianDP(mu).delta(EPSILONS) for mu in mus], axis=0)
        assert RANDOM_ORDER.apply(shuffled).notion.delta(EPSILONS) == pytest.approx(exact, rel=1e-9)  # type: ignore[union-attr]


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(
    ("steps", "releases"),
    [(9, ()), (8, ()), (7, ()), (2, ()), (9, (3,)), (8, (6,)), (9, (4,)), (8, (1, 7)), (9, (2, 3, 8))],
)
def test_new_orders_are_bounded_over_every_sequence(alike: bool, steps: int, releases: tuple[int, ...]) -> None:
    source = np.random.default_rng(14)
    for _ in range(8):
        given = random_process(source, li.Shuffled(records=30, batch_size=10), steps, alike, releases)
        mus = []
        for places in itertools.product(range(3), repeat=-(-steps // 3)):
            turns = [3 * epoch + place for epoch, place in enumerate(places) if 3 * epoch + place < steps]
            mus.append(mu_with_turns(given, turns))
        worst, averaged = SHIFT_ENGINE.apply(given), RANDOM_ORDER.apply(given)
        assert isinstance(worst, li.theorems.Guarantee)
        assert isinstance(averaged, li.theorems.Guarantee)
        assert worst.notion.mu >= max(mus) * (1 - 1e-9)  # type: ignore[attr-defined]
        exact = np.mean([li.notions.GaussianDP(mu).delta(EPSILONS) for mu in mus], axis=0)
        assert (averaged.notion.delta(EPSILONS) >= exact * (1 - 1e-9)).all()
        assert (averaged.notion.delta(EPSILONS) <= worst.notion.delta(EPSILONS) * (1 + 1e-9)).all()


def test_many_places_are_grouped_to_the_safe_side() -> None:
    given = process(li.Shuffled(records=2000, batch_size=1, each_epoch=False), 4000, sensitivity=0.5)
    grouped = RANDOM_ORDER.apply(given)
    assert isinstance(grouped, li.theorems.Guarantee)
    assert 128 < len(grouped.evidence.schedules) < 600
    after = np.arange(2000.0)[::-1]
    exact_mus = 0.5 * np.sqrt(1 / 2000 + 1 / (after + 1))  # 1 + (E − 1)/l of Boninsegna2023 VI-A, for every place
    exact = np.mean([li.notions.GaussianDP(mu).delta(EPSILONS) for mu in exact_mus], axis=0)
    found = grouped.notion.delta(EPSILONS)
    assert (found >= exact * (1 - 1e-9)).all()
    assert (found <= exact * 1.03).all()


def process_with(given: Process, batches: object) -> Process:
    return process(
        batches,
        len(given),
        sensitivity=given.sensitivity,
        noise=given.noise,
        lipschitz=given.lipschitz,
        diameter=given.diameter,
        releases=given.releases,
    )
