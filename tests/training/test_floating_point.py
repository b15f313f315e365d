"""What is claimed holds for what is computed: sums, norms, starts, noise and gradients in floating point."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.transformed import Displaced, as_computed
from lastiterate.numerics.norms import at_least, length, row_norms
from lastiterate.numerics.randomness import Source
from lastiterate.runs.noise import EXACT, IN_DOUBLE_PRECISION, IN_SINGLE_PRECISION, STRAYING, Arithmetic
from lastiterate.training.data import any_data, linear_data
from lastiterate.training.objectives import EachRecord, LinearModel, _surely_short, linear_arithmetic
from lastiterate.training.steps import TrainingStep
from raising import raises


def test_a_start_outside_the_domain_is_projected() -> None:
    """Loss a·x²/2 with a in [0, 1] on a ball of radius 1: at 100 gradients would differ by 100, and δ would be 0.84."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0)
    run = li.Run(loss, li.FullBatch(1), 1.0, li.OnIterate(std=1.0), 1, li.Ball(radius=1.0))
    seen = []

    def gradients(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        seen.append(float(weights[0]))
        return features * weights

    li.train(run, ([[1.0]], [0.0]), loss=gradients, start=[100.0])
    assert seen == [pytest.approx(1.0)]
    assert seen[0] <= 1.0


def _hostile(records: int) -> np.ndarray:
    """+1 up to just above a power of two, then rows that are lost beside sums above it, and rounded away from 0 below it."""
    power = int(np.log2(records / 2))
    rows = np.full((records, 1), -0.3 * 2.0 ** (power - 23), np.float32)
    rows[: 2**power + 1] = 1.0
    return rows


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("records", [60_000, 250_000])
@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.ZERO_OUT])
def test_a_record_moves_the_computed_sum_by_no_more_than_is_accounted_for(
    precision: type, records: int, adjacency: object
) -> None:
    """Rows whose rounding goes wrong together: one by one in single precision they move 22 and 361 times as far."""
    batches, noise = li.FullBatch(records), li.OnIterate(std=1.0)
    run = li.Run(li.losses.huber(feature_norm=1.0), batches, 0.5, noise, 1, adjacency=adjacency)
    change = 2.0 if adjacency is li.REPLACE_ONE else 1.0
    sums, naive = [], []
    for first in (1.0, 1.0 - change):
        rows = _hostile(records)
        rows[0] = first
        naive.append(float(np.cumsum(rows[:, 0])[-1]))
        rows = rows.astype(precision)
        data = linear_data((rows, np.full(records, -5.0)), records, 1.0, None)
        objective = LinearModel(run.loss.model, data, run.loss.gradient_bound, run.batches.random)
        sums.append(float(objective.gradient_sum(np.zeros(1), slice(None), None)[0]))
    factor = linear_arithmetic(run, precision, 1).factor
    assert abs(naive[0] - naive[1]) > 20 * change
    assert abs(sums[0] - sums[1]) <= change * factor
    assert factor <= 1.001


def _sum(run: li.Run, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, chosen: object) -> np.ndarray:
    data = linear_data((rows, targets), len(rows), run.loss.arguments["feature_norm"], None)
    objective = LinearModel(run.loss.model, data, run.loss.gradient_bound, run.batches.random)
    return objective.gradient_sum(weights, chosen, run.clip)  # type: ignore[arg-type]


def test_a_row_that_is_too_long_does_not_touch_the_others() -> None:
    """Once it made all of them a little shorter: the sum of two million gradients moved by half as much again."""
    run = li.Run(li.losses.huber(feature_norm=1.0), li.FullBatch(400_000), 1.0, li.OnIterate(1.0), 1)
    sums = []
    for first, target in ((0.9999, -10.0), (1.01, 10.0)):
        rows, targets = np.full((400_000, 1), 0.9999, np.float32), np.full(400_000, -10.0)
        rows[0], targets[0] = first, target
        sums.append(_sum(run, rows, targets, np.zeros(1), slice(None)))
    assert abs(float(sums[0][0] - sums[1][0])) <= 2 * linear_arithmetic(run, np.float32, 1).factor


def test_how_rows_lie_in_memory_does_not_depend_on_one_of_them() -> None:
    """Rows in Fortran's order, one of them a little or far too long: once all others were multiplied in another order."""
    source = np.random.default_rng(0)
    rows = np.asfortranarray(source.normal(size=(8192, 8)).astype(np.float32) / 8)
    targets, weights = np.full(8192, -1.0), source.normal(size=8) * 1e4
    run = li.Run(li.losses.huber(feature_norm=1.0), li.FullBatch(8192), 1.0, li.OnIterate(1.0), 1)
    sums = []
    for times in (1.1, 3000.0):
        changed = rows.copy(order="F")
        changed[0] *= times / np.linalg.norm(changed[0])
        sums.append(_sum(run, changed, targets, weights, slice(None)))
    assert np.linalg.norm(sums[0] - sums[1]) <= 2 * linear_arithmetic(run, np.float32, 8).factor


