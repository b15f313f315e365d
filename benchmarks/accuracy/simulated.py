"""Problems of many spectra, means, sizes and numbers of classes: on these the constants of the estimators were chosen."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.accuracy.datasets import Dataset, unit_rows

TEST_ROWS = 4000
KINDS = ("teacher", "classes", "images", "categories")


def classification(seed: int) -> Dataset:
    """200 to 2,000 records, 5 to 100 features, 2 to 10 classes."""
    source = np.random.default_rng(10_000 + seed)
    records, features = int(10 ** source.uniform(2.3, 3.3)), int(10 ** source.uniform(0.7, 2.0))
    classes, kind = int(source.choice([2, 2, 2, 3, 5, 10])), str(source.choice(KINDS))
    total = records + TEST_ROWS
    if kind == "categories":
        rows = _categories(source, total, max(2, features // 6))
        labels = _taught(source, rows, source.normal(size=(rows.shape[1], classes)), source.uniform(1.5, 4.0))
    else:
        rows, labels = _rotated(source, kind, total, features, classes)
    return _split(f"{kind} {seed}", _bounded(source, rows), labels, records, classes)


def regression(seed: int) -> Dataset:
    """200 to 2,500 records, 3 to 60 features; some with heavy tails."""
    source = np.random.default_rng(50_000 + seed)
    records, features = int(10 ** source.uniform(2.3, 3.4)), int(10 ** source.uniform(0.5, 1.8))
    deviations, turned = _directions(source, features)
    rows = source.normal(size=(records + TEST_ROWS, features)) * deviations
    if source.random() < 0.3:
        rows *= np.exp(0.5 * source.normal(size=(len(rows), 1)))
    rows = rows @ turned.T + source.uniform(0, 2) * np.linalg.norm(deviations) * turned[:, 0]
    scores = rows @ turned @ (source.normal(size=features) * deviations ** -source.uniform(0, 1))
    noise = (
        source.standard_t(4, size=len(rows)) / math.sqrt(2) if source.random() < 0.4 else source.normal(size=len(rows))
    )
    targets = source.uniform(0.4, 3) * (scores - scores.mean()) / scores.std() + noise + source.uniform(-2, 2)
    targets /= np.quantile(np.abs(targets), 0.998)
    return _split(f"regression {seed}", _bounded(source, rows), targets, records, 0)


def _directions(source: np.random.Generator, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations that fade, and a rotation."""
    deviations = np.arange(1, features + 1) ** (-source.uniform(0, 1.5) / 2)
    return deviations, np.linalg.qr(source.normal(size=(features, features)))[0]


def _rotated(
    source: np.random.Generator, kind: str, total: int, features: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    deviations, turned = _directions(source, features)
    rows = source.normal(size=(total, features)) * deviations
    if kind == "classes":
        labels = source.integers(classes, size=total)
        means = source.normal(size=(classes, features)) * deviations ** source.uniform(0, 1) * source.uniform(0.3, 1.2)
        return _moved(source, (rows + means[labels]) @ turned.T, deviations, turned), labels
    rows = rows @ turned.T
    if kind == "images":
        rows = np.maximum(rows + source.uniform(-0.3, 0.3) * deviations.mean(), 0)
    else:
        rows = _moved(source, rows, deviations, turned)
    weights = turned @ (source.normal(size=(features, classes)) * deviations[:, None] ** -source.uniform(0, 1))
    return rows, _taught(source, rows, weights, source.uniform(1.5, 8.0))


def _moved(source: np.random.Generator, rows: np.ndarray, deviations: np.ndarray, turned: np.ndarray) -> np.ndarray:
    place = int(source.integers(len(deviations)))
    return rows + source.uniform(0, 2) * np.linalg.norm(deviations) * turned[:, place]


def _categories(source: np.random.Generator, total: int, blocks: int) -> np.ndarray:
    drawn = [source.choice(6, size=total, p=source.dirichlet(np.full(6, 0.6))) for _ in range(blocks)]
    return np.hstack([np.eye(6)[one] for one in drawn])


def _taught(source: np.random.Generator, rows: np.ndarray, weights: np.ndarray, sharpness: float) -> np.ndarray:
    """Labels drawn from a softmax model of the centred features."""
    scores = rows @ weights
    scores = sharpness * (scores - scores.mean(axis=0)) / scores.std()
    return np.asarray((scores + source.gumbel(size=scores.shape)).argmax(axis=1))


def _bounded(source: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Divided by their own norm, or by a range that is known."""
    if source.random() < 0.6:
        return unit_rows(rows)
    return np.clip(rows / np.quantile(np.abs(rows), 0.999), -1, 1) / math.sqrt(rows.shape[1])


def _split(name: str, rows: np.ndarray, targets: np.ndarray, records: int, classes: int) -> Dataset:
    parts = rows[:records], targets[:records], rows[records:], targets[records:]
    return Dataset(name, *parts, classes=classes)
