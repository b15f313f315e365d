"""Instances of runs that once had none, each computed a second time."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.allowed import counts_of
from lastiterate.auditing.chain import Chain, cyclic_hazard, iid_hazard, shuffled_hazard
from lastiterate.auditing.grid_steps import Shifted

DELTA = 1e-5
CONVEX = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=4.0)
GENTLE = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.5)
ONCE = li.Shuffled(records=40, batch_size=10, each_epoch=False)
SMALL = li.parts.PoissonMean(records=4, rate=0.3)
WIDE = li.parts.ConvexSet(40.0)
FALLING = (1.0,) * 6 + (0.4,) * 6


def run(loss: li.Loss, batches: li.Batches, steps: int, domain: li.Domain | None = None, **more: object) -> li.Run:
    given = {"step_size": 1.0, "noise": li.OnIterate(1.0), **more}
    return li.Run(loss, batches, steps=steps, domain=domain, **given)  # type: ignore[arg-type]


def epsilon_of(delta_at: object, delta: float) -> float:
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)  # type: ignore[operator]
    return low


def mixed(grid: np.ndarray, parts: list[tuple[float, float]]) -> np.ndarray:
    return sum(w * np.exp(-((grid - mean) ** 2) / 2) for w, mean in parts) / math.sqrt(2 * math.pi)  # type: ignore[return-value]


@pytest.mark.parametrize(("record", "neighbour"), [(1.5, 0.0), (0.75, -0.75)])
def test_one_step_on_the_mean_of_a_random_batch_is_its_sum_over_all_batches(record: float, neighbour: float) -> None:
    """Records 1 to 3 have gradient 0, record 0 one of two; a batch is one of 16."""
    laws = []
    for own in (record, neighbour):
        parts = []
        for batch in product((0, 1), repeat=4):
            chance = math.prod(0.3 if one else 0.7 for one in batch)
            parts.append((chance, batch[0] * own / max(sum(batch), 1)))
        laws.append(parts)
    grid = np.linspace(-14, 14, 28_001)
    one, two = (mixed(grid, parts) for parts in laws)

    def delta_at(epsilon: float) -> float:
        orders = (one - math.exp(epsilon) * two, two - math.exp(epsilon) * one)
        return max(float(np.maximum(order, 0).sum()) for order in orders) * 1e-3

    exact = epsilon_of(delta_at, DELTA)
    found = li.lower_bound(run(GENTLE, SMALL, 1), DELTA).epsilon
    assert found >= exact * (1 - 2e-3)
    if record == 1.5:
        assert found == pytest.approx(exact, rel=2e-3)
        assert li.lower_bound(run(GENTLE, SMALL, 1, li.parts.ConvexSet(20.0)), DELTA).epsilon == pytest.approx(
            exact, rel=2e-2
        )


def test_the_mean_of_all_records_is_a_full_batch() -> None:
    given = run(CONVEX, li.parts.PoissonMean(records=10, rate=1.0), 5)
    assert li.account(given, DELTA).ratio == pytest.approx(1.0, abs=1e-4)


def test_numbers_of_others_are_binomial() -> None:
    counts = counts_of(li.Poisson(records=6, rate=0.3))
    assert counts.probabilities == pytest.approx([math.comb(5, k) * 0.3**k * 0.7 ** (5 - k) for k in range(6)])
    assert counts.left_out == 0
    many = counts_of(li.Poisson(records=10**6, rate=0.01))
    assert many.left_out == 1e-30
    assert float(many.numbers @ many.probabilities) == pytest.approx(999_999 * 0.01, rel=1e-12)
    assert counts.never_empty.left_out == pytest.approx(0.7**5)


@pytest.mark.parametrize("in_full", [True, False])
def test_a_shift_by_chance_is_the_average_of_its_shifts(in_full: bool) -> None:
    def chain(record: object) -> Chain:
        return Chain(
            lambda x: 0.9 * x, record, lambda x: 0.9 * x, np.ones(1), iid_hazard(0.4, 1), -3.0, 3.0, in_full=in_full
        )  # type: ignore[arg-type]

    shifted = chain(Shifted(lambda x: 0.9 * x, np.array([0.5, 1.5]), np.array([0.25, 0.75]))).laws[0]
    each = [chain(lambda x, by=by: 0.9 * x + by).laws[0] for by in (0.5, 1.5)]
    assert shifted == pytest.approx(0.25 * each[0] + 0.75 * each[1], abs=1e-12)


def test_in_one_order_the_place_is_the_same_in_every_epoch() -> None:
    def chain(hazard: np.ndarray, **more: object) -> Chain:
        return Chain(
            lambda x: x, lambda x: x + 0.7, lambda x: x - 0.2, np.ones(11), hazard, -1.0, 1.0, cells=60, **more
        )  # type: ignore[arg-type]

    once = chain(shuffled_hazard(4, 11), per_epoch=4, one_order=True).laws
    places = [chain(cyclic_hazard(4, place, 11)).laws for place in range(4)]
    for law in (0, 1):
        assert once[law] == pytest.approx(sum(place[law] for place in places) / 4, abs=1e-12)


def test_epochs_that_change_nothing_are_left_out() -> None:
    def chain(steps: int) -> Chain:
        hazard = 1.0 / (4 - np.arange(steps) % 4)
        return Chain(
            lambda x: x, lambda x: x + 0.7, lambda x: x, np.ones(steps), hazard, -1.0, 1.0, per_epoch=4, cells=60
        )

    long = chain(402)
    steps = list(zip([long._kernel(1.0, 0)] * 402, long.hazard.tolist(), strict=True))
    mass = np.stack([long._first, long._first])
    for first in range(0, 402, 4):
        mass = long._one_epoch(mass, steps[first : first + 4])
    assert long.laws == pytest.approx(mass, rel=1e-12, abs=0.0)


def test_a_wide_domain_is_no_domain() -> None:
    for given, more in ((ONCE, {}), (li.FullBatch(records=10), {"step_size": FALLING})):
        bounded, unbounded = (
            li.lower_bound(run(CONVEX, given, 12, domain, **more), DELTA).epsilon for domain in (WIDE, None)
        )
        assert 0.97 * unbounded <= bounded <= unbounded * 1.001


@pytest.mark.parametrize(
    "given",
    [
        run(CONVEX, ONCE, 12, li.parts.ConvexSet(2.0)),
        run(CONVEX, SMALL, 12, li.parts.ConvexSet(2.0)),
        run(CONVEX, li.Cyclic(records=20, batch_size=10), 12, li.parts.ConvexSet(2.0), step_size=FALLING),
        run(li.losses.huber(feature_norm=1.0, threshold=2.0), li.Poisson(6, 0.3), 5, li.parts.ConvexSet(2.0)),
        run(li.losses.huber(feature_norm=1.0, threshold=2.0), li.parts.PoissonMean(4, 0.3), 3, li.parts.ConvexSet(2.0)),
        run(li.losses.general(smoothness=0.1, strong_convexity=0.05, clip=2.0), ONCE, 12, li.parts.ConvexSet(2.0)),
        run(li.losses.general(smoothness=0.1, strong_convexity=0.05, clip=2.0), li.parts.PoissonMean(200, 0.2), 9),
    ],
    ids=lambda given: f"{given.batches.kind}-{given.loss.kind}-{given.domain.described}",
)
def test_runs_that_had_no_instance_have_one_below_what_is_proved(given: li.Run) -> None:
    lower = li.lower_bound(given, DELTA).epsilon
    assert 0 < lower <= li.account(given, DELTA).epsilon


def test_strongly_convex_losses_that_cannot_be_flat_have_none() -> None:
    """Clipping does nothing to most of these gradients; and in Poisson sums the number of the others would be felt."""
    loose = li.losses.general(smoothness=0.1, strong_convexity=0.05, clip=2.0, gradient_sensitivity=3.0)
    clipped = li.losses.general(smoothness=0.1, strong_convexity=0.05, clip=2.0)
    for loss, batches in ((loose, ONCE), (clipped, li.Poisson(20, 0.3))):
        assert li.lower_bound(run(loss, batches, 9), DELTA).epsilon == 0


@pytest.mark.parametrize("clip", [2.0, 10.0])
def test_clipped_quadratic_losses_cost_what_a_chain_with_clipped_gradients_does(clip: float) -> None:
    """Four batches of ten, three epochs; the others' gradients are Hessian·x up to the clip."""
    loss = li.losses.huber(feature_norm=1.0, threshold=clip)
    lower = li.lower_bound(run(loss, li.Cyclic(records=40, batch_size=10), 12), DELTA)
    hessian = float(f"{lower.instance.values['hessian']:g}")

    def step(others: float, own: float) -> object:
        return lambda x: x - others * np.clip(hessian / others * x, -clip, clip) + own

    maps = (step(1.0, 0.0), step(0.9, clip / 10), step(0.9, -clip / 10))
    chain = Chain(*maps, np.ones(12), cyclic_hazard(4, 3, 12), -25.0, 25.0, cells=800)  # type: ignore[arg-type]
    assert lower.epsilon == pytest.approx(chain.epsilon(DELTA), rel=2e-3 if clip > 2 else 0.2)
    assert lower.epsilon <= chain.epsilon(DELTA) * (1 + 1e-3)