def test_a_random_batch_without_the_record_is_rounded_like_one_with_it() -> None:
    """Where a record is missing all others move up by one place, and into other blocks: such sums are in double."""
    records = 64 * 4096
    column = np.where(np.arange(records) % 64 < 32, 1.0, 2.0**-24 * 1.5).astype(np.float32)[:, None]
    run = li.Run(li.losses.huber(feature_norm=1.0), li.Poisson(records, 0.5), 1.0, li.OnIterate(1.0), 1)
    targets = np.full(records, -5.0)
    with_it, without = (_sum(run, column, targets, np.zeros(1), np.arange(first, records)) for first in (0, 1))
    assert abs(float(with_it[0] - without[0])) <= linear_arithmetic(run, np.float32, 1).factor


def test_limits_below_the_range_of_normal_numbers_are_rounded_down() -> None:
    loss = li.losses.logistic(feature_norm=1e36, clip=1.05e-9)
    run = li.Run(loss, li.FullBatch(1), 1.0, li.OnIterate(1.0), 1)
    rows = np.full((1, 1), 1e36, np.float32)
    moved = _sum(run, rows, np.array([1.0]), np.zeros(1), slice(None))
    assert abs(float(moved[0])) <= 1.05e-9
    with raises("batches_round_too_much", "batches", kind=li.errors.InvalidInput):
        linear_arithmetic(run, np.float32, 1)


def test_rounding_weighs_twice_as_much_beside_a_record_that_contributes_nothing() -> None:
    """The block of a record is rounded as before, and the record moves half as far."""
    rows, labels = np.eye(3, dtype=np.float32).repeat(40, axis=0), np.tile([1, -1], 60)
    for batches in (li.FullBatch(120), li.Shuffled(120, 40), li.Poisson(120, 0.5)):
        factors = []
        for adjacency in (li.REPLACE_ONE, li.ZERO_OUT):
            loss, noise = li.losses.logistic(feature_norm=1.0), li.OnMeanGradient(0.5)
            run = li.Run(loss, batches, 0.5, noise, 6, adjacency=adjacency)
            trained = li.train(run, (rows, labels)).run
            assert trained.adjacency is adjacency
            assert trained.arithmetic.factor <= run.expected_arithmetic.factor * (1 + 1e-9)
            factors.append(trained.arithmetic.factor - 1)
        assert factors[1] == pytest.approx(2 * factors[0], rel=1e-6)


