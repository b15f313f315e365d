"""What a loop in PyTorch does with a smaller last batch, with micro-batches and with schedules, `li.train` does as well."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from chances import POWER, of_these_cells, power_of_cells
from lastiterate.numerics.randomness import Source
from lastiterate.training.steps import Sampler

QUIET = 1e-7  # of the noise, so that what is left is the path without it
SOURCE = np.random.default_rng(12)
FEATURES = SOURCE.normal(size=(11, 3))
FEATURES /= np.linalg.norm(FEATURES, axis=1, keepdims=True)
TARGETS = SOURCE.choice([-1.0, 1.0], 11)
LOSS = li.losses.logistic(feature_norm=1.0)


def gradients(weights: np.ndarray, rows: Any) -> np.ndarray:
    """Of the logistic loss, record by record."""
    margins = TARGETS[rows] * (FEATURES[rows] @ weights)
    return (-TARGETS[rows] / (1 + np.exp(margins)))[:, None] * FEATURES[rows]


def noise_of(on_sum: bool) -> Any:
    return li.OnGradientSum(multiplier=QUIET, clip=2.0) if on_sum else li.OnMeanGradient(std=QUIET)


@pytest.mark.parametrize("on_sum", [False, True])
@pytest.mark.parametrize("last", ["smaller", "drop"])
def test_the_last_batch_is_divided_as_the_run_says(last: str, on_sum: bool) -> None:
    """drop_last=False and True, with the mean of each batch; a noisy sum is divided by batch_size, as Opacus does."""
    sizes = li.cosine(0.8, 0.1, warmup=1)
    run = li.Run(LOSS, li.Cyclic(11, 4, last=last), sizes, noise_of(on_sum), li.epochs(5))
    weights = np.zeros(3)
    batches = [slice(0, 4), slice(4, 8), slice(8, 11)][: 3 if last == "smaller" else 2]
    for step, size in enumerate(run.step_size):  # type: ignore[arg-type]
        given = gradients(weights, batches[step % len(batches)])
        weights = weights - size * given.sum(axis=0) / (4 if on_sum else len(given))
    found = li.train(run, (FEATURES, TARGETS), seed=1, dtype=np.float64)
    assert found.weights == pytest.approx(weights, abs=1e-5)
    assert found.run.first(3).step_size == run.step_size[:3]  # type: ignore[index]


@pytest.mark.parametrize("last", ["smaller", "drop"])
def test_shuffled_batches_are_as_large_as_they_should_be(last: str) -> None:
    """Every dealing of five records to batches of two is as likely as any other: 1.3 and 0.7 times as likely is refused."""
    draws, batches = 6_000, li.Shuffled(5, 2, last=last)
    sampler, every = Sampler(batches, Source()), batches.per_epoch
    dealt: Counter[Any] = Counter()
    for epoch in range(draws):
        parts = [tuple(sorted(sampler.batch(epoch * every + at).tolist())) for at in range(every)]  # type: ignore[union-attr]
        assert [len(part) for part in parts] == [2, 2, 1][:every]
        dealt[tuple(parts)] += 1
    assert len(dealt) == 30
    alike, others = np.full(30, 1 / 30), np.repeat([1.3, 0.7], 15) / 30
    assert of_these_cells(np.array(list(dealt.values())), alike)
    assert power_of_cells(draws, alike, others) > POWER


@pytest.mark.parametrize("on_sum", [False, True])
def test_micro_batches_that_are_added_up_are_one_batch(on_sum: bool) -> None:
    """A loop that accumulates the gradients of micro-batches of 2, twice before each step, has batches of 4."""
    run = li.Run(LOSS, li.Cyclic(11, 4, last="smaller"), 0.5, noise_of(on_sum), li.epochs(4))
    weights = np.zeros(3)
    micro = [slice(at, min(at + 2, 11)) for at in range(0, 11, 2)]
    for _ in range(4):
        for first in range(0, len(micro), 2):
            total, seen = np.zeros(3), 0
            for part in micro[first : first + 2]:
                given = gradients(weights, part)
                total, seen = total + given.sum(axis=0), seen + len(given)
            weights = weights - 0.5 * total / (4 if on_sum else seen)
    assert li.train(run, (FEATURES, TARGETS), seed=2, dtype=np.float64).weights == pytest.approx(weights, abs=1e-5)


def test_gradients_of_large_batches_are_computed_in_parts() -> None:
    """So that memory is bounded: no more than 1,024 records at once, whatever the batch."""
    asked: list[int] = []

    def counted(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        asked.append(len(features))
        return np.asarray(weights - features)

    data = np.random.default_rng(3).normal(size=(5_000, 2)), np.zeros(5_000)
    run = li.Run(li.losses.network(clip=1.0), li.Shuffled(5_000, 3_000, last="smaller"), 0.1, noise_of(False), 2)
    li.train(run, data, loss=counted, start=np.zeros(2), seed=4)
    assert max(asked) <= 1024
    assert sum(asked) >= 5_000


@pytest.mark.parametrize("kind", [li.Cyclic, li.Shuffled])
def test_a_training_goes_on_after_a_smaller_batch(kind: Any, tmp_path: Any) -> None:
    run = li.Run(
        LOSS, kind(11, 4, last="smaller"), li.multistep(0.5, {2: 0.1}), li.OnMeanGradient(std=0.3), li.epochs(3)
    )
    at_once = li.train(run, (FEATURES, TARGETS), seed=5, releases=[3, 4]).weights
    again = li.train(run, (FEATURES, TARGETS), seed=5, releases=[3, 4], checkpoint=tmp_path / "kept").weights
    assert np.array_equal(at_once, again)
