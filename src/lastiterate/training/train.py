"""Execute a run exactly as it is described, and return the last iterate with the run: nobody types the noise twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.accounting.forgotten import Removed
from lastiterate.accounting.releases import checked_releases, releases_before
from lastiterate.errors import FINITE, InvalidInput, checked_array, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import length
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import up
from lastiterate.runs.kinds import LOSSES
from lastiterate.runs.losses import Loss
from lastiterate.runs.losses.model import Model
from lastiterate.runs.run import Run, checked_run
from lastiterate.training.checkpoint import Keeper
from lastiterate.training.checkpoint_file import ArraysFile
from lastiterate.training.data import Data, any_data, checked_float_type, linear_data
from lastiterate.training.forget import phases, run_to_forget
from lastiterate.training.go_on import checked_earlier, first_state, without_removed
from lastiterate.training.objectives import EachRecord, LinearModel, Objective, RecordGradients
from lastiterate.training.sources import RecordSource, mapped_pair, on_disk
from lastiterate.training.state import Training
from lastiterate.training.streamed import streamed_data, unchecked_data
from lastiterate.training.trained import EXECUTED, OF_LINEAR_MODELS, Trained
from lastiterate.training.walk import walked


def train(
    run: Run,
    data: tuple[Any, Any] | RecordSource,
    *,
    loss: RecordGradients | None = None,
    start: Any = None,
    classes: int | None = None,
    releases: Iterable[int] = (),
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
    seed: int | None = None,
    dtype: Any = None,
    forget: Removed | None = None,
    trained: Trained | None = None,
) -> Trained:
    """Execute a run on `data`, a pair of features and targets, and return the last iterate and nothing else.

    Linear models are trained by the loss of the run. For any other model pass `loss`, a function of (weights, features,
    targets) that returns one gradient per record, and `start`. Logistic and hinge losses take targets −1 and 1, or 0, 1, …
    for several classes; a softmax loss needs `classes`. `start` must not depend on the data; it defaults to 0 and is
    projected onto the domain. The iterates after the steps in `releases` are returned too; the report then covers them as
    well. With `checkpoint`, a file, a training that was killed continues where it stopped. `seed` is for tests only: a
    seeded model is not private. Products are computed in `dtype`, by default that of the features; the sensitivity includes
    what rounding adds. Features in a numpy.memmap, `li.training.ParquetRecords` and any other `RecordSource` are read in
    pieces and never loaded as a whole; they must not change during training.

    `forget`, such as li.forget(run, epsilon=1, delta=1e-5).of([17]), continues without these records, after training on all,
    for the number of steps in that plan; the returned model has forgotten them. With `trained`, a model that `li.train`
    returned earlier, training continues from there; the plan must be for adaptive requests, because that model is known.
    """
    checked_run(run)
    if forget is not None or trained is not None:
        releases = checked_releases(releases)
        run = run_to_forget(run, forget, loss, checkpoint, releases)
    earlier = checked_earlier(trained, forget, start, releases)
    objective = _objective(run, data, loss, classes, dtype, checkpoint is not None)
    weights = _start(run, objective, start)
    arithmetic = run.arithmetic.and_also(objective.arithmetic(run, weights.size))
    run = replace(run, arithmetic=arithmetic, start_norm=_start_norm(run, weights))
    places = releases_before(run.steps, releases)
    source = Source(seed)
    training = Training(run, objective.data, weights, places, seed, loss, classes, objective.precision)
    with Keeper(checkpoint, checkpoint_every, ArraysFile(training)) as keeper:
        state = keeper.found(first_state(earlier, run, weights, source))
        held = objective
        for until, rest in phases(forget, data, state.step):
            state = walked(run, held, state, source, places, until=until)
            held = _objective(run, rest, loss, classes, dtype)
        state = walked(run, held, state, source, places, keeper)
        keeper.remove()
    released = {place: one.astype(objective.precision) for place, one in zip(places, state.released, strict=True)}
    last = state.weights.astype(objective.precision)
    enforced = (
        *EXECUTED,
        *(OF_LINEAR_MODELS if isinstance(objective, LinearModel) else ()),
        *(("start_independent",) if start is None and trained is None else ()),
    )
    done = Trained(last, run, released, source.private, objective.data.shortened, enforced=enforced)
    return done if forget is None else without_removed(done, forget, earlier)


def _objective(
    run: Run, data: Any, loss: Any, classes: int | None, dtype: Any, fingerprinted: bool = False
) -> Objective:
    records = run.batches.records
    if loss is not None:
        if not callable(loss):
            raise must_be("loss", "a function of weights, features and targets", f"{shown(loss):.60}")
        bounds = run.loss.gradient_bound, run.loss.gradient_sensitivity
        given = unchecked_data(data, records) if isinstance(data, RecordSource) else any_data(data, records)
        return EachRecord(loss, given, *bounds)
    model = _model(run.loss, classes)
    held = _linear(run, model, data, dtype, fingerprinted)
    return LinearModel(model, held, run.loss.gradient_bound, run.batches.random)


def _linear(run: Run, model: Model, data: Any, dtype: Any, fingerprinted: bool) -> Data:
    """Records that lie on disk stay there."""
    about = run.batches.records, run.loss.feature_norm, checked_float_type(dtype)
    if isinstance(data, tuple | list) and len(data) == 2 and on_disk(data[0]):
        return streamed_data(mapped_pair(*data), *about, model.check_targets, fingerprinted)
    if isinstance(data, RecordSource):
        return streamed_data(data, *about, model.check_targets, fingerprinted)
    held = linear_data(data, *about)
    model.check_targets(held.records.targets)
    return held


def _model(loss: Loss, classes: int | None) -> Model:
    if loss.model is None:
        known = [kind.name for kind in LOSSES if kind.example.linear]
        raise InvalidInput("loss_not_given", field="loss", kind=loss.kind, known=known)
    return loss.model.with_classes(classes)


def _check_dimension(run: Run, parameters: int) -> None:
    declared = run.domain.dimension
    if declared is not None and declared != parameters:
        raise InvalidInput("domain_dimension", got=f"{declared}", weights=parameters)


def _start_norm(run: Run, weights: Floats) -> float:
    """Which matters only where weights decay."""
    return max(run.start_norm, up(length(weights))) if run.decay else run.start_norm


def _start(run: Run, objective: Objective, start: Any) -> Floats:
    """In the domain: the facts of a loss hold there only."""
    shape = objective.shape if isinstance(objective, LinearModel) else None
    if start is None and shape is None:
        raise InvalidInput("start_not_given", field="start")
    weights = np.zeros(shape or ()) if start is None else checked_array("start", start, FINITE)
    if shape is not None and weights.shape != shape:
        raise InvalidInput("start_shape", field="start", got=f"{weights.shape}", shape=shape)
    _check_dimension(run, weights.size)
    return run.domain.projected(weights)