def test_the_longest_of_clips_that_change_is_compared_with_the_sensitivity() -> None:
    """A step with a long clip is rounded by more; only the shortest was looked at before."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1e-3, clip=[1e-3, 1.0])
    run = li.Run(loss, li.FullBatch(1024), 1.0, li.OnIterate(1.0), 2)
    objective = EachRecord(lambda w, x, y: x, linear_data((np.ones((1024, 1)), np.zeros(1024)), 1024, None, None))
    expected = (IN_DOUBLE_PRECISION.factor(1024, random=False) - 1) * 2 / 1e-3
    assert objective.arithmetic(run, 1).factor - 1 == pytest.approx(expected)


def test_a_small_sensitivity_is_compared_with_the_rounding_of_long_gradients() -> None:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1e-13, clip=1.0)
    run = li.Run(loss, li.FullBatch(1024), 1.0, li.OnIterate(1.0), 1)
    objective = EachRecord(lambda w, x, y: x, linear_data((np.ones((1024, 1)), np.zeros(1024)), 1024, None, None))
    with raises("batches_round_too_much", "batches", kind=li.errors.InvalidInput):
        objective.arithmetic(run, 1)


def test_the_next_gradient_cannot_read_the_low_bits_of_a_hidden_iterate() -> None:
    """Every iterate is a point of a public grid, whatever was there before the noise."""
    seen = []

    def gradients(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        seen.append(weights.copy())
        return np.full((len(features), 50), features[0, 0])

    run = li.Run(li.losses.network(clip=1.0), li.FullBatch(1), 1.0, li.OnIterate(4.0), 3)
    for value in (0.0, 1 / 3):
        seen.clear()
        li.train(run, ([[value]], [0]), loss=gradients, start=np.zeros(50))
        grid = 4.0 * 2.0**-12
        assert all((np.rint(one / grid) * grid == one).all() for one in seen[1:])


def test_hidden_iterates_stray_by_no_more_than_is_charged() -> None:
    """With a Lipschitz constant, roundings of √(steps·parameters) iterates together; a finer grid than any is refused."""
    loss = li.losses.logistic(feature_norm=1.0)
    for steps, parameters in ((10, 4), (1000, 500)):
        run = li.Run(loss, li.FullBatch(4), 0.5, li.OnIterate(1.0), steps)
        finer = TrainingStep(run, EachRecord(np.zeros_like, any_data(([0.0], [0.0]), 1)), Source(0), parameters).finer
        assert np.sqrt(steps * parameters) * 2.0**-finer / 2 <= STRAYING / 2
    steep = li.losses.general(smoothness=1e12, weak_convexity=1e12, gradient_sensitivity=1.0)
    run = li.Run(steep, li.FullBatch(1), 1.0, li.OnIterate(1.0), 5)
    with raises("rounding_amplified", kind=li.errors.InvalidInput):
        li.train(run, ([[0.0]], [0.0]), loss=lambda w, x, y: x, start=[0.0])


def test_a_certificate_of_a_seeded_training_is_rejected() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(4), 0.5, li.OnMeanGradient(0.5), 3)
    report = li.train(run, (np.eye(4), [1, -1, 1, -1]), seed=1).report(1e-5)
    assert "DO NOT RELEASE" in li.verify(report.certificate).reason


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("batches", [li.FullBatch(60), li.Cyclic(60, 20), li.FixedSize(60, 20), li.Poisson(60, 0.3)])
def test_what_is_calibrated_and_trained_meets_its_target(precision: type, batches: li.FullBatch) -> None:
    plan = li.Run(li.losses.logistic(feature_norm=1.0), batches, 0.5, li.OnMeanGradient(0.5), 6)
    run = li.calibrate(plan, epsilon=1.0, delta=1e-5)
    data = (np.eye(3, dtype=precision).repeat(20, axis=0), np.tile([1, -1], 30))
    assert 0.999 < li.train(run, data).report(1e-5).epsilon <= 1.0


def test_own_gradients_without_a_bound_meet_their_target() -> None:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=2.0)
    run = li.calibrate(li.Run(loss, li.FullBatch(4), 0.5, li.OnIterate(1.0), 3), epsilon=1.0, delta=1e-5)
    trained = li.train(run, (np.eye(4), np.zeros(4)), loss=lambda w, x, y: x * (x @ w)[:, None], start=np.zeros(4))
    assert 0.99 < trained.report(1e-5).epsilon <= 1.0


@pytest.mark.parametrize("seed", range(6))
def test_random_sums_stay_within_the_factor(seed: int) -> None:
    """Against exact rational sums, on rows of mixed signs and sizes."""
    source = np.random.default_rng(seed)
    records = 700
    rows = (source.normal(size=(records, 2)) * 10.0 ** source.integers(-9, 1, (records, 1))).astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1).astype(np.float32)
    run = li.Run(li.losses.huber(feature_norm=1.0), li.FullBatch(records), 0.5, li.OnIterate(std=1.0), 1)
    data = linear_data((rows, np.full(records, -5.0)), records, 1.0, None)
    found = LinearModel(run.loss.model, data, 1.0, False).gradient_sum(np.zeros(2), slice(None), None)
    exact = [sum(Fraction(float(x)) for x in rows[:, column]) for column in range(2)]
    error = float(np.hypot(*(float(Fraction(float(f)) - e) for f, e in zip(found, exact, strict=True))))
    # The factor is for two data sets and one block; the whole sum has a few of them.
    blocks = -(-records // IN_SINGLE_PRECISION.block)
    assert error <= 2 * (linear_arithmetic(run, np.float32, 2).factor - 1) * blocks


def test_the_factor_is_charged_and_travels(tmp_path: Path) -> None:
    rows, labels = np.eye(3, dtype=np.float32).repeat(40, axis=0), np.tile([1, -1], 60)
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(120), 0.5, li.OnMeanGradient(0.1), 20)
    single, double = (li.train(run, (rows.astype(kind), labels)) for kind in (np.float32, np.float64))
    assert 1.0002 < single.run.arithmetic.factor < 1.0003
    assert 1 < double.run.arithmetic.factor < 1 + 1e-7
    ideal = li.account(run, 1e-5)
    assert single.run.process.sensitivity[0] > 1.0002 * run.process.sensitivity[0]
    assert ideal.mu is not None
    assert ideal.mu * 1.0002 < single.report(1e-5).mu < ideal.mu * 1.0004  # type: ignore[operator]
    assert ideal.mu < double.report(1e-5).mu < ideal.mu + 2.1 * STRAYING  # type: ignore[operator]
    li.write_run(single.run, tmp_path / "run.toml")
    assert li.read_run(tmp_path / "run.toml") == single.run
    report = single.report(1e-5)
    assert li.verify(report.certificate, single.run).accepted
    assert not li.verify(report.certificate, run).accepted


def test_a_certificate_cannot_leave_the_arithmetic_out() -> None:
    loss = li.losses.logistic(feature_norm=1.0, l2=0.01)
    run = li.Run(loss, li.FullBatch(100), 0.5, li.OnMeanGradient(0.1), 30, arithmetic=Arithmetic(1.0005, 1e-4))
    certificate = li.account(run, 1e-5).certificate
    assert certificate is not None
    certificate["claim"]["epsilon"] = li.account(replace(run, arithmetic=EXACT), 1e-5).epsilon * 1.0006
    assert not li.verify(certificate).accepted


def test_every_records_own_epsilon_includes_the_straying_of_iterates() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.Cyclic(40, 10), 0.5, li.OnMeanGradient(0.1), 8)
    ideal, computed = (
        li.account_each(replace(run, arithmetic=one), 1e-5).batch_epsilons for one in (EXACT, Arithmetic(1.0, 1e-4))
    )
    assert (computed > ideal * (1 + 1e-5)).all()


def test_sums_that_double_precision_cannot_hold_are_refused() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(10**11), 0.5, li.OnMeanGradient(0.1), 1)
    with raises("batches_round_too_much", "batches", kind=li.errors.InvalidInput):
        linear_arithmetic(run, np.float64, 3)
    assert IN_SINGLE_PRECISION.factor(10**6, random=False) < 1.001 < IN_SINGLE_PRECISION.factor(10**10, random=False)
    assert IN_DOUBLE_PRECISION.factor(10**6, random=True) < 1.001 < IN_SINGLE_PRECISION.factor(10**6, random=True)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("small", [1e-30, 1e-170, 5e-324])
def test_clipping_does_not_underflow(precision: type, small: float) -> None:
    """A row whose square is 0 and a label that makes up for it: its gradient is clipped like any other."""
    run = li.Run(li.losses.ridge(feature_norm=1.0, clip=1.0), li.FullBatch(1), 1.0, li.OnIterate(1e-3), 1)
    label = {np.float32: 3e38, np.float64: 1e308}[precision]
    rows = np.full((1, 2), small, precision)
    found = li.train(run, (rows, [label]), seed=1).weights
    assert np.linalg.norm(found) <= 1.0 + 0.01


def test_gradients_of_ones_own_neither_underflow_nor_overflow() -> None:
    run = li.Run(li.losses.network(clip=1.0), li.FullBatch(2), 1.0, li.OnIterate(1e-3), 1)
    for size in (1e300, 1e-300):
        given = np.array([[size, size], [1.0, 0.0]])
        found = li.train(run, (given, [0, 0]), loss=lambda w, x, y: x, start=[0.0, 0.0], seed=0).weights
        expected = -(np.array([1.0, 0.0]) + (np.sqrt([0.5, 0.5]) if size > 1 else 0)) / 2
        assert found == pytest.approx(expected, abs=0.01)


def test_norms() -> None:
    rows = np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0], [3.0, 4.0], [5e-324, 0.0]])
    assert row_norms(rows) == pytest.approx([5e-200, 5e200, 0.0, 5.0, 5e-324], rel=1e-15)
    assert [length(row) for row in rows] == pytest.approx([5e-200, 5e200, 0.0, 5.0, 5e-324], rel=1e-15)
    assert np.isinf(row_norms(np.array([[np.inf, 1.0]])))
    assert np.isnan(row_norms(np.array([[np.nan, 1.0]])))
    values = np.random.default_rng(0).random(1000) * 1e-44
    assert (at_least(values, np.float32) >= values).all()


@pytest.mark.parametrize("noise", [1e-3, 1.0])
def test_noise_that_the_iterate_swallows_is_refused(noise: float) -> None:
    """At 10¹⁵ doubles lie 0.125 apart, so that noise of 0.0075 changes nothing."""
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(4), 0.5, li.OnIterate(std=noise), 3)
    data = (np.eye(4), [1, -1, 1, -1])
    with raises("noise_lost_in_rounding", kind=li.errors.InvalidInput):
        li.train(run, data, start=np.full(4, 1e15))
    with raises("noise_lost_in_rounding", kind=li.errors.InvalidInput):
        li.train(run, data, start=np.full(4, noise * 1e8))
    assert li.train(run, data, start=np.full(4, noise * 1e5)).private


def test_a_gradient_beyond_what_the_loss_declares_is_cut() -> None:
    """A loss whose facts were tampered with is held to them."""
    loss = replace(li.losses.logistic(feature_norm=1.0), gradient_bound=0.1, gradient_sensitivity=0.2)
    run = li.Run(loss, li.FullBatch(1), 1.0, li.OnIterate(1e-4), 1)
    found = li.train(run, ([[1.0, 0.0]], [1]), seed=0).weights
    assert np.linalg.norm(found) == pytest.approx(0.1, abs=1e-3)


def test_gradients_without_a_bound_are_held_to_their_sensitivity() -> None:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1e-6)
    run = li.Run(loss, li.FullBatch(1), 1.0, li.OnIterate(1.0), 1)
    with raises("gradients_too_large", kind=li.errors.InvalidInput):
        li.train(run, ([[1.0]], [0]), loss=lambda w, x, y: 1e6 * x, start=[0.0])
    objective = EachRecord(lambda w, x, y: x, linear_data(([[1.0]], [0]), 1, None, None), sensitivity=1e-6)
    assert objective.arithmetic(run, 1).factor <= 1.001


def test_one_long_row_does_not_copy_the_data(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    rows = np.memmap(file, np.float32, "w+", shape=(200_000, 20))
    rows[:] = 0.1
    rows[77] = 1e30
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(200_000), 0.5, li.OnMeanGradient(0.1), 2)
    labels = np.ones(200_000)
    tracemalloc.start()
    found = li.train(run, (rows, labels), seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shortened == 1
    assert np.isfinite(found.weights).all()
    assert peak < rows.nbytes * 0.9  # labels, norms and scales take 40 %


@pytest.mark.parametrize(
    "notion",
    [
        li.notions.GaussianDP(0.5),
        li.notions.GaussianDP(0.5).compose(3),
        li.notions.Profile(epsilons=[1.0], deltas=[1e-3]),
    ],
)
def test_a_displaced_guarantee_is_a_little_worse(notion: object) -> None:
    moved = as_computed(notion, 1e-4)
    for delta in (1e-2, 1e-4):
        before, after = float(notion.epsilon(delta)), float(moved.epsilon(delta))
        if np.isfinite(before):
            assert before < after < before + 0.01
            assert float(moved.delta(after)) <= delta * (1 + 1e-9)
    epsilons = np.linspace(0, 3, 50)
    assert (np.asarray(moved.delta(epsilons)) >= np.asarray(notion.delta(epsilons))).all()


def test_displaced_gaussians_meet_the_exact_triangle() -> None:
    """N(0), N(m), N(m + μ), N(2m + μ): the profile of the ends is that of μ + 2m, and a displaced profile is above it."""
    displaced = Displaced(li.notions.GaussianDP(0.5), 1e-3)
    exact = li.notions.GaussianDP(0.5 + 2e-3)
    assert as_computed(li.notions.GaussianDP(0.5), 1e-3).mu == pytest.approx(exact.mu, rel=1e-12)  # type: ignore[attr-defined]
    epsilons = np.linspace(0, 4, 41)
    assert (np.asarray(displaced.delta(epsilons)) >= np.asarray(exact.delta(epsilons)) * (1 - 1e-12)).all()
    averaged = as_computed(li.notions.AveragedGaussianDP(mus=[0.0, 0.5], weights=[0.5, 0.5]), 1e-3)
    half = (np.asarray(exact.delta(epsilons)) + np.asarray(li.notions.GaussianDP(2e-3).delta(epsilons))) / 2
    assert np.asarray(averaged.delta(epsilons)) == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_nothing_that_is_too_long_is_taken_for_short(precision: type) -> None:
    """Gradients just above what they may be, tiny slopes on long rows, and numbers that overflow are looked at closely."""
    for slope, norm in ((1.0, 1.0), (1e-25, 1e25), (1e-40, 1e30), (1e25, 1e-10), (1e30, 1.0)):
        slopes, norms = np.full((5, 3), slope, precision), np.full(5, norm, precision)
        exact = math.sqrt(3) * float(slopes[0, 0]) * float(norms[0])
        for most in (exact * 0.5, exact * (1 - 1e-6), exact):
            assert not _surely_short(slopes, float(norms.max(initial=0.0)), most)
    assert _surely_short(np.full((5, 3), 1.0, precision), 1.0, 2.0)
    assert not _surely_short(np.full((5, 3), np.nan, precision), 1.0, 2.0)
    assert not _surely_short(np.zeros((0, 3), precision), 0.0, 2.0)
