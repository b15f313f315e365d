"""The algorithm that Opacus runs on a linear model, written in numpy: the same steps, several times faster, for tuning.

Poisson batches, each record's gradient clipped at `clip`, Gaussian noise on the sum, divided by the expected size of a
batch, heavy ball as in torch. Softmax and cross-entropy for classes; the squared error for regression.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

import lastiterate as li
from benchmarks.accuracy.datasets import Dataset
from benchmarks.accuracy.rows import DELTA, REPLACED

Floats = np.ndarray[Any, np.dtype[Any]]

STABILITY = 1e-6  # Opacus divides by the norm and this


@dataclass(frozen=True)
class Setting:
    """A run of DP-SGD from zero; `batches` are Poisson batches in an epoch, one of them being all records."""

    batches: int
    epochs: int
    learning_rate: float
    clip: float
    momentum: float = 0.0


def is_cut_into(records: int, batches: int) -> bool:
    """Whether a loader has so many batches for some size of a batch: Opacus takes its sampling rate from their number."""
    return -(-records // -(-records // batches)) == batches


@functools.cache
def noise_multiplier(epsilon: float, adjacency: str, batches: int, epochs: int) -> float:
    """The least noise for that ε, over the clip: our accountant's, which is no more than that of Opacus."""
    neighbours, distance = (li.REPLACE_ONE, 2.0) if adjacency == REPLACED else (li.ADD_OR_REMOVE_ONE, 1.0)

    def excess(log_multiplier: float) -> float:
        mu = distance / math.exp(log_multiplier)
        step = li.notions.subsampled_gaussian(mu=mu, inclusion=1 / batches, adjacency=neighbours)
        return float(step.compose(batches * epochs).epsilon(DELTA)) - epsilon

    low, high = -2.0, math.log(10 * distance * math.sqrt(batches * epochs) / min(epsilon, 1.0))
    root = brentq(excess, low, high, xtol=1e-4)
    return math.exp(float(root) + 2e-4)  # on the safe side of the root


def score(data: Dataset, epsilon: float, adjacency: str, setting: Setting, seed: int) -> float:
    """Of the test data: accuracy, or R² for regression."""
    multiplier = noise_multiplier(epsilon, adjacency, setting.batches, setting.epochs)
    weights = trained(data, setting, multiplier, np.random.default_rng(seed))
    return score_of(data, with_bias(data.test_features) @ weights)


def score_of(data: Dataset, scores: Floats) -> float:
    """Accuracy of the class with the highest score, or R² of predicted targets."""
    if data.classes:
        return float(np.mean(scores.argmax(axis=1) == data.test_labels))
    wrong = np.mean((scores[:, 0] - data.test_labels) ** 2)
    return float(1 - wrong / np.var(data.test_labels))


def trained(data: Dataset, setting: Setting, multiplier: float, random: np.random.Generator) -> Floats:
    rows, targets = with_bias(data.train_features), targets_of(data)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    weights = np.zeros((rows.shape[1], targets.shape[1]), np.float32)
    velocity = np.zeros_like(weights)
    size = len(rows) / setting.batches
    for _ in range(setting.batches * setting.epochs):
        chosen = slice(None) if setting.batches == 1 else np.flatnonzero(random.random(len(rows)) < 1 / setting.batches)
        total = clipped_sum(weights, rows[chosen], targets[chosen], norms[chosen], setting.clip, bool(data.classes))
        noise = random.standard_normal(weights.shape, dtype=np.float32)
        velocity = setting.momentum * velocity + (total + multiplier * setting.clip * noise) / np.float32(size)
        weights = weights - setting.learning_rate * velocity
    return weights


def clipped_sum(weights: Floats, rows: Floats, targets: Floats, norms: Floats, clip: float, classes: bool) -> Floats:
    """The sum of the gradients, each of norm at most `clip`: an outer product of a row and its residuals."""
    residuals = _softmax(rows @ weights) - targets if classes else 2 * (rows @ weights - targets)
    lengths = norms * np.linalg.norm(residuals, axis=1, keepdims=True)
    total: Floats = rows.T @ (residuals * np.minimum(1, clip / (lengths + STABILITY)))
    return total


def with_bias(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))]).astype(np.float32)


def targets_of(data: Dataset) -> Floats:
    """One-hot classes, or one column of numbers."""
    if data.classes:
        return np.eye(data.classes, dtype=np.float32)[data.train_labels]
    return np.asarray(data.train_labels, np.float32)[:, None]


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
