"""Execute a run exactly as it is described, and return the last iterate with the run: nobody types the noise twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.certificate.claims import checked_releases, releases_before
from lastiterate.display import alerts, card, folded, headline, lines, summary, table
from lastiterate.errors import FINITE, InvalidInput, Unavailable, checked_array, must_be, shown, worded
from lastiterate.facts import Basis, Fact, fact
from lastiterate.forgetting.forget import Forgetting, Removed, forgetting_of
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import length
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import up
from lastiterate.runs.kinds import LOSSES
from lastiterate.runs.losses import Loss
from lastiterate.runs.losses.loss import Model
from lastiterate.runs.noise import EXACT
from lastiterate.runs.run import Run, checked_run, run_rows
from lastiterate.training.checkpoint import ArraysFile, Keeper, State, Training
from lastiterate.training.data import (
    Data,
    RecordSource,
    any_data,
    checked_float_type,
    linear_data,
    mapped_pair,
    on_disk,
    pair_of,
)
from lastiterate.training.objectives import EachRecord, LinearModel, Objective, RecordGradients
from lastiterate.training.steps import take_steps
from lastiterate.training.streamed import streamed_data, unchecked_data


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
            state = take_steps(run, held, state, source, places, until=until)
            held = _objective(run, rest, loss, classes, dtype)
        state = take_steps(run, held, state, source, places, keeper)
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
    """Return checked data for a linear model; records on disk stay there."""
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
    """Bound on the norm of the start; it matters only if weights decay."""
    return max(run.start_norm, up(length(weights))) if run.decay else run.start_norm


def _start(run: Run, objective: Objective, start: Any) -> Floats:
    """Return the start, projected onto the domain, where alone the facts of a loss hold."""
    shape = objective.shape if isinstance(objective, LinearModel) else None
    if start is None and shape is None:
        raise InvalidInput("start_not_given", field="start")
    weights = np.zeros(shape or ()) if start is None else checked_array("start", start, FINITE)
    if shape is not None and weights.shape != shape:
        raise InvalidInput("start_shape", field="start", got=f"{weights.shape}", shape=shape)
    _check_dimension(run, weights.size)
    return run.domain.projected(weights)


# Trained models.


EXECUTED = (
    *("batches", "smaller_batch_divisor", "batches_not_adaptive", "noise", "clipped", "projected", "l2_in_full"),
    *("start_norm", "optimizer_sees_noisy_gradients"),
)
"""The codes of assumptions that `li.train` stands for, whatever the gradients."""
OF_LINEAR_MODELS = (
    *("feature_norm", "pull_limit", "gradient_change", "gradient_norm", "gradients_bounded_everywhere"),
    *("record_unchanged", "no_batch_statistics"),
)
"""Those that it stands for where it computes the gradients itself, on rows that it shortens to the feature norm."""
SEEDED = fact("noise_seeded", generator="lastiterate")


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model: `weights` is the last iterate, `run` the run that was executed, including its arithmetic.

    `private` is False if the noise came from a seed. `released` holds the checkpoints in `releases`, by step. `shortened` is
    the number of rows longer than the run's `feature_norm`; it was computed from the data and is not private. After
    forgetting, `forgotten` is the guarantee for the `removed` records, and the report covers the remaining ones. `enforced`:
    the codes of assumptions that this execution stands for.
    """

    weights: Floats
    run: Run
    released: dict[int, Floats]
    private: bool
    shortened: int
    forgotten: Forgetting | None = None
    removed: tuple[int, ...] = ()
    enforced: tuple[str, ...] = EXECUTED

    def __repr__(self) -> str:
        return summary(self, *map(str, self._caveats), f"weights of shape {self.weights.shape}", repr(self.run))

    def _repr_html_(self) -> str:
        size, shape = self.weights.size, self.weights.shape
        count = worded("trained_weights", size=size, shape=shape, steps=self.run.steps)
        released = [worded("trained_released", steps=[*self.released])] if self.released else []
        parts = lines(released), folded("Run", table(run_rows(self.run)))
        return card(alerts(map(str, self._caveats)), headline(count), *parts)

    @property
    def _caveats(self) -> tuple[Fact, ...]:
        return () if self.private else (SEEDED,)

    def report(self, delta: float) -> Report:
        """The privacy report of this training, including all released checkpoints."""
        return report_of(self.run, delta, self.released, self._caveats, self.enforced)


def report_of(
    run: Run, delta: float, releases: Iterable[int], caveats: tuple[Fact, ...], enforced: Iterable[str] = EXECUTED
) -> Report:
    """Return the account of an execution with its caveats and with what it enforced."""
    basis = tuple((code, Basis.ENFORCED) for code in enforced if code != "noise" or not caveats)
    return replace(account(run, delta, releases), caveats=caveats, basis=basis)


# Training that continues without records that are to be forgotten.


