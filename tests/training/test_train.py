"""Training: what is executed is what the run says, step by step, for every kind of batches, noise, prox and domain."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import lastiterate as li
from lastiterate.numerics.randomness import Source
from lastiterate.training.data import linear_data
from lastiterate.training.steps import Sampler
from raising import raises

RECORDS = 24
SOURCE = np.random.default_rng(3)
FEATURES = SOURCE.normal(size=(RECORDS, 3))
FEATURES /= np.maximum(np.linalg.norm(FEATURES, axis=1, keepdims=True), 1.0)
LABELS = np.where(FEATURES @ [1.0, -2.0, 0.5] > 0, 1.0, -1.0)
SILENT = li.OnIterate(std=1e-90)
BATCHES = (
    li.FullBatch(RECORDS),
    li.Cyclic(RECORDS, 8),
    li.Shuffled(RECORDS, 8),
    li.Shuffled(RECORDS, 8, each_epoch=False),
    li.FixedSize(RECORDS, 8),
    li.Poisson(RECORDS, 0.4),
    li.parts.PoissonMean(RECORDS, 0.4),
)


def logistic_gradient(weights: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return -y * x / (1 + math.exp(y * float(x @ weights)))


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
@pytest.mark.parametrize("clip", [None, 0.3])
def test_every_step_is_the_update_as_written(batches: li.FullBatch, clip: float | None) -> None:
    """With noise that is too small to see, against a loop over records that forms every gradient."""
    loss = li.losses.logistic(feature_norm=1.0, l2=0.1, clip=clip)
    run = li.Run(loss, batches, 0.7, SILENT, 9, weight_decay=0.05)
    weights = np.zeros(3)
    source = Source(5)
    for chosen in _replayed(batches, 9, source, weights.shape):
        gradients = [logistic_gradient(weights, x, y) for x, y in zip(FEATURES[chosen], LABELS[chosen], strict=True)]
        if clip is not None:
            gradients = [g * min(1.0, clip / np.linalg.norm(g)) for g in gradients]
        size = max(len(gradients), 1) if isinstance(batches, li.parts.PoissonMean) else batches.divisor
        weights = (1 - 0.7 * 0.15) * weights - 0.7 * np.sum(gradients, axis=0) / size
    found = li.train(run, (FEATURES, LABELS), seed=5)
    assert found.weights == pytest.approx(weights, abs=1e-12)
    assert replace(found.run, arithmetic=run.arithmetic) == run
    assert not found.private


def _replayed(batches: li.FullBatch, steps: int, source: Source, shape: tuple[int, ...]):  # type: ignore[no-untyped-def]
    """The same numbers in the same order: a batch, then its noise."""
    sampler = Sampler(batches, source)
    for step in range(steps):
        yield sampler.batch(step)
        source.bits(shape)


def test_the_last_iterate_has_the_law_that_is_accounted_for() -> None:
    """Ridge, record by record on one of ten features, is ten quadratics: mean and variance by recursion, in every
    convention of the noise. Each feature has a tenth of the records, so that ten times the step size halves its distance."""
    features, targets = np.eye(10).repeat(4, axis=0), np.tile([1.0, 2.0, 3.0, 4.0], 10)
    loss = li.losses.ridge(feature_norm=1.0, residual_bound=100.0)
    for noise, variance in ((li.OnIterate(0.3), 0.09), (li.OnMeanGradient(0.06), 0.09), (li.Langevin(0.3), 0.9)):
        run = li.Run(loss, li.FullBatch(40), 5.0, noise, 6)
        last = np.concatenate([li.train(run, (features, targets), seed=seed).weights for seed in range(300)])
        power = 0.5**6
        assert last.mean() == pytest.approx(2.5 * (1 - power), abs=4 * last.std() / math.sqrt(3000))
        assert last.var() == pytest.approx(variance * (1 - power**2) / 0.75, rel=0.12)


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
def test_batches_are_as_they_are_said_to_be(batches: li.FullBatch) -> None:
    sampler = Sampler(batches, Source())
    drawn = [np.arange(RECORDS)[sampler.batch(step)] for step in range(300)]
    if isinstance(batches, li.Cyclic | li.Shuffled):
        for epoch in range(100):
            together = np.concatenate(drawn[3 * epoch : 3 * epoch + 3])
            assert np.sort(together).tolist() == list(range(RECORDS))
        again = all((drawn[step] == drawn[step + 3]).all() for step in range(297))
        assert again == (not batches.reshuffled)
    else:
        assert all(len(np.unique(one)) == len(one) for one in drawn)
        rate = np.mean([np.isin(np.arange(RECORDS), one) for one in drawn], axis=0)
        assert rate == pytest.approx(np.full(RECORDS, float(batches.inclusion(1)[0])), abs=0.12)


@pytest.mark.parametrize("kind", ["logistic", "huber", "smooth_hinge", "ridge"])
def test_gradients_are_derivatives(kind: str) -> None:
    """Of the losses as they are defined, by differences; and their facts hold."""
    loss = {
        "logistic": li.losses.logistic(feature_norm=1.0),
        "huber": li.losses.huber(feature_norm=1.0, threshold=0.7),
        "smooth_hinge": li.losses.smooth_hinge(feature_norm=1.0, width=0.5),
        "ridge": li.losses.ridge(feature_norm=1.0, clip=10.0),
    }[kind]
    model = loss.model
    scores = np.linspace(-4, 4, 4001)
    slopes = model.slopes(scores, np.ones_like(scores))
    curvature = np.diff(slopes) / np.diff(scores)
    assert curvature.max() <= loss.smoothness * (1 + 1e-6)
    assert curvature.min() >= -1e-9
    assert np.abs(slopes).max() <= loss.gradient_bound * (1 + 1e-12)


def test_softmax() -> None:
    labels = (np.arange(RECORDS) % 3).astype(float)
    loss = li.losses.softmax(feature_norm=1.0, clip=0.4)
    run = li.Run(loss, li.FullBatch(RECORDS), 1.0, SILENT, 1)
    found = li.train(run, (FEATURES, labels), classes=3, seed=0).weights
    expected = np.zeros((3, 3))
    for x, label in zip(FEATURES, labels.astype(int), strict=True):
        gradient = np.outer(x, np.full(3, 1 / 3) - np.eye(3)[label])
        expected -= gradient * min(1.0, 0.4 / np.linalg.norm(gradient)) / RECORDS
    assert found == pytest.approx(expected, abs=1e-12)
    with raises("classes_missing", "classes", kind=li.errors.InvalidInput):
        li.train(run, (FEATURES, labels))


@pytest.mark.parametrize(
    ("prox", "expected"),
    [
        (li.parts.L1(weight=1.0), [1.5, 0.0]),
        (li.parts.ElasticNet(l1=1.0, l2=2.0), [0.75, 0.0]),
        (li.parts.NuclearNorm(weight=1.0), None),
    ],
)
def test_proximal_maps(prox: object, expected: list[float] | None) -> None:
    run = li.Run(li.losses.ridge(feature_norm=1.0, clip=1.0), li.FullBatch(1), 0.5, SILENT, 1, prox=prox)  # type: ignore[arg-type]
    found = li.train(run, (np.zeros((1, 2)), [0.0]), start=[2.0, -0.3], seed=0).weights
    if expected is None:
        length = math.hypot(2.0, 0.3)
        expected = [2.0 * (length - 0.5) / length, -0.3 * (length - 0.5) / length]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("domain", "expected"), [(li.Ball(radius=1.0), [0.6, 0.8]), (li.parts.Box(2.0, 2), [1.0, 1.0])]
)
def test_projections(domain: object, expected: list[float]) -> None:
    run = li.Run(li.losses.ridge(feature_norm=1.0, clip=1.0), li.FullBatch(1), 0.5, SILENT, 1, domain)  # type: ignore[arg-type]
    found = li.train(run, (np.zeros((1, 2)), [0.0]), start=[3.0, 4.0], seed=0).weights
    assert found == pytest.approx(expected, abs=1e-12)


def test_rows_that_are_too_long_are_scaled_and_counted() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(2), 1.0, SILENT, 1)
    found = li.train(run, ([[3.0, 4.0], [0.0, 0.5]], [1, -1]), seed=0)
    assert found.shortened == 1
    assert found.weights == pytest.approx([0.5 * 0.6 / 2, (0.5 * 0.8 - 0.25) / 2], abs=1e-12)


def test_sparse_input_float32_and_secure_noise() -> None:
    loss = li.losses.logistic(feature_norm=1.0)
    run = li.Run(loss, li.Cyclic(RECORDS, 8), 0.5, li.OnMeanGradient(0.01), li.epochs(30))
    secure = li.train(run, (csr_array(FEATURES), LABELS), dtype=np.float32)
    assert secure.private
    assert secure.weights.dtype == np.float32
    assert np.mean(np.sign(FEATURES @ secure.weights) == LABELS) > 0.9
    assert (secure.weights != li.train(run, (FEATURES, LABELS)).weights).all()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ((FEATURES[:5], LABELS[:5]), "as many records as the run, 24. Got 5"),
        ((FEATURES, LABELS[:5]), "shapes"),
        ((np.full_like(FEATURES, np.nan), LABELS), "finite"),
        ((FEATURES, LABELS + 3), "-1 or 1"),
        (FEATURES[0, 0], "a pair"),
    ],
)
def test_bad_data(data: object, said: str) -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, SILENT, 1)
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.train(run, data)  # type: ignore[arg-type]


def test_what_cannot_be_trained() -> None:
    network = li.Run(li.losses.network(clip=1.0), li.FullBatch(RECORDS), 0.5, SILENT, 1)
    with raises("loss_not_given", "loss", kind=li.errors.InvalidInput):
        li.train(network, (FEATURES, LABELS))
    convex_set = li.Run(
        li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, SILENT, 1, li.parts.ConvexSet(1.0)
    )
    with raises("no_projection", "domain", kind=li.errors.InvalidInput):
        li.train(convex_set, (FEATURES, LABELS))
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, SILENT, 1)
    with raises("start_shape", "start", kind=li.errors.InvalidInput):
        li.train(run, (FEATURES, LABELS), start=[0.0])


def test_released_iterates_are_returned_and_charged() -> None:
    loss = li.losses.logistic(feature_norm=1.0, l2=0.5)
    run = li.Run(loss, li.FullBatch(RECORDS), 0.5, li.OnMeanGradient(0.5), 12)
    found = li.train(run, (FEATURES, LABELS), releases=[4, 12, 8])
    assert list(found.released) == [4, 8]
    assert found.report(1e-5).epsilon == li.account(found.run, 1e-5, releases=[4, 8]).epsilon
    assert found.report(1e-5).epsilon == pytest.approx(li.account(run, 1e-5, releases=[4, 8]).epsilon, rel=1e-5)
    assert found.report(1e-5).epsilon > 1.05 * li.account(run, 1e-5).epsilon
    again = li.train(run.first(4), (FEATURES, LABELS), seed=2).weights
    assert li.train(run, (FEATURES, LABELS), releases=[4], seed=2).released[4] == pytest.approx(again)
    with raises("must_be", "releases", kind=li.errors.InvalidInput, allowed="at most steps = 12"):
        li.train(run, (FEATURES, LABELS), releases=[13])


def test_a_gradient_of_ones_own_is_clipped_record_by_record() -> None:
    """The logistic gradient, written by hand for any number of records, in place of the closed form."""

    def gradients(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        slopes = -targets / (1 + np.exp(targets * (features @ weights)))
        return slopes[:, None] * features

    known = li.losses.logistic(feature_norm=1.0, clip=0.2)
    other = li.losses.general(smoothness=0.25, strong_convexity=0.0, clip=0.2)
    runs = [li.Run(loss, li.Shuffled(RECORDS, 8), 0.7, li.OnMeanGradient(0.1), 9) for loss in (known, other)]
    one = li.train(runs[0], (FEATURES, LABELS), seed=1).weights
    two = li.train(runs[1], (FEATURES, LABELS), loss=gradients, start=np.zeros(3), seed=1).weights
    assert one == pytest.approx(two, abs=1e-12)
    with raises("start_not_given", "start", kind=li.errors.InvalidInput):
        li.train(runs[1], (FEATURES, LABELS), loss=gradients)
    with raises("gradients_shape", "loss", kind=li.errors.InvalidInput):
        li.train(runs[1], (FEATURES, LABELS), loss=lambda *_: np.zeros(3), start=np.zeros(3))
    with raises("gradients_not_finite", "loss", kind=li.errors.InvalidInput):
        li.train(runs[1], (FEATURES, LABELS), loss=lambda *_: np.full((8, 3), np.nan), start=np.zeros(3))
    with raises("must_be", "loss", kind=li.errors.InvalidInput, allowed="a function of weights, features and targets"):
        li.train(runs[1], (FEATURES, LABELS), loss=3, start=np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["logistic", "smooth_hinge"])
def test_one_against_the_rest(kind: str) -> None:
    """Each class's gradient is clipped at clip/√classes; together they keep the facts that the loss states."""
    loss = getattr(li.losses, kind)(feature_norm=1.0, clip=0.6, classes=3)
    labels = np.arange(RECORDS) % 3
    run = li.Run(loss, li.FullBatch(RECORDS), 1.0, SILENT, 1)
    found = li.train(run, (FEATURES, labels), seed=0).weights
    expected = np.zeros((3, 3))
    for x, label in zip(FEATURES, labels, strict=True):
        for one in range(3):
            slope = (-1.0 if label == one else 1.0) * (0.5 if kind == "logistic" else 1.0)
            part = slope * x
            expected[:, one] -= part * min(1.0, 0.6 / math.sqrt(3) / np.linalg.norm(part)) / RECORDS
    assert found == pytest.approx(expected, abs=1e-12)
    assert run.convex
    assert run.process.sensitivity[0] == pytest.approx(1.2 / RECORDS)
    assert getattr(li.losses, kind)(feature_norm=1.0, classes=3).gradient_bound == pytest.approx(math.sqrt(3))


