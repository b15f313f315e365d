"""Block mixing: the numbers of the theory, every kind of batches, and exact chains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.chain import Chain, cyclic_hazard, iid_hazard
from lastiterate.facts import fact
from lastiterate.theorems.block_mixing import BLOCK_MIXING, REGULARISED_MIXING, blocks_of, ends_of, in_a_ball
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from processes import process, reasons

FULL = li.FullBatch(records=100)
DELTA = 1e-6


@pytest.mark.parametrize(("diameter", "by_the_paper", "most"), [(10.0, 10.997, 6.05), (1.0, 2.92, 0.66)])
def test_constrained_convex_full_batches_for_ever(diameter: float, by_the_paper: float, most: float) -> None:
    """Sensitivity 0.1 of the noise, δ = 1e-6; the paper's value is Bok2024, Theorem 4.3."""
    given = process(FULL, 10**6, sensitivity=0.1, diameter=diameter)
    paper = next(one for one in li.theorems.ALL if one.name == "bok2024/full-batch/constrained").apply(given)
    assert paper.epsilon(DELTA) == pytest.approx(by_the_paper, rel=2e-3)  # type: ignore[union-attr]
    assert BLOCK_MIXING.apply(given).epsilon(DELTA) <= most  # type: ignore[union-attr]


def test_the_best_block_is_one_step_where_the_domain_is_as_narrow_as_the_noise() -> None:
    given = process(FULL, 10**6, sensitivity=0.1, diameter=1.0)
    assert BLOCK_MIXING.apply(given).notion.best_rung(math.log(DELTA)) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("push", [0.1, 0.5, 1.5])
@pytest.mark.parametrize("diameter", [0.5, 2.0, 6.0])
def test_above_a_linear_loss_on_an_interval_after_many_steps(push: float, diameter: float) -> None:
    """x + s·(the record) on an interval, both records push outwards: all blocks, at many ε."""
    steps, epsilons = 3000, np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
    chain = Chain(
        lambda x: x,
        lambda x: x + push / 2,
        lambda x: x - push / 2,
        np.ones(steps),
        iid_hazard(0.2, steps),
        -diameter / 2,
        diameter / 2,
        cells=300,
    )
    exact, error = chain.delta_with_error(epsilons)
    given = process(li.FixedSize(records=10, batch_size=2), steps, sensitivity=push, diameter=diameter)
    for length in (1, 2, 5, 20, 100):
        assert (blocks_of(given, length).delta(epsilons) >= exact - error - 1e-13).all(), length


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_fixed_order_is_covered_at_every_place_and_after_any_number_of_steps(place: int) -> None:
    epsilons = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    for steps in (4, 9, 30, 121):
        hazard = cyclic_hazard(4, place, steps)
        chain = Chain(
            lambda x: x, lambda x: x + 0.4, lambda x: x - 0.4, np.ones(steps), hazard, -1.5, 1.5, per_epoch=4, cells=300
        )
        exact, error = chain.delta_with_error(epsilons)
        given = process(li.Cyclic(records=4, batch_size=1), steps, sensitivity=0.8, diameter=3.0)
        assert (BLOCK_MIXING.apply(given).notion.delta(epsilons) >= exact - error - 1e-13).all()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "batches", [FULL, li.FixedSize(records=10, batch_size=10), li.Cyclic(records=10, batch_size=10)]
)
@pytest.mark.parametrize("factor", [1.0, 0.9, 0.4])
@pytest.mark.parametrize("length", [1, 3, 10])
def test_a_block_shows_two_states_at_the_ends_of_the_domain(batches: object, factor: float, length: int) -> None:
    """φ(x) = factor·x and a record that pushes outwards: two Gaussians, as far apart as they can be."""
    given = process(batches, 100, sensitivity=0.3, lipschitz=factor, diameter=2.0)
    powers = factor ** np.arange(float(length))
    gap = 2.0 * factor**length + 0.3 * powers.sum()
    exact = li.notions.GaussianDP(gap / math.sqrt(float(np.square(powers).sum())))
    epsilons = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    ends = ends_of(given, length)
    assert (ends.apart_delta(epsilons) >= exact.delta(epsilons) * (1 - 1e-9)).all()
    assert (ends.common_delta(epsilons) <= ends.apart_delta(epsilons)).all()


def test_more_blocks_never_help_and_the_bound_for_ever_is_above_all() -> None:
    deltas = [
        blocks_of(process(FULL, steps, sensitivity=0.3, diameter=2.0), 3).delta(np.array([0.0, 0.5, 1.0]))
        for steps in (3, 6, 30, 90, 10**7)
    ]
    assert all((fewer <= more * (1 + 2e-3)).all() for fewer, more in itertools.pairwise(deltas))


def test_steps_that_differ_count_as_the_worst() -> None:
    varied = process(FULL, 50, sensitivity=np.linspace(0.05, 0.1, 50), diameter=1.0, noise=np.linspace(1, 2, 50))
    worst = process(FULL, 50, sensitivity=0.1, diameter=1.0)
    assert blocks_of(varied, 2).epsilon(DELTA) == pytest.approx(blocks_of(worst, 2).epsilon(DELTA), rel=1e-9)


def test_without_convexity_and_without_smoothness() -> None:
    """A clipped network on a ball: composition grows, the engine has nothing to say, blocks converge."""
    given = process(
        li.FixedSize(records=1000, batch_size=10), 10**6, sensitivity=0.02, drift=0.2, lipschitz=math.inf, diameter=4.0
    )
    found = BLOCK_MIXING.apply(given).epsilon(DELTA)  # type: ignore[union-attr]
    assert found < 0.1 < SHIFT_ENGINE.apply(given).epsilon(DELTA)  # type: ignore[union-attr]


def test_an_unfinished_epoch_in_a_new_order_is_refused() -> None:
    given = process(li.Shuffled(records=40, batch_size=10), 41, sensitivity=0.1, diameter=1.0)
    assert reasons(BLOCK_MIXING, given) == (fact("epoch_unfinished", every=4, steps=41, left=1),)


def test_a_domain_that_no_block_can_hide_is_refused_with_numbers() -> None:
    given = process(FULL, 10, sensitivity=0.1, diameter=1e4)
    expected = {"diameter": 1e4, "at_most": 4.5, "noise": 1.0, "because": given.reason}
    assert reasons(BLOCK_MIXING, given) == (fact("blocks_hide_too_little", **expected),)


def test_the_ball_that_decay_leaves_holds_simulated_iterates() -> None:
    given = process(
        li.FixedSize(records=100, batch_size=10),
        400,
        sensitivity=0.1,
        drift=1.0,
        retain=0.9,
        lipschitz=math.inf,
        dimension=3,
    )
    ball, lost = in_a_ball(given)
    assert 0 < lost <= 1.1e-14
    source = np.random.default_rng(4)
    x = np.zeros((2000, 3))
    farthest = 0.0
    for _ in range(400):
        away = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        x = 0.9 * x + 0.5 * away + source.standard_normal(x.shape)
        farthest = max(farthest, float(np.linalg.norm(x, axis=1).max()))
    assert 0.5 * ball.diameter / 2 < farthest < ball.diameter / 2


def test_decay_alone_makes_a_network_converge() -> None:
    run = li.Run(
        li.losses.network(clip=1.0),
        li.FixedSize(records=1000, batch_size=10),
        0.02,
        li.OnIterate(std=1.0),
        10**6,
        weight_decay=0.5,
        domain=li.Unbounded(dimension=50),
    )
    report = li.account(run, delta=1e-5)
    assert report.best.theorem is REGULARISED_MIXING
    assert report.epsilon < report.epsilon_all_released / 20
