"""The batch size and the step size that meet a target: on the safe side, and no farther than needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lastiterate as li
from lastiterate.accounting.calibrate import Free
from raising import raises

DELTA = 1e-5
ON_SUM, ON_MEAN = li.OnGradientSum(multiplier=4.0, clip=0.5), li.OnMeanGradient(std=0.05)
KINDS = (
    li.Cyclic(records=240, batch_size=24),
    li.Cyclic(records=240, batch_size=26, last="drop"),
    li.Shuffled(records=240, batch_size=12),
    li.FixedSize(records=240, batch_size=12),
    li.Poisson(records=240, rate=0.05),
    li.BallsAndBins(records=240, batches=20),
)


def run_with(batches: object, noise: object = ON_SUM, **changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.1),
        "batches": batches,
        "step_size": 0.5,
        "noise": noise,
        "steps": li.epochs(5),
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


def epsilon_of(run: li.Run) -> float:
    """As `li.train` may turn out to execute it."""
    return li.account(replace(run, arithmetic=run.expected_arithmetic), DELTA).epsilon


def of_size(run: li.Run, size: int) -> li.Run:
    return replace(run, batches=run.batches.resized(size))


@pytest.mark.parametrize("noise", [ON_SUM, ON_MEAN], ids=["on the sum", "on the mean"])
@pytest.mark.parametrize("batches", KINDS, ids=repr)
@pytest.mark.parametrize("factor", [0.99, 1.25])
def test_the_nearest_batch_size(batches: object, noise: object, factor: float) -> None:
    """Where a size meets the target, the one before it on some side does not, or is the one it came from."""
    run = run_with(batches, noise)
    target = factor * epsilon_of(run)
    found = li.calibrate(run, epsilon=target, delta=DELTA, free="batch_size")
    assert epsilon_of(found) <= target
    assert found.steps == 5 * found.batches.per_epoch
    beside = [_neighbour(run, found, way) for way in (-1, 1)]
    assert any(one is None or epsilon_of(one) > target for one in beside)


def _neighbour(run: li.Run, found: li.Run, way: int) -> li.Run | None:
    """With the next size; as many batches may do for several sizes."""
    sizes = list(run.batches.other_sizes)
    places = range(sizes.index(round(found.batches.divisor)), len(sizes) if way > 0 else -1, way)
    return next((one for place in places if (one := of_size(run, sizes[place])) != found), None)


def test_a_run_in_steps_keeps_its_passes_too() -> None:
    run = run_with(KINDS[0], steps=25)
    found = li.calibrate(run, epsilon=1.1 * epsilon_of(run), delta=DELTA, free="batch_size")
    assert found.steps == round(2.5 * found.batches.per_epoch)


def test_where_no_batch_size_does() -> None:
    with raises("no_batch_size", "free", kind=li.errors.Unavailable, batches="full batches", records=240):
        li.calibrate(run_with(li.FullBatch(records=240)), epsilon=1.0, delta=DELTA, free="batch_size")
    with raises("no_batch_size_meets", "free", kind=li.errors.Unavailable, least=1, most=240, epsilon=1e-06):
        li.calibrate(run_with(KINDS[0]), epsilon=1e-6, delta=DELTA, free="batch_size")


@pytest.mark.parametrize("noise", [li.OnIterate(std=0.05), ON_MEAN], ids=["on the iterate", "on the mean"])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_nearest_step_size(noise: object, factor: float) -> None:
    """Of noise on the iterate, shorter steps cost less; of noise on the mean, longer ones forget more."""
    run = run_with(li.FullBatch(records=100), noise, steps=50)
    target = factor * epsilon_of(run)
    found = li.calibrate(run, epsilon=target, delta=DELTA, free="step_size")
    assert epsilon_of(found) <= target
    slightly = [replace(found, step_size=found.step_size * (1 + sign * 1e-4)) for sign in (-1, 1)]  # type: ignore[operator]
    assert any(epsilon_of(one) > target for one in slightly)


def test_where_the_step_size_does_not_matter() -> None:
    run = run_with(KINDS[4], loss=li.losses.network(clip=0.5), noise=li.OnGradientSum(multiplier=4.0, clip=0.5))
    epsilon = epsilon_of(run)
    with raises("every_step_size_meets", "free", kind=li.errors.Unavailable):
        li.calibrate(run, epsilon=2 * epsilon, delta=DELTA, free="step_size")
    with raises("no_step_size_meets", "free", kind=li.errors.Unavailable):
        li.calibrate(run, epsilon=epsilon / 2, delta=DELTA, free="step_size")


def test_by_name_or_constant() -> None:
    run = run_with(li.Cyclic(records=40, batch_size=20))
    for free in (Free.NOISE, Free.STEPS, Free.BATCH_SIZE):
        assert li.calibrate(run, epsilon=2.0, delta=DELTA, free=free.name.lower(), most_steps=100) == li.calibrate(
            run, epsilon=2.0, delta=DELTA, free=free, most_steps=100
        )
    with raises("must_be", "free", allowed="one of 'noise', 'steps', 'batch_size', 'step_size'"):
        li.calibrate(run, epsilon=2.0, delta=DELTA, free="clip")