def test_what_is_released_lies_on_a_grid_that_everybody_knows() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, li.OnIterate(0.7), 3)
    grid = 2.0**-13  # 2¹² times finer than the power of two below the noise
    weights = li.train(run, (FEATURES, LABELS), start=[1 / 3, 0.1, 0.7]).weights
    assert (weights / grid == np.round(weights / grid)).all()


def test_a_row_at_the_declared_norm_is_not_counted_but_never_exceeds_it() -> None:
    rows = (FEATURES / np.linalg.norm(FEATURES, axis=1, keepdims=True)).astype(np.float32)
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 1.0, SILENT, 1)
    assert li.train(run, (rows, LABELS), seed=0).shortened == 0
    data = linear_data((rows * 3, LABELS), RECORDS, 1.0, None)
    assert data.shortened == RECORDS
    scaled = data.records.features.astype(float) * data.records.scales.astype(float)[:, None]
    assert np.linalg.norm(scaled, axis=1).max() <= 1.0


@pytest.mark.parametrize("length", [1e4, 1e20, 1e37, 3e38])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_of_absurd_length_is_one_of_the_declared_length(length: float, dtype: type) -> None:
    """In single precision its products would overflow, and one record would decide whether the model is made of NaN."""
    rows = FEATURES.astype(dtype)
    rows[0] = np.array([length, -length, 0.0], dtype) / np.sqrt(2)
    short = rows.copy()
    short[0] = np.array([1.0, -1.0, 0.0]) / np.sqrt(2)
    for loss in (li.losses.logistic(feature_norm=1.0), li.losses.softmax(feature_norm=1.0)):
        run = li.Run(loss, li.FullBatch(RECORDS), 4.0, li.OnMeanGradient(std=1e-3), 20)
        labels = LABELS if loss.kind == "logistic" else (LABELS > 0)
        found = [
            li.train(run, (data, labels), classes=2 if loss.kind == "softmax" else None, seed=1)
            for data in (rows, short)
        ]
        assert found[0].weights == pytest.approx(found[1].weights, abs=1e-4)
        assert found[0].shortened == 1


