"""Forgetting on batches in random orders, or drawn at random: above the exact law of every order and every draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.quadratic import steps_of
from lastiterate.facts import fact
from lastiterate.forgetting.proofs import chance_process
from lastiterate.forgetting.requests import Requests, forgetting_process
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee
from lastiterate.theorems.window_tail import FORGOTTEN_BY_CHANCE
from raising import raises


def made(batches: object, steps: int) -> li.Run:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.2, gradient_sensitivity=2.0, gradient_norm=1.0)
    noise = li.OnMeanGradient(std=0.4)
    return li.Run(loss=loss, batches=batches, step_size=0.3, noise=noise, steps=steps)  # type: ignore[arg-type]


def claimed_mu(
    run: li.Run, removals: tuple[int, ...], further: tuple[int, ...], releases: tuple[int, ...] = ()
) -> float:
    notion = SHIFT_ENGINE.apply(forgetting_process(run, Requests(removals, further, releases))).notion
    assert isinstance(notion, li.notions.GaussianDP)
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
    with raises("epochs_not_whole", "steps", kind=li.errors.Unavailable, per_epoch=2):
        claimed_mu(run, (2,), (3,))


@pytest.mark.parametrize("removed", [1, 2])
@pytest.mark.parametrize("batches", [li.FixedSize(records=20, batch_size=10), li.Poisson(records=20, rate=0.5)])
def test_every_draw_stays_below(batches: object, removed: int) -> None:
    run = made(batches, 6)
    for further in (0, 4):
        claimed = claimed_mu(run, (removed,), (further,))
        for draws in product(range(removed + 1), repeat=6):
            assert exact_mu(run, further, np.array(draws, float)) <= claimed * (1 + 1e-12)


def exact_delta(run: li.Run, further: int, draws: list[float], epsilons: np.ndarray) -> np.ndarray:
    """In both orders, of a mixture over the draws against one Gaussian: the records push one way, or not at all.

    `draws`: how likely a batch has none of the records, one of them, ... The curvature is that of the weight decay.
    """
    factor, push, noise = 1 - 0.3 * 0.2, 0.3 / run.batches.divisor, 0.3 * 0.4
    means, chances, variance = np.zeros(1), np.ones(1), 0.0
    for step in range(run.steps + further):
        present = draws if step < run.steps else [1.0]
        means = np.concatenate([factor * means + count * push for count in range(len(present))])
        chances = np.concatenate([chances * chance for chance in present])
        variance = factor**2 * variance + noise**2
    at = np.linspace(-9, 9 + means.max() / math.sqrt(variance), 2001)
    with_record = np.exp(-((at[:, None] - means / math.sqrt(variance)) ** 2) / 2) @ chances
    without = np.exp(-(at**2) / 2)
    width, factors = (at[1] - at[0]) / math.sqrt(2 * math.pi), np.exp(epsilons)[:, None]
    both = (
        np.maximum(one - factors * other, 0).sum(1) for one, other in ((with_record, without), (without, with_record))
    )
    return np.asarray(np.maximum(*both) * width)


def of_fixed_size(removed: int) -> list[float]:
    return [math.comb(removed, j) * math.comb(20 - removed, 2 - j) / math.comb(20, 2) for j in range(removed + 1)]


def of_poisson(removed: int) -> list[float]:
    return [math.comb(removed, j) * 0.1**j * 0.9 ** (removed - j) for j in range(removed + 1)]


@pytest.mark.parametrize("removed", [1, 2])
@pytest.mark.parametrize(
    ("batches", "draws"), [(li.FixedSize(20, 2), of_fixed_size), (li.Poisson(20, 0.1), of_poisson)]
)
def test_averages_over_draws_stay_above_the_exact_mixture(
    batches: object, draws: Callable[[int], list[float]], removed: int
) -> None:
    loss = li.losses.general(smoothness=0.01, strong_convexity=0.0, gradient_sensitivity=2.0, gradient_norm=1.0)
    run = replace(made(batches, 7), loss=loss, weight_decay=0.2, adjacency=li.ZERO_OUT)
    epsilons = np.array([0.0, 0.01, 0.05, 0.1, 0.2])
    for further in (1, 8, 20):
        found = FORGOTTEN_BY_CHANCE.apply(chance_process(run, Requests((removed,), (further,))))
        assert isinstance(found, Guarantee)
        exact = exact_delta(run, further, draws(removed), epsilons)
        assert (exact <= np.asarray(found.notion.delta(epsilons)) * (1 + 1e-6)).all()
        assert exact[0] > 0.05 * float(found.notion.delta(0.0))


@pytest.mark.parametrize("removed", [1, 2])
def test_where_every_batch_has_the_record_it_is_nearly_exact(removed: int) -> None:
    """All that is lost is the noise of training itself, which fades like its pushes."""
    run = made(li.FixedSize(records=200, batch_size=200), 10)
    for further in (20, 40):
        found = FORGOTTEN_BY_CHANCE.apply(chance_process(run, Requests((removed,), (further,))))
        assert isinstance(found, Guarantee)
        exact = li.notions.GaussianDP(exact_mu(run, further, np.full(10, float(removed))))
        assert 1.0 <= float(found.notion.delta(0.01)) / float(exact.delta(0.01)) <= 1.2


def test_random_batches_forget_sooner_than_if_they_all_had_the_record() -> None:
    run = replace(made(li.FixedSize(records=2000, batch_size=100), 200), noise=li.OnMeanGradient(std=0.05))
    found = li.forget(run, epsilon=0.5, delta=1e-5)
    assert found.guarantees[0].theorem is FORGOTTEN_BY_CHANCE
    worst = SHIFT_ENGINE.apply(forgetting_process(run, found.requests)).epsilon(1e-5)
    assert worst > 5 * found.epsilon
    assert found.steps > 0
    verdict = li.verify(found.certificate, run)
    assert verdict.accepted
    assert "recomputed from the run" in str(verdict)
    without = li.forget(run, epsilon=3.0, delta=1e-5)
    assert without.steps == 0
    assert li.verify(without.certificate, run).accepted
    for change, reason in (
        (
            {"adaptive": True, "unit": fact("forgotten", records=1, replaced=True, adaptive=True).to_dict()},
            "adaptive",
        ),
        ({"epsilon": 0.01}, "but proves"),
        ({"mu": 0.01}, "has to be replayed"),
        ({"steps": [found.steps - 1]}, "its assumptions"),
    ):
        doctored = {**found.certificate, "claim": {**found.certificate["claim"], **change}}
        assert not li.verify(doctored).accepted
        assert reason in li.verify(doctored).reason
    for theorem, grade in (
        ("window-tail", "recomputed"),
        ("shift-engine", "recomputed"),
        ("composition", "recomputed"),
    ):
        assert not li.verify({**found.certificate, "theorem": theorem, "grade": grade}).accepted


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
        li.Poisson(records=500, rate=0.1),
    ):
        run = made(batches, 40)
        found = li.forget(run, epsilon=0.1, delta=1e-5, removals=[1, 1])
        assert found.steps > 0
        assert found.epsilon <= 0.2
        assert li.verify(found.certificate, run).accepted
