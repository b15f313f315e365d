"""Calibration ends on the safe side, and close to the target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from lastiterate.accounting import calibrate
from raising import raises

ALL_BATCHES = (
    li.FullBatch(records=1000),
    li.Cyclic(records=1000, batch_size=100),
    li.Shuffled(records=1000, batch_size=500, each_epoch=False),  # two places: the tables of each two take long
    li.Shuffled(records=1000, batch_size=250),
    li.FixedSize(records=1000, batch_size=100),
    li.Poisson(records=1000, rate=0.1),
)


def run_with(batches: object, **changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": batches,
        "step_size": 0.5,
        "noise": li.OnGradientSum(multiplier=1.0, clip=0.5),
        "steps": 100,
        "domain": li.Ball(radius=1.0),
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


def executed(run: li.Run) -> li.Run:
    """As `li.train` may turn out to execute it."""
    return replace(run, arithmetic=run.expected_arithmetic)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("batches", ALL_BATCHES, ids=repr)
def test_the_least_noise(batches: object, epsilon: float) -> None:
    found = li.calibrate(run_with(batches), epsilon=epsilon, delta=1e-5)
    assert epsilon * (1 - 1e-6) <= li.account(executed(found), 1e-5).epsilon <= epsilon
    assert epsilon * (1 - 1e-3) <= li.account(found, 1e-5).epsilon <= epsilon
    assert found.noise.clip == 0.5  # type: ignore[attr-defined]


def test_a_schedule_keeps_its_shape() -> None:
    shape = np.linspace(1.0, 2.0, 100)
    run = run_with(ALL_BATCHES[1], noise=li.OnIterate(std=shape))
    found = li.calibrate(run, epsilon=1.0, delta=1e-5, free=li.NOISE)
    ratio = np.array(found.noise.std) / shape  # type: ignore[attr-defined]
    assert ratio == pytest.approx(np.full(100, ratio[0]), rel=1e-12)
    assert li.account(found, 1e-5).epsilon <= 1.0


@pytest.mark.parametrize("batches", ALL_BATCHES, ids=repr)
def test_the_most_steps(batches: object) -> None:
    run = run_with(batches, noise=li.OnGradientSum(multiplier=4.0, clip=0.5), domain=li.Unbounded())
    unit = batches.per_epoch if isinstance(batches, li.Cyclic | li.Shuffled) else 1  # type: ignore[attr-defined]
    target = li.account(run.first(40), 1e-5).epsilon * 1.01
    found = li.calibrate(run, epsilon=target, delta=1e-5, free="steps", most_steps=5000)
    assert found.steps >= 40
    assert found.steps % unit == 0
    assert li.account(found, 1e-5).epsilon <= target
    if found.steps + unit <= 5000:
        assert li.account(found.first(found.steps + unit), 1e-5).epsilon > target


def test_where_the_loss_stops_growing_any_number_of_steps_will_do() -> None:
    run = run_with(li.FullBatch(records=1000), noise=li.OnMeanGradient(std=1.0))
    assert li.calibrate(run, epsilon=1.0, delta=1e-5, free="steps", most_steps=12_345).steps == 12_345


def test_lists_cannot_be_made_longer() -> None:
    run = run_with(li.FullBatch(records=1000), noise=li.OnIterate(std=[10.0] * 30), step_size=[0.5] * 30, steps=30)
    assert li.calibrate(run, epsilon=5.0, delta=1e-5, free="steps").steps == 30


def test_what_cannot_be_met_is_said() -> None:
    with raises("no_steps_meet", kind=li.errors.Unavailable, steps=10):
        li.calibrate(run_with(ALL_BATCHES[1]), epsilon=1e-6, delta=1e-5, free="steps")


def test_releases_are_counted() -> None:
    run = run_with(ALL_BATCHES[1])
    found = li.calibrate(run, epsilon=1.0, delta=1e-5, releases=[30, 70])
    assert 1 - 1e-6 <= li.account(executed(found), 1e-5, releases=[30, 70]).epsilon <= 1.0
    assert found.noise.multiplier > li.calibrate(run, epsilon=1.0, delta=1e-5).noise.multiplier  # type: ignore[attr-defined]
    target = li.account(executed(run.first(60)), 1e-5, releases=[30]).epsilon
    longest = li.calibrate(run, epsilon=target, delta=1e-5, free="steps", releases=[30, 70], most_steps=1000)
    assert longest.steps >= 60
    assert li.account(longest, 1e-5, releases=[one for one in (30, 70) if one < longest.steps]).epsilon <= target


@pytest.mark.parametrize(
    "batches", [li.Shuffled(records=4, batch_size=2), li.FixedSize(records=4, batch_size=2)], ids=repr
)
def test_what_is_returned_accounts_to_the_target(batches: object) -> None:
    """One step, without the room for rounding that the search had."""
    run = run_with(batches, steps=1, domain=li.Unbounded(), noise=li.OnMeanGradient(std=1.0))
    assert li.account(li.calibrate(run, epsilon=1.0, delta=1e-8), 1e-8).epsilon <= 1.0


def test_a_bound_that_is_larger_without_rounding_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends a thousandth above the target, as one on a grid may."""
    run = run_with(ALL_BATCHES[0])
    exact = calibrate._found
    monkeypatch.setattr(
        calibrate, "_found", lambda run, free, meets, longest: exact(run, free, meets, longest).with_noise(1 - 1e-3)
    )
    assert 1 - 1e-2 <= li.account(li.calibrate(run, epsilon=1.0, delta=1e-5), 1e-5).epsilon <= 1.0
