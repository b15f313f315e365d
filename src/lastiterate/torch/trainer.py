"""Train a PyTorch model as a run says, and release the last iterate alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, SequentialSampler

from lastiterate.accounting.calibrate import NOISE, Free, calibrate
from lastiterate.certificate.claims import releases_before
from lastiterate.errors import InvalidInput
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.rounding import up
from lastiterate.progress import tracked
from lastiterate.runs.batches import Turns
from lastiterate.runs.files import run_to_dict
from lastiterate.runs.run import Run, checked_run
from lastiterate.torch.checkpoint import (
    NetworkFile,
    NetworkState,
    Releases,
    can_be,
    data_identity,
    restored_on_failure,
    training_identity,
)
from lastiterate.torch.distributed import team_of
from lastiterate.torch.network import Network, pair_of
from lastiterate.torch.objective import Batch, NetworkObjective
from lastiterate.torch.recording import TrainedModel
from lastiterate.torch.sampling import BatchSampler, OrNone, check_collate, check_dataset
from lastiterate.torch.steps import check_optimizer, check_rate, count_step, optimizer_for, step_of, with_groups
from lastiterate.torch.team import ALONE, Facts, Team
from lastiterate.training.checkpoint import Keeper
from lastiterate.training.plans.planning import PlannedRun

_CHUNKS = 200
_AHEAD = 2  # lists that each worker asks for before they are needed


class PrivateTrainer:
    """`PrivateTrainer(model, loss, run, dataset).fit()` executes the run and returns the trained model with its report.

    `run` can also be a plan from `li.plan`.

    `loss` is a function of outputs and targets such as torch.nn.functional.cross_entropy; a mean or sum over records is
    undone, because each record's gradient is clipped separately. `dataset` is a PyTorch data set with a length, of pairs of
    inputs and targets or of dicts with "labels". All parameters that require gradients are trained, on their device.

    With `epsilon` and `delta`, the noise is calibrated first; with `free="steps"`, the number of steps instead. The
    parameters after the steps in `releases` are returned and accounted for, too. Pass `optimizer` from torch.optim if the
    run names one other than SGD and Adam, or if a `scheduler` sets its learning rate; both must match the run. `at_once` is
    the number of records per forward pass; `autocast` is a type such as torch.bfloat16. `seed` is for tests only: a seeded
    model is not private. If torch.distributed is initialised, its processes train together, each on its share of every
    batch.
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[..., Any],
        run: Run | PlannedRun,
        dataset: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        free: Free | str = NOISE,
        releases: Iterable[int] = (),
        optimizer: Any = None,
        scheduler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        at_once: int | None = None,
        autocast: Any = None,
        seed: int | None = None,
        team: Team | None = None,
    ) -> None:
        described = run.run if isinstance(run, PlannedRun) else run
        self.team, releases = team_of() if team is None else team, tuple(releases)
        alike = {"seed": seed, "budget": (epsilon, delta, free)}
        self.network = self.team.join(
            lambda: _begun(Network(model, loss, autocast), described, dataset, collate_fn, alike)
        )
        self.source, self.dataset = Source(seed), dataset
        self.scheduler, self.num_workers, self.collate_fn, self.at_once = scheduler, num_workers, collate_fn, at_once
        planned = with_groups(described, optimizer)
        self.run = self.team.lead(lambda: self._executed(planned, epsilon, delta, free, releases))
        self.places = releases_before(self.run.steps, releases)
        self.objective = NetworkObjective(self.network, self.run, at_once, self.team)
        self.optimizer = optimizer_for(self.run, self.network) if optimizer is None else optimizer
        if optimizer is not None:
            check_optimizer(optimizer, self.run, self.network)
        self.rates_by_run = optimizer is None
        self.releases = Releases()
        self._trained = False

    def fit(self, checkpoint: str | Path | None = None, checkpoint_every: float = 30.0) -> TrainedModel:
        """Train all steps. With `checkpoint`, a file, a training that was killed continues where it stopped."""
        if self._trained:
            raise InvalidInput("fit_again", field="model")
        path = checkpoint if self.team.leads else None
        file = NetworkFile(
            self._identity(),
            self.network.device,
            partial(can_be, self.run, self.places, self.network.size),
            partial(data_identity, self.dataset),
        )
        with (
            restored_on_failure(self.network, self.optimizer, self.scheduler),
            self.team.together(self._facts()),
            Keeper(path, checkpoint_every, file) as keeper,
        ):
            weights, released = self._take_steps(self._begun_from(keeper), keeper)
            self.team.finish(keeper.remove)
        self.network.put(weights)
        self._trained = True
        parts = {place: self.network.named(one) for place, one in zip(self.places, released, strict=True)}
        return TrainedModel(
            self.network.module, self.run, parts, self.source.private, self.releases, self.network.assumed
        )

    def _identity(self) -> str:
        """Identity of the training, which a checkpoint must have to continue it."""
        records, seed = len(self.dataset), self.source.seed
        return training_identity(self.run, self.places, self.network, records, self.optimizer, seed)

    def _begun_from(self, keeper: Keeper) -> NetworkState:
        """Return the start, or the state that a killed training has left."""
        start = NetworkState(0, start_of(self.run, self.objective), randomness=self.source.state())
        return self.team.agree(keeper.found(start))

    def _executed(
        self, run: Run, epsilon: float | None, delta: float | None, free: Free | str, releases: Iterable[int]
    ) -> Run:
        """Return the run with the arithmetic of this training, calibrated if a target is given."""
        run = prepared(run, self.network, self.at_once, self.team)
        if (epsilon is None) != (delta is None):
            raise InvalidInput("epsilon_without_delta", field="epsilon")
        if epsilon is None or delta is None:
            return run
        return calibrate(run, epsilon=epsilon, delta=delta, free=free, most_steps=run.steps, releases=releases)

    def _take_steps(self, state: NetworkState, keeper: Keeper) -> tuple[Any, list[Any]]:
        if state.optimizer:
            self.optimizer.load_state_dict(state.optimizer)
        if state.scheduler and self.scheduler is not None:
            self.scheduler.load_state_dict(state.scheduler)
        step_taken = step_of(self.run, self.objective, self.source, state, self.optimizer)
        self.source.go_on(state.randomness)
        sampler = BatchSampler(
            self.run,
            source=self.source,
            begin=state.step,
            order=state.order,
            at_once=self.at_once,
            team=self.team,
            ahead=_AHEAD * self.num_workers,
        )
        batches, weights, released = self._batches(sampler), state.weights, list(state.released)
        every = -(-self.run.steps // _CHUNKS)
        chunks = range(state.step, self.run.steps, every)
        del state  # its weights are not needed once the first step is taken
        for first in tracked(chunks, "steps"):
            for step in range(first, min(first + every, self.run.steps)):
                seen = step + 1 == self.run.steps or step + 1 in self.places
                self._set_rate(step, float(step_taken.sizes[step]))
                weights = step_taken(step, weights, next(batches), seen)
                count_step(self.run, self.optimizer)
                if self.scheduler is not None:
                    self.scheduler.step()
                if step + 1 in self.places:
                    released.append(self.team.broadcast(step_taken.leaving(weights)).clone())
                if keeper.due():
                    keeper.keep(self._state(step + 1, weights, released, sampler, step_taken))
        return self.team.broadcast(step_taken.leaving(weights)), released

    def _state(self, step: int, weights: Any, released: list[Any], sampler: BatchSampler, taken: Any) -> NetworkState:
        by, rates = ({} if one is None else one.state_dict() for one in (self.optimizer, self.scheduler))
        now = (sampler.order_at(step), self.source.state(), tuple(taken.memory), by, rates)
        return NetworkState(step, weights, tuple(released), *now)

    def _set_rate(self, step: int, size: float) -> None:
        """Set the learning rate of the run, or check it where a scheduler sets it."""
        if self.optimizer is not None and self.rates_by_run:
            for group in self.optimizer.param_groups:
                group["lr"] = size
        elif self.optimizer is not None:
            check_rate(self.optimizer, self.run, step, size)

    def _batches(self, sampler: BatchSampler) -> Iterator[Batch]:
        """Yield the batch of each step from the loader."""
        brought = iter(
            DataLoader(
                self.dataset,
                batch_sampler=sampler,
                num_workers=self.num_workers,
                prefetch_factor=_AHEAD if self.num_workers else None,
                collate_fn=OrNone(self.collate_fn),
            )
        )
        while True:
            first = next(brought)
            count, lists = sampler.drawn.popleft()
            yield Batch(count, _parts(first, brought, lists))

    def _facts(self) -> Facts:
        """Facts that all processes must share and have not compared before."""
        return {
            "releases": self.places,
            "optimizer": "" if self.optimizer is None else str(self.optimizer),
            "num_workers and at_once": (self.num_workers, self.at_once),
        }


def _begun(network: Network, run: Run, dataset: Any, collate_fn: Any, alike: Facts) -> tuple[Network, Facts]:
    """Return the network of this process and the facts that all processes must share."""
    check_dataset(dataset, checked_run(run))
    network.collated = check_collate(network, dataset, collate_fn)
    return network, {"run": run_to_dict(run), **alike}


def _parts(first: Any, brought: Iterator[Any], lists: int) -> Iterator[tuple[Any, Any]]:
    for place in range(lists):
        batch = first if place == 0 else next(brought)
        if batch is not None:
            yield pair_of(batch)


# Check of other trainers: are steps, records and batches those of the run?


_RANDOM, _FIXED, _NO_PASSES = "random", "fixed", "no passes"
_ORDERS = {Turns.NEW_ORDERS: _RANDOM, Turns.ONE_ORDER: _FIXED, Turns.FIXED_ORDER: _FIXED}
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Planned:
    """A training of `steps` steps, each of `accumulated` batches of the loader on `devices`."""

    steps: float
    loader: Any
    accumulated: int
    devices: int

    def check(self, run: Run) -> None:
        """Raise an error if this training is not that of the run."""
        if self.steps != run.steps:
            raise InvalidInput("trainer_steps_differ", field="steps", steps=run.steps, planned=self.steps)
        check_dataset(getattr(self.loader, "dataset", None), run)
        sampler = _innermost(getattr(self.loader, "batch_sampler", None))
        if isinstance(sampler, BatchSampler):
            _check_own(sampler, run)
        elif hasattr(sampler, "sample_rate"):
            self._check_rate(sampler.sample_rate, run)
        elif (order := _order(getattr(sampler, "sampler", None))) is not None:
            self._check_passes(sampler, order, run)

    def _check_rate(self, rate: float, run: Run) -> None:
        """Raise an error unless the run has Poisson batches at the rate at which Opacus draws records."""
        declared = getattr(run.batches, "rate", None)
        if declared is None or abs(declared - rate) > _CLOSE * rate:
            raise InvalidInput("loader_rate_differs", field="batches", rate=rate, batches=run.batches.described)
        if self.accumulated > 1:
            raise InvalidInput("poisson_batches_accumulated", field="batches", accumulated=self.accumulated)

    def _check_passes(self, sampler: Any, order: str, run: Run) -> None:
        size, records = sampler.batch_size * self.accumulated * self.devices, run.batches.records
        if run.batches.turns is Turns.EVERY_STEP:
            matches = order in (_RANDOM, _FIXED) and size >= records
        else:
            matches = order == _ORDERS.get(run.batches.turns) and size == run.batches.largest
        if not matches:
            raise InvalidInput(
                "trainer_batches_differ",
                field="batches",
                batches=run.batches.described,
                size=sampler.batch_size,
                accumulated=self.accumulated,
                devices=self.devices,
                order=order,
            )
        if records % self.devices and not sampler.drop_last:
            raise InvalidInput("records_used_twice", field="batches", devices=self.devices, records=records)
        dropped = records % (sampler.batch_size * self.devices) if sampler.drop_last else 0
        dropped = records % (sampler.batch_size * self.devices) if sampler.drop_last else 0
        if dropped != (planned := records - _used(run)):
            raise InvalidInput("dropped_records_differ", field="batches", dropped=dropped, planned=planned)


def _order(sampler: Any) -> str | None:
    """Order of the passes over the data; None for an unknown sampler of the user's own."""
    if isinstance(sampler, DistributedSampler):
        return _RANDOM if sampler.shuffle else _FIXED
    if isinstance(sampler, RandomSampler):
        whole = not sampler.replacement and sampler.num_samples == len(sampler.data_source)
        return _RANDOM if whole else _NO_PASSES
    return _FIXED if isinstance(sampler, SequentialSampler) else None


def _innermost(sampler: Any) -> Any:
    """Return the sampler of a loader without the wrappers of Accelerate."""
    while hasattr(sampler, "batch_sampler"):
        sampler = sampler.batch_sampler
    return sampler


def _check_own(sampler: BatchSampler, run: Run) -> None:
    if sampler.run.batches != run.batches:
        raise InvalidInput(
            "sampler_batches_differ",
            field="batches",
            batches=run.batches.described,
            drawn=sampler.run.batches.described,
        )


def _used(run: Run) -> int:
    """Number of records used in an epoch."""
    return (run.batches.per_epoch - 1) * run.batches.largest + run.batches.last_size


# The run as it is executed on a network: its arithmetic, the norm of the start, and checks.


def prepared(run: Run, network: Network, at_once: int | None, team: Team = ALONE) -> Run:
    """Return the run with the rounding of its arithmetic, known before the first step."""
    _check_loss(run)
    _check_dimension(run, network.size)
    _check_precision(run, network)
    objective = NetworkObjective(network, run, at_once, team)
    arithmetic = run.arithmetic.and_also(objective.arithmetic(run, network.size))
    norm = up(objective.vectors.length(network.flat()))
    return replace(run, arithmetic=arithmetic, start_norm=max(run.start_norm, norm) if run.decay else run.start_norm)


def start_of(run: Run, objective: NetworkObjective) -> Any:
    """Return the parameters projected onto the domain, where alone the facts of a loss hold."""
    return objective.vectors.settled(replace(run, prox=None), objective.network.flat(), 1.0)


def _check_precision(run: Run, network: Network) -> None:
    """Raise an error for a finite smoothness in single precision, whose rounding is not small beside hidden noise."""
    precisions = {one.dtype for one in network.parameters.values()} | {network.autocast or torch.float64}
    if math.isfinite(run.loss.smoothness) and precisions != {torch.float64}:
        coarse = next(one for one in precisions if one != torch.float64)
        raise InvalidInput("precision_too_low", field="smoothness", got=str(coarse))


def _check_loss(run: Run) -> None:
    """Raise an error for the loss of a linear model, whose row lengths only `li.train` enforces."""
    if run.loss.linear:
        raise InvalidInput("loss_of_linear_model", field="loss", loss=run.loss.kind)


def _check_dimension(run: Run, parameters: int) -> None:
    declared = run.domain.dimension
    if declared is not None and declared != parameters:
        raise InvalidInput("domain_dimension_differs", field="domain", parameters=parameters, dimension=declared)
