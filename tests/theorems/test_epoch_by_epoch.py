"""Shuffled epochs composed, against every sequence of places."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import Fact, fact
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.epochs import EPOCH_BY_EPOCH, mus_by_place
from processes import process, reasons, steps_of

EPSILONS = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
SHUFFLED = li.Shuffled(records=40, batch_size=10)


def test_mu_by_place_is_the_engine_with_one_turn() -> None:
    source = np.random.default_rng(40)
    for _ in range(50):
        push, noise, factor = (
            source.uniform(0.1, 1, (1, 7)),
            source.uniform(0.5, 2, (1, 7)),
            source.uniform(0.0, 2, (1, 7)),
        )
        mus = mus_by_place(push, noise, factor)[0]
        for place in range(7):
            pushes = np.where(np.arange(7) == place, push[0], 0.0)
            exact = best_schedule(steps_of(pushes, noise[0], factor[0]))[0]
            assert exact * (1 - 1e-11) <= mus[place] <= exact * (1 + 1e-11) + 1e-130


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("steps", [12, 10, 3])
def test_it_is_the_average_over_all_sequences(alike: bool, steps: int) -> None:
    factors = 1.2 if alike else np.linspace(0.9, 1.3, steps)
    given = process(SHUFFLED, steps, sensitivity=0.8, lipschitz=factors)
    pieces = [range(first, min(first + 4, steps)) for first in range(0, steps, 4)]
    mus = [
        mus_by_place(*(getattr(given, n)[None, list(piece)] for n in ("sensitivity", "noise", "lipschitz")))[0]
        for piece in pieces
    ]
    padded = [np.append(piece, np.zeros(4 - len(piece))) for piece in mus]
    sequences = [np.sqrt(np.sum(np.square(choice))) for choice in itertools.product(*padded)]
    exact = np.mean([li.notions.GaussianDP(float(mu)).delta(EPSILONS) for mu in sequences], axis=0)
    answer = EPOCH_BY_EPOCH.apply(given)
    assert isinstance(answer, li.theorems.Guarantee)
    found = answer.notion.delta(EPSILONS)
    assert (found >= exact * (1 - 1e-9)).all()
    assert (found <= exact * (1.001 if alike else 1.2)).all()


def test_a_shuffled_network_is_far_below_composition() -> None:
    run = li.Run(
        li.losses.network(clip=1.0, smoothness=0.5),
        li.Shuffled(records=51_200, batch_size=256),
        0.1,
        li.OnGradientSum(multiplier=2.0, clip=1.0),
        li.epochs(30),
        weight_decay=1e-3,
    )
    report = li.account(run, delta=1e-5)
    assert report.best.theorem.name == "hidden-place/epoch-by-epoch"
    assert EPOCH_BY_EPOCH.notion(run.process).epsilon(1e-5) < report.epsilon_all_released / 3.5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"batches": li.Shuffled(records=40, batch_size=10, each_epoch=False)},
            fact("not_covered", feature="one_order"),
        ),
    ],
)
def test_refusals(change: dict[str, object], reason: Fact) -> None:
    values = {"batches": SHUFFLED, "steps": 12, "sensitivity": 0.8, "lipschitz": 1.2}
    assert isinstance(EPOCH_BY_EPOCH.apply(process(**values)), li.theorems.Guarantee)  # type: ignore[arg-type]
    assert reasons(EPOCH_BY_EPOCH, process(**{**values, **change})) == (reason,)  # type: ignore[arg-type]
    (hopeless,) = reasons(EPOCH_BY_EPOCH, process(**{**values, "sensitivity": 9.0}))  # type: ignore[arg-type]
    assert hopeless == fact("hardly_protected", at_most=8.0, mu=dict(hopeless.values)["mu"])
    assert dict(hopeless.values)["mu"] >= 9.0  # type: ignore[operator]