def run_to_forget(run: Run, forget: Any, loss: Any, checkpoint: Any, releases: Iterable[int]) -> Run:
    """Return training and further steps as one run, or raise an error if it cannot be executed."""
    if not isinstance(forget, Removed):
        raise InvalidInput("not_removed_records", field="forget", got=f"{shown(forget):.60}")
    if forget.plan.run != run:
        raise must_be("forget", "planned for this very run", "a plan for another one")
    if run.adjacency.replaces:
        raise InvalidInput("forget_not_zero_out", field="adjacency", got="li.REPLACE_ONE")
    if loss is not None or checkpoint is not None:
        raise Unavailable("forget_not_with", field="forget", argument="checkpoint" if loss is None else "loss")
    if not _allowed(forget.plan, set(releases)):
        planned = list(forget.plan.releases)
        raise InvalidInput(
            "releases_not_planned", field="releases", got=f"{shown(list(releases)):.60}", planned=planned
        )
    return forget.plan.whole


def _allowed(plan: Forgetting, releases: set[int]) -> bool:
    """Whether these releases are planned; with adaptive requests, only those while a request is served are not."""
    if not plan.adaptive:
        return releases <= set(plan.releases)
    ends = plan.requests.ends(plan.run.steps)
    return all(place <= plan.run.steps or place in ends for place in releases)


def phases(forget: Removed | None, data: Any, begun: int) -> Iterator[tuple[int, Any]]:
    """Yield, from this step on, the steps after which the data change, with the data from there on."""
    if forget is None:
        return
    done = forget.plan.run.steps
    for request, steps in enumerate(forget.plan.further, 1):
        if done >= begun:
            yield done, _without(data, forget.until(request))
        done += steps


def _without(data: Any, records: tuple[int, ...]) -> tuple[Any, Any]:
    """Return data with these rows set to 0, where a linear model's gradient is 0 and others keep their places."""
    if isinstance(data, RecordSource) or on_disk(pair_of(data)[0]):
        raise Unavailable("forget_on_disk", field="data")
    features, targets = pair_of(data)
    kept = np.array(features)
    kept[list(records)] = 0
    return kept, targets


def as_forgotten(plan: Forgetting, executed: Run, caveats: tuple[Fact, ...]) -> Forgetting:
    """Return the plan to forget with what is proved of the executed steps, rounding included."""
    run = replace(plan.run, arithmetic=executed.arithmetic, start_norm=executed.start_norm)
    return forgetting_of(run, plan.target, plan.delta, plan.requests, caveats)


# Forgetting in an earlier model, which is known, so that its plan is for adaptive requests.


def checked_earlier(trained: Any, forget: Removed | None, start: Any, releases: Iterable[int]) -> Trained | None:
    """Return the earlier model, which must be that of the planned run before one of its requests; None without."""
    if trained is None:
        return None
    if not isinstance(trained, Trained):
        raise must_be("trained", "a model that li.train returned", f"{shown(trained):.60}")
    if forget is None or not forget.plan.adaptive:
        raise InvalidInput("trained_not_adaptive", field="trained")
    if start is not None:
        raise InvalidInput("start_with_trained", field="start")
    _check_run(trained, forget.plan)
    _check_records(trained, forget)
    if any(place <= trained.run.steps for place in releases):
        steps, got = trained.run.steps, f"{shown(list(releases)):.60}"
        raise InvalidInput("releases_before_trained", field="releases", got=got, steps=steps)
    return trained


def _check_run(trained: Trained, plan: Forgetting) -> None:
    more = trained.run.steps - plan.run.steps
    if trained.run.steps not in _begins(plan) or _settings(trained.run) != _settings(plan.run.continued(more)):
        raise InvalidInput("trained_of_another_run", field="trained")


def _check_records(trained: Trained, forget: Removed) -> None:
    gone = forget.until(_begins(forget.plan).index(trained.run.steps))
    if set(trained.removed) != set(gone):
        raise InvalidInput("forgotten_not_named", field="forget", got=f"{list(gone)}", forgotten=list(trained.removed))


def _begins(plan: Forgetting) -> tuple[int, ...]:
    """Return the steps after which the requests come."""
    return (plan.run.steps, *plan.requests.ends(plan.run.steps)[:-1])


def _settings(run: Run) -> Run:
    """Return a run without what its execution added."""
    return replace(run, arithmetic=EXACT, start_norm=0.0)


def first_state(earlier: Trained | None, run: Run, start: Floats, source: Source) -> State:
    """Return the state in which a training begins or continues; a released model is projected again."""
    if earlier is None:
        return State(0, start, randomness=source.state())
    if earlier.weights.shape != start.shape:
        raise InvalidInput("trained_shape", field="trained", got=f"{earlier.weights.shape}", shape=start.shape)
    weights = run.domain.projected(np.asarray(earlier.weights, np.float64))
    return State(earlier.run.steps, weights, randomness=source.state())


def without_removed(done: Trained, forget: Removed, earlier: Trained | None) -> Trained:
    """Return the training with what is proved of the removed records; an earlier model counts as released."""
    run, released, private = done.run, done.released, done.private
    if earlier is not None:
        arithmetic = run.arithmetic.then(earlier.run.arithmetic)
        run = replace(run, arithmetic=arithmetic, start_norm=max(run.start_norm, earlier.run.start_norm))
        released = {**earlier.released, earlier.run.steps: earlier.weights, **released}
        private = private and earlier.private
    forgotten = as_forgotten(forget.plan, run, () if private else (SEEDED,))
    return replace(done, run=run, released=released, private=private, forgotten=forgotten, removed=forget.every)