def test_the_domain_is_that_of_the_weights() -> None:
    for domain in (li.parts.Box(side=0.05, dimension=2), li.Unbounded(dimension=1)):
        run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, li.OnIterate(0.1), 3, domain)
        with raises("domain_dimension", kind=li.errors.InvalidInput, weights=3):
            li.train(run, (FEATURES, LABELS))


def test_own_gradients_are_cut_to_what_the_loss_declares() -> None:
    run = li.Run(li.losses.logistic(feature_norm=2.0), li.FullBatch(RECORDS), 1.0, SILENT, 1)
    found = li.train(run, (FEATURES, LABELS), loss=lambda *_: np.full((RECORDS, 3), 1e6), start=np.zeros(3), seed=0)
    assert np.linalg.norm(found.weights) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"classes": 3}, "that of the loss"),
        ({"classes": 2.5}, "classes must be"),
        ({"dtype": np.int32}, "dtype must be"),
        ({"dtype": "x"}, "dtype must be"),
        ({"data": ([[1.0], [1.0, 2.0]], [1, 1])}, "must be arrays"),
        ({"data": (np.ma.masked_greater(FEATURES, 0.1), LABELS)}, "masked"),
        ({"data": (FEATURES * 1e160, LABELS)}, "rows of norm below"),
        ({"data": (FEATURES.astype(str), LABELS)}, "real numbers"),
    ],
)
def test_more_that_is_refused(change: dict[str, object], said: str) -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, SILENT, 1)
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.train(**({"run": run, "data": (FEATURES, LABELS)} | change))  # type: ignore[arg-type]


def test_single_precision_by_name() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(RECORDS), 0.5, SILENT, 1)
    assert li.train(run, (FEATURES, LABELS), dtype="float32", seed=0).weights.dtype == np.float32
