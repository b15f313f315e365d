"""Execute a run exactly as it is described, and return the last iterate with the run: nobody types the noise twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.algorithms.batches import PoissonMean
from lastiterate.algorithms.per_step import spread
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.errors import FINITE, InvalidInput, checked_array
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.progress import tracked
from lastiterate.training.data import Data, prepared
from lastiterate.training.models import Model, model_of
from lastiterate.training.samplers import Indices, batches_of
from lastiterate.training.steps import projected, proximal

GradientSum = Callable[[Floats, Indices], Floats]

_CHUNKS = 200


@dataclass(frozen=True, eq=False)
class Trained:
    """The last iterate, and the run that made it. `private` is False if the noise came from a seed.

    `shortened` rows were longer than the run declares; that number was computed from the data, and is not private.
    """

    weights: Floats
    run: Run
    private: bool
    shortened: int


def train(
    run: Run,
    data: tuple[Any, Any],
    *,
    start: Any = None,
    classes: int | None = None,
    seed: int | None = None,
    dtype: Any = np.float64,
) -> Trained:
    """Noisy gradient descent on features and targets, every step as the run says; only the last iterate is kept.

    `start` must not depend on the data; it is 0 by default. With a softmax loss, `classes` says how many there are. Targets
    of logistic and hinge losses are −1 and 1.
    """
    checked_run(run)
    model, source = model_of(run.loss), Source(seed)
    held = prepared(*_pair(data), run.batches.records, run.loss.arguments.get("feature_norm"), dtype)
    _check_targets(run, held, classes)
    shape = (held.features.shape[1],) if run.loss.kind != "softmax" else (held.features.shape[1], int(classes or 0))
    weights = np.zeros(shape, dtype) if start is None else np.array(checked_array("start", start, FINITE), dtype)
    if weights.shape != shape:
        raise InvalidInput(f"start must have shape {shape}. Got {weights.shape}.")
    return Trained(_executed(run, model, held, weights, source), run, source.private, held.shortened)


def _executed(run: Run, model: Model, data: Data, weights: Floats, source: Source) -> Floats:
    sizes = spread("step_size", run.step_size, run.steps)
    clips = None if run.clip is None else spread("clip", run.clip, run.steps)
    noises = run.noise.on_iterate(sizes, run.batches.divisor)
    decay = run.loss.l2 + run.weight_decay
    batches = batches_of(run.batches, run.steps, source)
    every = -(-run.steps // _CHUNKS)
    for first in tracked(range(0, run.steps, every), "steps"):
        for step in range(first, min(first + every, run.steps)):
            chosen, size = next(batches), float(sizes[step])
            rows, targets = data.features[chosen], data.targets[chosen]
            total = model.gradient_sum(
                weights, rows, targets, data.norms[chosen], None if clips is None else float(clips[step])
            )
            mean = total / _divisor(run, len(rows))
            noise = np.asarray(float(noises[step]) * source.normal(weights.shape), weights.dtype)
            moved = (1 - size * decay) * weights - size * mean + noise
            weights = projected(run.domain, proximal(run.prox, moved, size)).astype(weights.dtype, copy=False)
    return weights


def _divisor(run: Run, present: int) -> float:
    """A constant; or, for means over the actual batch, its size, and an empty batch moves nothing."""
    return float(max(present, 1)) if isinstance(run.batches, PoissonMean) else run.batches.divisor


def _pair(data: Any) -> tuple[Any, Any]:
    try:
        features, targets = data
    except (TypeError, ValueError) as error:
        raise InvalidInput("data must be a pair, features and targets.") from error
    return features, targets


def _check_targets(run: Run, data: Data, classes: int | None) -> None:
    if run.loss.kind in ("logistic", "smooth_hinge") and not np.isin(data.targets, (-1, 1)).all():
        raise InvalidInput(f"targets of a {run.loss.kind} loss must be -1 or 1.")
    if run.loss.kind == "softmax":
        if classes is None:
            raise InvalidInput(
                "a softmax loss needs classes=, the number of classes: to count them would look at the data."
            )
        whole = data.targets == np.floor(data.targets)
        if not (whole & (data.targets >= 0) & (data.targets < classes)).all():
            raise InvalidInput(f"targets of a softmax loss must be 0 to {classes - 1}.")
