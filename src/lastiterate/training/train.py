"""Execute a run exactly as it is described, and return the last iterate with the run: nobody types the noise twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.accounting.account import account
from lastiterate.accounting.releases import checked_releases
from lastiterate.accounting.report import Report
from lastiterate.algorithms.batches import PoissonMean
from lastiterate.algorithms.per_step import spread
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.errors import FINITE, InvalidInput, checked_array
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.progress import tracked
from lastiterate.training.checkpoint import Keeper
from lastiterate.training.data import any_data, linear_data
from lastiterate.training.models import model_of
from lastiterate.training.objectives import EachRecord, LinearModel, Objective, RecordGradients
from lastiterate.training.samplers import Sampler
from lastiterate.training.state import State, Training
from lastiterate.training.steps import projected, proximal, rounded

SEEDED = "DO NOT RELEASE: the noise came from a seed, so whoever knows the seed can take it off"

_CHUNKS = 200


@dataclass(frozen=True, eq=False)
class Trained:
    """The last iterate, and the run that made it. `private` is False if the noise came from a seed.

    `released` are the iterates after so many steps that were asked for. `shortened` rows were longer than the run declares;
    that number was computed from the data, and is not private.
    """

    weights: Floats
    run: Run
    released: dict[int, Floats]
    private: bool
    shortened: int

    def report(self, delta: float) -> Report:
        """The account of what was run and of all that was released."""
        return report_of(self.run, delta, self.released, self.private)


def report_of(run: Run, delta: float, releases: Iterable[int], private: bool) -> Report:
    """The account, and what is wrong with this execution."""
    found = account(run, delta, releases)
    return found if private else replace(found, caveats=(SEEDED,))


def train(
    run: Run,
    data: tuple[Any, Any],
    *,
    loss: RecordGradients | None = None,
    start: Any = None,
    classes: int | None = None,
    releases: Iterable[int] = (),
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
    seed: int | None = None,
    dtype: Any = None,
) -> Trained:
    """Noisy gradient descent on features and targets, every step as the run says; only the last iterate leaves.

    Linear models are known by the run's own loss; for any other give `loss`, which returns the gradient of each record at
    (weights, features, targets), and `start`. Targets of logistic and hinge losses are −1 and 1, of several classes 0, 1, …;
    a softmax loss needs `classes`. `start` must not depend on the data; it is 0 by default. The iterates after `releases`
    steps are returned as well, and cost what `account` says. With `checkpoint`, a file, a training that was killed goes on
    where it was. `seed` is for tests. Products are computed in `dtype`, by default in that of the features.
    """
    checked_run(run)
    objective = _objective(run, data, loss, classes, dtype)
    weights = _start(objective, start)
    _check_dimension(run, weights.size)
    places = _places(run, releases)
    source = Source(seed)
    training = Training(run, objective.data, weights, places, seed, loss, classes, objective.precision)
    with Keeper(checkpoint, checkpoint_every, training) as keeper:
        start_state = keeper.found(State(0, weights, randomness=source.state()))
        state = _walked(run, objective, start_state, source, places, keeper)
        _check_end(state)
        keeper.remove()
    released = {place: one.astype(objective.precision) for place, one in zip(places, state.released, strict=True)}
    last = state.weights.astype(objective.precision)
    return Trained(last, run, released, source.private, objective.data.shortened)


def _objective(run: Run, data: Any, loss: Any, classes: int | None, dtype: Any) -> Objective:
    if loss is not None:
        if not callable(loss):
            raise InvalidInput(f"loss must be a function of weights, features and targets. Got {loss!r:.60}.")
        return EachRecord(loss, any_data(data, run.batches.records), run.loss.gradient_bound)
    model = model_of(run.loss, classes)
    held = linear_data(data, run.batches.records, run.loss.arguments.get("feature_norm"), _float(dtype))
    model.check_targets(held.records.targets)
    return LinearModel(model, held)


def _float(dtype: Any) -> Any:
    try:
        kind = None if dtype is None else np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (None, np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidInput(f"dtype must be numpy.float32 or numpy.float64. Got {dtype!r}.")
    return kind


def _check_dimension(run: Run, parameters: int) -> None:
    declared = run.domain.dimension
    if declared is not None and declared != parameters:
        raise InvalidInput(f"the run's domain has dimension {declared}, but there are {parameters} weights.")


def _check_end(state: State) -> None:
    if not all(np.isfinite(one).all() for one in (state.weights, *state.released)):
        raise InvalidInput("the iterates left the range of numbers: the step size or the l2 term is far too large.")


def _start(objective: Objective, start: Any) -> Floats:
    shape = objective.shape if isinstance(objective, LinearModel) else None
    if start is None:
        if shape is None:
            raise InvalidInput("start must be given with a loss of your own: it says what the weights look like.")
        return np.zeros(shape)
    weights = checked_array("start", start, FINITE)
    if shape is not None and weights.shape != shape:
        raise InvalidInput(f"start must have shape {shape}. Got {weights.shape}.")
    return weights


def _places(run: Run, releases: Iterable[int]) -> tuple[int, ...]:
    places = checked_releases(releases)
    if places and places[-1] > run.steps:
        raise InvalidInput(f"releases must be at most steps = {run.steps}. Got {places[-1]}.")
    return tuple(place for place in places if place < run.steps)


def _walked(
    run: Run, objective: Objective, state: State, source: Source, releases: tuple[int, ...], keeper: Keeper
) -> State:
    step_of = _Step(run, objective, source)
    source.go_on(state.randomness)
    sampler = Sampler(run.batches, source, state.order)
    weights, released = state.weights, list(state.released)
    every = -(-run.steps // _CHUNKS)
    for first in tracked(range(state.step, run.steps, every), "steps"):
        for step in range(first, min(first + every, run.steps)):
            seen = step + 1 == run.steps or step + 1 in releases
            weights = step_of(step, weights, objective.data.records[sampler.batch(step)], seen)
            if step + 1 in releases:
                released.append(weights)
            if keeper.due():
                keeper.keep(State(step + 1, weights, tuple(released), sampler.order, source.state()))
    return State(run.steps, weights, tuple(released))


class _Step:
    """x ← Π(prox((1 − step_size·decay)·x − step_size·(mean gradient) + noise)), with the numbers of each step at hand."""

    def __init__(self, run: Run, objective: Objective, source: Source) -> None:
        self.run, self.objective, self.source = run, objective, source
        self.sizes = spread("step_size", run.step_size, run.steps)
        self.clips = None if run.clip is None else spread("clip", run.clip, run.steps)
        self.noises = run.noise.on_iterate(self.sizes, run.batches.divisor)
        self.decay = run.loss.l2 + run.weight_decay

    def __call__(self, step: int, weights: Floats, records: Any, seen: bool) -> Floats:
        size, noise = float(self.sizes[step]), float(self.noises[step])
        clip = None if self.clips is None else float(self.clips[step])
        total = self.objective.gradient_sum(weights, records, clip)
        moved = (1 - size * self.decay) * weights - (size / self._divisor(len(records))) * total
        if seen:
            moved = rounded(moved + noise * self.source.normal(weights.shape), noise)
        else:
            moved += noise * self.source.hidden_normal(weights.shape)
        return projected(self.run.domain, proximal(self.run.prox, moved, size))

    def _divisor(self, present: int) -> float:
        """A constant; or, for means over the actual batch, its size, and an empty batch moves nothing."""
        return float(max(present, 1)) if isinstance(self.run.batches, PoissonMean) else self.run.batches.divisor
