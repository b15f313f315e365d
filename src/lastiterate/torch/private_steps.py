"""Private steps for a training loop of your own: gradients clipped record by record, noise, and the optimiser's step."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lastiterate.accounting.report import Report
from lastiterate.errors import InvalidInput
from lastiterate.facts import fact
from lastiterate.numerics.randomness import Source
from lastiterate.runs.run import Run, checked_run
from lastiterate.torch.checkpoint import NetworkFile, NetworkState, Releases, can_be, data_identity, training_identity
from lastiterate.torch.distributed import check_alone
from lastiterate.torch.network import Network
from lastiterate.torch.objective import Batch, NetworkObjective
from lastiterate.torch.recording import TrainedModel
from lastiterate.torch.sampling import (
    BatchSampler,
    LoaderWatch,
    OrNone,
    check_collate,
    check_loader,
    generator_of,
    lists_ahead,
    unwatched,
    watch_batches,
)
from lastiterate.torch.steps import check_optimizer, check_rate, count_step, step_of, with_groups
from lastiterate.torch.trainer import prepared, start_of
from lastiterate.torch.trusted import ORDER_SEEDED, SeedWatch, Trusted, check_all, seeded
from lastiterate.training.checkpoint import Keeper

UNCHANGED = fact("loader_to_model")


def clip_and_noise(
    optimizer: Any,
    model: Any,
    loss: Callable[..., Any],
    run: Run,
    loader: Any,
    *,
    at_once: int | None = None,
    autocast: Any = None,
    seed: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> PrivateSteps:
    """Private steps for your own loop: call `steps.accumulate(inputs, targets)` one or more times, then `steps.step()`.

    Optimiser, learning rate and loader must match the run; any difference raises an error. `loader` is
    `li.torch.loader(dataset, run)`, or a PyTorch DataLoader that draws batches as the run does.

    With `checkpoint`, a file, a loop that was killed continues where it stopped: `steps.taken` is the number of finished
    steps, and the loader returns the remaining batches. Keep the file secret; `finish` deletes it.
    """
    check_alone()
    steps = PrivateSteps(optimizer, Network(model, loss, autocast), checked_run(run), loader, at_once, seed)
    if checkpoint is not None:
        steps.resume(checkpoint, checkpoint_every)
    return steps


class PrivateSteps:
    """The private steps of one training. Until `finish`, the model holds hidden iterates: only `release` may show them."""

    def __init__(
        self, optimizer: Any, network: Network, run: Run, loader: Any, at_once: int | None, seed: int | None
    ) -> None:
        order = check_loader(loader, run)
        collate_fn = loader.collate_fn.collate_fn if isinstance(loader.collate_fn, OrNone) else loader.collate_fn
        network.collated = check_collate(network, loader.dataset, collate_fn)
        self.assumed = (UNCHANGED, *order, *network.assumed)
        generator = generator_of(unwatched(loader.batch_sampler))
        self.caveats = (ORDER_SEEDED,) if order and seeded(generator) else ()
        self._order = SeedWatch(generator) if order else None
        self.run = prepared(with_groups(run, optimizer), network, at_once)
        check_optimizer(optimizer, self.run, network)
        self.network, self.optimizer, self.source = network, optimizer, Source(seed)
        self.objective = NetworkObjective(network, self.run, at_once)
        self.releases, self.taken, self._drawn = Releases(), 0, 0
        self._keeper: Keeper | None = None
        self._dataset = loader.dataset
        self._sampler = loader.batch_sampler if isinstance(loader.batch_sampler, BatchSampler) else None
        self._ahead, self._failed, self._finished = lists_ahead(loader), False, False
        self._watch: LoaderWatch | None = None
        if self._sampler is None:
            self._watch = LoaderWatch(watch_batches(loader, "batch_sampler"), run.batches, 1, self._ahead)
        self._weights = start_of(self.run, self.objective)
        network.put(self._weights)
        self._take = step_of(self.run, self.objective, self.source, NetworkState(0, self._weights), optimizer)

    def accumulate(self, inputs: Any, targets: Any) -> None:
        """Add records to the batch of the next step. Their clipped gradients are summed; nothing else is kept."""
        self._check_goes_on()
        if not self.network.holds(self._weights):
            raise InvalidInput("parameters_changed", field="model")
        clips = self._take.clips
        self.objective.add(inputs, targets, None if clips is None else float(clips[self.taken]))

    def step(self) -> None:
        """Add noise to the summed gradients and take one step of the optimiser."""
        check_all(TRUSTED, self)
        step = self.taken
        batch = Batch(self._drawn, ())
        self._failed = True
        self._weights = self._take(step, self._weights, batch, seen=True)
        self.network.put(self._weights)
        count_step(self.run, self.optimizer)
        self.taken, self._failed = self.taken + 1, False
        if self._keeper is not None and self._keeper.due():
            self._keep()

    def resume(self, checkpoint: str | Path, every: float) -> None:
        """Continue from the state in the file, if it exists; from now on it is written regularly and at every release."""
        sampler = self._sampler
        if sampler is None or not sampler.is_new or not (sampler.source.private and self.source.private):
            raise InvalidInput("checkpoint_needs_new_loader", field="checkpoint")
        identity = (self.run, (), self.network, len(self._dataset), self.optimizer, None)
        file = NetworkFile(
            training_identity(*identity),
            self.network.device,
            partial(can_be, self.run, (), self.network.size),
            partial(data_identity, self._dataset),
        )
        self._keeper = Keeper(checkpoint, every, file)
        self._keeper.__enter__()
        self._unlock = weakref.finalize(self, self._keeper.__exit__)
        try:
            state = self._keeper.found(NetworkState(0, self._weights))
            self.releases.read(state.book)
            self.releases.written = self._keep
            if state.step:
                self._go_on(state, sampler)
        except BaseException:
            self._unlock()  # a training that is refused leaves the file to others at once, whoever holds its traceback
            raise

    def _go_on(self, state: NetworkState, sampler: BatchSampler) -> None:
        """Continue from a state; learning rates stay, since the schedulers of a loop are its own."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(state.optimizer)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.taken, self._weights = state.step, state.weights
        self._take = step_of(self.run, self.objective, self.source, state, self.optimizer)
        self.network.put(self._weights)
        sampler.go_on(state.step, state.order)

    def _keep(self) -> None:
        """Write the current state, before anybody sees what was released from it."""
        if self._keeper is None or self._sampler is None or self._failed:
            return
        memory = tuple(getattr(self._take, "memory", ()))
        order, optimizer = self._sampler.order_at(self.taken), self.optimizer.state_dict()
        self._keeper.keep(
            NetworkState(self.taken, self._weights, (), order, None, memory, optimizer, {}, self.releases.entries())
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Does nothing: no gradients are kept between steps."""
        self.optimizer.zero_grad(set_to_none)

    def release(self, what: str = "a checkpoint") -> dict[str, Any]:
        """Return the current parameters, to show or save them. The report accounts for this release."""
        self._check_whole()
        self.releases.charge(self.taken, what)
        return self.network.named(self._take.leaving(self._weights))

    def finish(self, *, stopped: bool = False) -> TrainedModel:
        """The trained model. `stopped=True` allows fewer steps than the run, if that was decided without the data."""
        self._check_whole()
        if self.taken < self.run.steps and not stopped:
            raise InvalidInput("steps_not_taken", steps=self.run.steps, taken=self.taken)
        if not self.taken:
            raise InvalidInput("no_step_taken")
        self._finished = True
        self.network.put(self._take.leaving(self._weights))
        if self._keeper is not None:
            self._keeper.remove()
            self._unlock()
            self._keeper, self.releases.written = None, None
        return self._trained

    def report(self, delta: float) -> Report:
        """The privacy report as if training ended now, including everything released so far."""
        self._check_whole()
        return self._trained.report(delta)

    @property
    def _trained(self) -> TrainedModel:
        """Result of the training; an optimiser or average that ends early counts as releasing every iterate."""
        early = self.taken < self.run.steps
        run = self.run.first(max(self.taken, 1)) if early else self.run
        private = self.source.private and (self._sampler is None or self._sampler.source.private)
        every = early and not run.process.update.plain
        return TrainedModel(self.network.module, run, {}, private, self.releases, self.assumed, every, self.caveats)

    def _check_rate(self) -> None:
        check_rate(self.optimizer, self.run, self.taken, float(self._take.sizes[self.taken]))

    def _check_order(self) -> None:
        """Void the guarantee if the generator was seeded while it shuffled, so that the order is known."""
        if self._order is None or self._watch is None:
            return
        if self._order.repeatable(drawn=self._watch.begins_pass):
            self.caveats = (ORDER_SEEDED,)

    def _check_loader(self) -> None:
        """Raise an error unless the loader drew a batch for this step and none was left out before."""
        if self._watch is not None:
            self._drawn = self._watch.check(self.taken)
        if self._sampler is None:
            return
        drawn = self._sampler.drawn
        if not 1 <= len(drawn) <= 1 + self._ahead:
            raise InvalidInput("batch_unused" if drawn else "batch_not_drawn", field="loader")
        self._drawn = drawn.popleft()[0]

    def _check_whole(self) -> None:
        if self._failed:
            raise InvalidInput("step_failed")

    def _check_goes_on(self) -> None:
        self._check_whole()
        if self._finished:
            raise InvalidInput("training_finished", field="finish")
        if self.taken >= self.run.steps:
            raise InvalidInput("all_steps_taken", steps=self.run.steps)


TRUSTED: tuple[Trusted, ...] = (
    Trusted("end", "loop_end", PrivateSteps._check_goes_on),
    Trusted("learning rate", "loop_learning_rate", PrivateSteps._check_rate),
    Trusted(
        "order",
        "loop_order",
        PrivateSteps._check_order,
        ("generator_unpredictable",),
    ),
    Trusted(
        "loader",
        "loop_loader",
        PrivateSteps._check_loader,
        ("loader_to_model",),
    ),
    # The rest is looked at while gradients are computed: in accumulate, and by the objective.
    Trusted("parameters", "loop_parameters"),
    Trusted("batch", "loop_batch"),
    Trusted(
        "model",
        "loop_model",
        None,
        ("record_gradients_separate",),
    ),
    Trusted(
        "collate function",
        "loop_collate_fn",
        None,
        ("collate_separate",),
    ),
)
