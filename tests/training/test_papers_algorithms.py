"""The algorithms of the papers, each written out as its paper has it and compared with the run that stands for it.

Where a paper takes the noise off the gradient, its sign is turned: the trainer adds it to the iterate, with the same law.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.randomness import Source
from lastiterate.training.objectives import leaves_with_normal_noise
from lastiterate.training.steps import Sampler

RECORDS, SIZE = 12, 3
FEATURES = np.random.default_rng(5).normal(size=(RECORDS, 2))
LABELS = np.where(FEATURES[:, 0] > 0, 1.0, -1.0)
LOSS = li.losses.logistic(feature_norm=10.0)
Gradient = Callable[[np.ndarray, int], np.ndarray]


def gradient(x: np.ndarray, record: int) -> np.ndarray:
    return -LABELS[record] * FEATURES[record] / (1 + math.exp(LABELS[record] * float(FEATURES[record] @ x)))


def clipped(vector: np.ndarray, most: float) -> np.ndarray:
    return vector / max(1.0, float(np.linalg.norm(vector)) / most)


def ball(vector: np.ndarray, radius: float) -> np.ndarray:
    return vector * min(1.0, radius / float(np.linalg.norm(vector)))


def replayed(batches: object, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each step the records and the normals that a training with seed 3 draws."""
    source = Source(3)
    sampler = Sampler(batches, source)  # type: ignore[arg-type]
    return [
        (np.arange(RECORDS)[sampler.batch(step)], leaves_with_normal_noise(np.zeros(2), 1.0, source, 20))
        for step in range(steps)
    ]


def test_boninsegna_algorithm_1_dp_sgd() -> None:
    """Random batches; clipped gradients are summed, N(0, 4σ²C²) is added, the sum is divided by the batch size."""
    step_size, noise, clip, batches = 0.4, 0.7, 0.5, li.FixedSize(RECORDS, SIZE)
    x = np.zeros(2)
    for chosen, normal in replayed(batches, 8):
        total = sum(clipped(gradient(x, record), clip) for record in chosen)
        x = x - step_size / SIZE * (total - 2 * noise * clip * normal)
    run = li.Run(LOSS, batches, step_size, li.OnGradientSum(multiplier=2 * noise, clip=clip), 8)
    assert li.train(run, (FEATURES, LABELS), seed=3).weights == pytest.approx(x, abs=1e-3)


def test_boninsegna_algorithm_2_fixed_batches() -> None:
    """The same with batches that are cut once and used in order, E epochs."""
    step_size, noise, clip, batches = 0.4, 0.7, 0.5, li.Cyclic(RECORDS, SIZE)
    x = np.zeros(2)
    for chosen, normal in replayed(batches, 8):
        total = sum(clipped(gradient(x, record), clip) for record in chosen)
        x = x - step_size / SIZE * (total - 2 * noise * clip * normal)
    run = li.Run(LOSS, batches, step_size, li.OnGradientSum(multiplier=2 * noise, clip=clip), li.epochs(2))
    assert li.train(run, (FEATURES, LABELS), seed=3).weights == pytest.approx(x, abs=1e-3)


def test_boninsegna_algorithm_3_langevin() -> None:
    """Full batches, noise √(2η)·N(0, σ²), a random start, projection on a ball."""
    step_size, noise, start = 0.4, 0.7, np.array([0.3, -0.2])
    x = start
    for _, normal in replayed(li.FullBatch(RECORDS), 8):
        mean = sum(gradient(x, record) for record in range(RECORDS)) / RECORDS
        x = ball(x - step_size * mean + math.sqrt(2 * step_size) * noise * normal, 0.9)
    run = li.Run(LOSS, li.FullBatch(RECORDS), step_size, li.Langevin(std=noise), 8, li.Ball(0.9))
    assert li.train(run, (FEATURES, LABELS), start=start, seed=3).weights == pytest.approx(x, abs=1e-3)


def test_balle_algorithm_1_noisy_projected_sgd() -> None:
    """One pass, record by record: Π(x − η(∇f + Z))."""
    step_size, noise = 0.4, 0.7
    x = np.zeros(2)
    for record, (_, normal) in enumerate(replayed(li.Cyclic(RECORDS, 1), RECORDS)):
        x = ball(x - step_size * (gradient(x, record) - noise * normal), 0.9)
    run = li.Run(LOSS, li.Cyclic(RECORDS, 1), step_size, li.OnMeanGradient(std=noise), li.epochs(1), li.Ball(0.9))
    assert li.train(run, (FEATURES, LABELS), seed=3).weights == pytest.approx(x, abs=1e-3)


def test_asoodeh_regularised_after_clipping() -> None:
    """(1 − λ)w − (η/|B|)·Σ clip + σZ, the batch a Poisson sample, divided by its own size."""
    step_size, noise, clip, shrink = 0.4, 0.7, 0.5, 0.1
    batches = li.parts.PoissonMean(RECORDS, 0.4)
    x = np.zeros(2)
    for chosen, normal in replayed(batches, 8):
        total = sum((clipped(gradient(x, record), clip) for record in chosen), np.zeros(2))
        x = (1 - shrink) * x - step_size / max(len(chosen), 1) * total + noise * normal
    loss = li.losses.logistic(feature_norm=10.0, clip=clip)
    run = li.Run(loss, batches, step_size, li.OnIterate(std=noise), 8, weight_decay=shrink / step_size)
    assert li.train(run, (FEATURES, LABELS), seed=3).weights == pytest.approx(x, abs=1e-3)


def test_kong_proximal_cyclic() -> None:
    """prox(ψ(w) + σZ) with an ℓ1 term."""
    step_size, noise, clip, batches = 0.4, 0.2, 0.5, li.Cyclic(RECORDS, SIZE)
    x = np.zeros(2)
    for chosen, normal in replayed(batches, 8):
        moved = x - step_size / SIZE * sum(clipped(gradient(x, record), clip) for record in chosen) + noise * normal
        x = np.sign(moved) * np.maximum(np.abs(moved) - step_size * 0.3, 0)
    loss = li.losses.logistic(feature_norm=10.0, clip=clip)
    run = li.Run(loss, batches, step_size, li.OnIterate(std=noise), li.epochs(2), prox=li.parts.L1(0.3))
    assert li.train(run, (FEATURES, LABELS), seed=3).weights == pytest.approx(x, abs=1e-3)


def test_schedules_of_step_size_noise_and_clip() -> None:
    sizes, noises, clips = [0.5, 0.4, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4], [1.0, 0.5, 0.4, 0.3]
    x = np.zeros(2)
    for step, (_, normal) in enumerate(replayed(li.FullBatch(RECORDS), 4)):
        mean = sum(clipped(gradient(x, record), clips[step]) for record in range(RECORDS)) / RECORDS
        x = x - sizes[step] * mean + noises[step] * normal
    loss = li.losses.logistic(feature_norm=10.0, clip=clips)  # type: ignore[arg-type]
    run = li.Run(loss, li.FullBatch(RECORDS), sizes, li.OnIterate(std=noises), 4)  # type: ignore[arg-type]
    assert li.train(run, (FEATURES, LABELS), seed=3).weights == pytest.approx(x, abs=1e-3)
