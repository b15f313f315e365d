"""Forgetting on batches in random orders, or drawn at random: above the exact law of every order and every draw."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import lastiterate as li
from lastiterate.accounting.forgetting import Requests, forgetting_process, forgotten_by
from lastiterate.auditing.quadratic import steps_of


def made(batches: object, steps: int) -> li.Run:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.2, gradient_sensitivity=2.0, gradient_norm=1.0)
    noise = li.OnMeanGradient(std=0.4)
    return li.Run(loss=loss, batches=batches, step_size=0.3, noise=noise, steps=steps)  # type: ignore[arg-type]


def claimed_mu(
    run: li.Run, removals: tuple[int, ...], further: tuple[int, ...], releases: tuple[int, ...] = ()
) -> float:
    notion = forgotten_by(forgetting_process(run, Requests(removals, further, releases))).notion
    assert isinstance(notion, li.GaussianDP)
    return notion.mu


def exact_mu(run: li.Run, further: int, present: np.ndarray) -> float:
    """Given how many of the records each step of the training used."""
    steps = steps_of(run.continued(further), 0.2)
    mean = variance = 0.0
    counts = np.append(present, np.zeros(further))
    push = steps.push.max()
    for factor, count, noise in zip(steps.factor, counts, steps.noise, strict=True):
        mean, variance = factor * mean + count * push, factor**2 * variance + noise**2
    return mean / math.sqrt(variance)


@pytest.mark.parametrize("each_epoch", [True, False])
@pytest.mark.parametrize("further", [0, 3, 9])
def test_every_order_of_one_record_stays_below(each_epoch: bool, further: int) -> None:
    run = made(li.Shuffled(records=30, batch_size=10, each_epoch=each_epoch), 9)
    claimed = claimed_mu(run, (1,), (further,))
    found = []
    for places in product(range(3), repeat=3):
        if each_epoch or len(set(places)) == 1:
            present = np.zeros(9)
            present[[place + 3 * epoch for epoch, place in enumerate(places)]] = 1
            found.append(exact_mu(run, further, present))
    assert max(found) <= claimed * (1 + 1e-12)
    assert max(found) > 0.8 * claimed


@pytest.mark.parametrize("batches", [li.Shuffled(records=20, batch_size=10), li.BallsAndBins(records=20, batches=2)])
def test_every_order_of_two_records_stays_below(batches: object) -> None:
    run = made(batches, 6)
    claimed = claimed_mu(run, (2,), (4,))
    for places in product(range(2), repeat=6):
        present = np.zeros(6)
        np.add.at(present, [place + 2 * (index // 2) for index, place in enumerate(places)], 1)
        assert exact_mu(run, 4, present) <= claimed * (1 + 1e-12)
    with pytest.raises(li.Unavailable, match="whole epochs of 2 steps"):
        claimed_mu(run, (2,), (3,))


@pytest.mark.parametrize("removed", [1, 2])
@pytest.mark.parametrize("batches", [li.FixedSize(records=20, batch_size=10), li.Poisson(records=20, rate=0.5)])
def test_every_draw_stays_below(batches: object, removed: int) -> None:
    run = made(batches, 6)
    for further in (0, 4):
        claimed = claimed_mu(run, (removed,), (further,))
        for draws in product(range(removed + 1), repeat=6):
            assert exact_mu(run, further, np.array(draws, float)) <= claimed * (1 + 1e-12)


def test_a_release_inside_an_epoch_is_covered() -> None:
    """The record may have its turn before the release or after it."""
    run = made(li.Shuffled(records=20, batch_size=10), 4)
    claimed = claimed_mu(run, (1,), (2,), (3,))
    steps = steps_of(run.continued(2), 0.2)
    for first, second in product(range(2), repeat=2):
        total = 0.0
        for begin, end in ((0, 3), (3, 6)):
            mean = variance = 0.0
            for step in range(begin, end):
                push = steps.push.max() * (step in (first, 2 + second))
                mean = steps.factor[step] * mean + push
                variance = steps.factor[step] ** 2 * variance + steps.noise[step] ** 2
            total += mean**2 / variance
        assert math.sqrt(total) <= claimed * (1 + 1e-12)


def test_plans_on_these_batches_are_certified() -> None:
    for batches in (
        li.Shuffled(records=500, batch_size=50),
        li.Shuffled(records=500, batch_size=50, each_epoch=False),
        li.FixedSize(records=500, batch_size=50),
    ):
        run = made(batches, 40)
        found = li.forget(run, epsilon=0.2, delta=1e-5, removals=[1, 1])
        assert found.steps > 0
        assert found.epsilon <= 0.2
        assert li.verify(found.certificate, run).accepted
