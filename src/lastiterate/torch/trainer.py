"""Train a PyTorch model as a run says, and release the last iterate alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from lastiterate.accounting.calibrate import NOISE, Free, calibrate
from lastiterate.accounting.releases import releases_before
from lastiterate.errors import InvalidInput
from lastiterate.numerics.randomness import Source
from lastiterate.progress import tracked
from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.run import Run, checked_run
from lastiterate.torch.checkpoint import NetworkFile, NetworkState, restored_on_failure
from lastiterate.torch.collating import check_collate
from lastiterate.torch.data_identity import data_identity
from lastiterate.torch.distributed import team_of
from lastiterate.torch.identity import can_be, training_identity
from lastiterate.torch.network import Network
from lastiterate.torch.objective import Batch, NetworkObjective
from lastiterate.torch.optimizers import check_optimizer, check_rate, optimizer_for, with_groups
from lastiterate.torch.prepared import prepared, start_of
from lastiterate.torch.records import pair_of
from lastiterate.torch.releases import Releases
from lastiterate.torch.sampler import BatchSampler, OrNone, check_dataset
from lastiterate.torch.steps import count_step, step_of
from lastiterate.torch.team import Facts, Team
from lastiterate.torch.trained import TrainedModel
from lastiterate.training.checkpoint import Keeper
from lastiterate.training.plans.plans import PlannedRun

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
        self.network = self.team.met(
            lambda: _begun(Network(model, loss, autocast), described, dataset, collate_fn, alike)
        )
        self.source, self.dataset = Source(seed), dataset
        self.scheduler, self.num_workers, self.collate_fn, self.at_once = scheduler, num_workers, collate_fn, at_once
        planned = with_groups(described, optimizer)
        self.run = self.team.led(lambda: self._executed(planned, epsilon, delta, free, releases))
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
            weights, released = self._walked(self._begun_from(keeper), keeper)
            self.team.finished(keeper.remove)
        self.network.put(weights)
        self._trained = True
        parts = {place: self.network.named(one) for place, one in zip(self.places, released, strict=True)}
        return TrainedModel(
            self.network.module, self.run, parts, self.source.private, self.releases, self.network.assumed
        )

    def _identity(self) -> str:
        """What a checkpoint has to be about, to go on from it."""
        records, seed = len(self.dataset), self.source.seed
        return training_identity(self.run, self.places, self.network, records, self.optimizer, seed)

    def _begun_from(self, keeper: Keeper) -> NetworkState:
        """The start, or what a training that was killed has left."""
        start = NetworkState(0, start_of(self.run, self.objective), randomness=self.source.state())
        return self.team.agreed(keeper.found(start))

    def _executed(
        self, run: Run, epsilon: float | None, delta: float | None, free: Free | str, releases: Iterable[int]
    ) -> Run:
        """With the arithmetic of this training, and as a budget wants it."""
        run = prepared(run, self.network, self.at_once, self.team)
        if (epsilon is None) != (delta is None):
            raise InvalidInput("epsilon_without_delta", field="epsilon")
        if epsilon is None or delta is None:
            return run
        return calibrate(run, epsilon=epsilon, delta=delta, free=free, most_steps=run.steps, releases=releases)

    def _walked(self, state: NetworkState, keeper: Keeper) -> tuple[Any, list[Any]]:
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
                    released.append(self.team.told(step_taken.leaving(weights)).clone())
                if keeper.due():
                    keeper.keep(self._state(step + 1, weights, released, sampler, step_taken))
        return self.team.told(step_taken.leaving(weights)), released

    def _state(self, step: int, weights: Any, released: list[Any], sampler: BatchSampler, taken: Any) -> NetworkState:
        by, rates = ({} if one is None else one.state_dict() for one in (self.optimizer, self.scheduler))
        now = (sampler.order_at(step), self.source.state(), tuple(taken.memory), by, rates)
        return NetworkState(step, weights, tuple(released), *now)

    def _set_rate(self, step: int, size: float) -> None:
        """The learning rate is that of the run; where a scheduler sets it, it has to be."""
        if self.optimizer is not None and self.rates_by_run:
            for group in self.optimizer.param_groups:
                group["lr"] = size
        elif self.optimizer is not None:
            check_rate(self.optimizer, self.run, step, size)

    def _batches(self, sampler: BatchSampler) -> Iterator[Batch]:
        """Of each step, as the loader brings them."""
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
        """What all processes have to say alike, and have not said before."""
        return {
            "releases": self.places,
            "optimizer": "" if self.optimizer is None else str(self.optimizer),
            "num_workers and at_once": (self.num_workers, self.at_once),
        }


def _begun(network: Network, run: Run, dataset: Any, collate_fn: Any, alike: Facts) -> tuple[Network, Facts]:
    """What processes have when they meet, and what has to be alike in all of them."""
    check_dataset(dataset, checked_run(run))
    network.collated = check_collate(network, dataset, collate_fn)
    return network, {"run": run_to_dict(run), **alike}


def _parts(first: Any, brought: Iterator[Any], lists: int) -> Iterator[tuple[Any, Any]]:
    for place in range(lists):
        batch = first if place == 0 else next(brought)
        if batch is not None:
            yield pair_of(batch)
