"""Bok et al. 2024, §4.4 and D.2, on real MNIST: NoisyCGD and NoisySGD as printed, and a sound run at the same ε.

As printed, ε does not hold: the gradient of the softmax is clipped as one vector, which keeps no convexity (errata E4.1).
The sound run bounds the features instead: unit rows, an unclipped softmax, and noise that is calibrated to ε.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lastiterate.accounting.calibrate import calibrate
from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats
from lastiterate.progress import tracked
from lastiterate.reproduction.bok2024_mnist import DELTA, FEATURE_NORM, NOISE, SHUFFLED, executed
from lastiterate.runs import losses
from lastiterate.runs.noise import OnMeanGradient
from lastiterate.runs.per_step import epochs
from lastiterate.runs.run import Run
from lastiterate.training.train import train

CLASSES = 10
# Public settings of the sound run: unit rows have smoothness 1/2, so that step sizes below 4 bring iterates together.
SOUND_STEP_SIZE, SOUND_L2 = 3.9, 1e-6

_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_HEAD = {"images": 16, "labels": 8}


@dataclass(frozen=True, eq=False)
class Images:
    """Rows of 784 grey levels in single precision, and digits."""

    train_features: Floats
    train_labels: Floats
    test_features: Floats
    test_labels: Floats

    def with_norm(self, norm: float, constant: float = 0.0, longer_only: bool = True) -> Images:
        """Rows that are longer than `norm` (or all) get it; a constant feature is added, if any."""
        train, test = (_scaled(rows, norm, constant, longer_only) for rows in (self.train_features, self.test_features))
        return Images(train, self.train_labels, test, self.test_labels)


@dataclass(frozen=True)
class Accuracies:
    """In percent, one entry for each run."""

    train: tuple[float, ...]
    test: tuple[float, ...]


def read_images(folder: str | Path) -> Images:
    """The four files of MNIST, packed by gzip or not."""
    parts = [_read(Path(folder), name) for name in _FILES]
    train, test = (part.reshape(-1, 784).astype(np.float32) / np.float32(255) for part in parts[::2])
    return Images(train, parts[1], test, parts[3])


def check_folder(folder: Path) -> None:
    """Before hours of other work."""
    missing = [name for name in _FILES if not (folder / f"{name}.gz").exists() and not (folder / name).exists()]
    if missing:
        raise InvalidInput(
            f"{folder} must hold the four files of MNIST, packed by gzip or not. It lacks {', '.join(missing)}."
        )


def sound(passes: int, epsilon: float) -> Run:
    """As many epochs on unit rows, at most this ε, by a proof that holds."""
    loss = losses.softmax(feature_norm=1.0, l2=SOUND_L2)
    plan = Run(loss, SHUFFLED, SOUND_STEP_SIZE, OnMeanGradient(std=NOISE), epochs(passes))
    return calibrate(plan, epsilon=epsilon, delta=DELTA)


def accuracies_as_printed(images: Images, passes: int, l2: float, runs: int) -> Accuracies:
    """Features are clipped at norm 8, and an intercept is learnt."""
    return _accuracies(executed(l2, passes), images.with_norm(FEATURE_NORM, constant=1.0), runs)


def accuracies_when_sound(images: Images, passes: int, epsilon: float, runs: int) -> Accuracies:
    return _accuracies(sound(passes, epsilon), images.with_norm(1.0, longer_only=False), runs)


def _accuracies(run: Run, images: Images, runs: int) -> Accuracies:
    data = (images.train_features, images.train_labels)
    found = [train(run, data, classes=CLASSES, seed=seed).weights for seed in tracked(range(runs), "trainings")]
    return Accuracies(
        tuple(accuracy(weights, images.train_features, images.train_labels) for weights in found),
        tuple(accuracy(weights, images.test_features, images.test_labels) for weights in found),
    )


def accuracy(weights: Floats, features: Floats, labels: Floats) -> float:
    """In percent."""
    return 100 * float(np.mean((features @ weights).argmax(axis=1) == labels))


def _scaled(rows: Floats, norm: float, constant: float, longer_only: bool) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled = rows * (norm / (np.maximum(lengths, norm) if longer_only else np.maximum(lengths, 1e-12)))
    return np.hstack([scaled, np.full((len(rows), 1), constant, np.float32)]) if constant else scaled


def _read(folder: Path, name: str) -> np.ndarray:
    head = _HEAD["images" if "images" in name else "labels"]
    packed, plain = folder / f"{name}.gz", folder / name
    try:
        content = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{folder} must hold the four files of MNIST. {plain.name} cannot be read.") from error
    return np.frombuffer(content, np.uint8, offset=head)
