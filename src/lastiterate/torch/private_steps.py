"""Private steps for a training loop of your own: gradients clipped record by record, noise, and the optimiser's step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.errors import InvalidInput
from lastiterate.numerics.randomness import Source
from lastiterate.torch.checkpoint import NetworkState
from lastiterate.torch.collating import check_collate
from lastiterate.torch.distributed import check_alone
from lastiterate.torch.loaders import check_loader, generator_of, lists_ahead
from lastiterate.torch.network import Network
from lastiterate.torch.objective import Batch, NetworkObjective
from lastiterate.torch.optimizers import check_optimizer, check_rate, with_groups
from lastiterate.torch.prepared import prepared, start_of
from lastiterate.torch.releases import Releases
from lastiterate.torch.sampler import BatchSampler
from lastiterate.torch.seeded import ORDER_SEEDED, seeded
from lastiterate.torch.steps import count_step, step_of
from lastiterate.torch.trained import TrainedModel
from lastiterate.torch.watched import PassWatch


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
) -> PrivateSteps:
    """Private steps of this optimiser: `steps.accumulate(inputs, targets)`, any number of times, then `steps.step()`.

    Optimiser, learning rate and loader are held to what the run says: what it does not cover is refused. `loader` is
    `li.torch.loader(dataset, run)`, or a DataLoader of PyTorch that does what the run's batches say.
    """
    check_alone()
    return PrivateSteps(optimizer, Network(model, loss, autocast), checked_run(run), loader, at_once, seed)


class PrivateSteps:
    """What a loop calls. Until `finish`, the model holds hidden iterates: only `release` and `finish` let them out."""

    def __init__(
        self, optimizer: Any, network: Network, run: Run, loader: Any, at_once: int | None, seed: int | None
    ) -> None:
        order = check_loader(loader, run)
        self.assumed = (*order, *network.assumed)
        self.caveats = (ORDER_SEEDED,) if order and seeded(generator_of(loader.batch_sampler)) else ()
        check_collate(network, loader.dataset, getattr(loader.collate_fn, "collate_fn", loader.collate_fn))
        self.run = prepared(with_groups(run, optimizer), network, at_once)
        check_optimizer(optimizer, self.run, network)
        self.network, self.optimizer, self.source = network, optimizer, Source(seed)
        self.objective = NetworkObjective(network, self.run, at_once)
        self.releases, self.taken = Releases(), 0
        self._sampler = loader.batch_sampler if isinstance(loader.batch_sampler, BatchSampler) else None
        self._ahead, self._failed = lists_ahead(loader), False
        self._watch = PassWatch(loader.batch_sampler, run.batches, self._ahead) if self._sampler is None else None
        self._weights = start_of(self.run, self.objective)
        network.put(self._weights)
        self._take = step_of(self.run, self.objective, self.source, NetworkState(0, self._weights), optimizer)

    def accumulate(self, inputs: Any, targets: Any) -> None:
        """Records to the batch of the next step; their gradients are clipped and added up, and nothing else is kept."""
        self._check_goes_on()
        if not self.network.holds(self._weights):
            raise InvalidInput(
                "the parameters are not those of the last step: something else has changed them. Only step() may.",
                field="model",
            )
        clips = self._take.clips
        self.objective.add(inputs, targets, None if clips is None else float(clips[self.taken]))

    def step(self) -> None:
        """Noise, and a step of the optimiser, at its learning rate."""
        self._check_goes_on()
        step = self.taken
        check_rate(self.optimizer, self.run, step, float(self._take.sizes[step]))
        batch = Batch(self._expected(step), ())
        self._failed = True
        self._weights = self._take(step, self._weights, batch, seen=True)
        self.network.put(self._weights)
        count_step(self.run, self.optimizer)
        self.taken, self._failed = self.taken + 1, False

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing is left over from a step; loops call it all the same."""
        self.optimizer.zero_grad(set_to_none)

    def release(self, what: str = "a checkpoint") -> dict[str, Any]:
        """The trained parameters as they are now, to be shown or written; charged."""
        self._check_whole()
        self.releases.charge(self.taken, what)
        return self.network.named(self._take.leaving(self._weights))

    def finish(self, *, stopped: bool = False) -> TrainedModel:
        """The trained model and its account. `stopped`: earlier than the run says, for a reason fixed before training."""
        self._check_whole()
        if self.taken < self.run.steps and not stopped:
            raise InvalidInput(
                f"the run has {self.run.steps} steps, of which {self.taken} were taken. Take them all; or, if it was fixed "
                "without looking at the data that training ends here, say finish(stopped=True)."
            )
        if not self.taken:
            raise InvalidInput("no step was taken, so that there is nothing to release.")
        self.network.put(self._take.leaving(self._weights))
        return self._trained

    def report(self, delta: float) -> Report:
        """The account of the steps so far, were they all, and of what was released."""
        self._check_whole()
        return self._trained.report(delta)

    @property
    def _trained(self) -> TrainedModel:
        """What an optimiser or an average has before its end is not drawn in one piece: every iterate is charged."""
        early = self.taken < self.run.steps
        run = self.run.first(max(self.taken, 1)) if early else self.run
        private = self.source.private and (self._sampler is None or self._sampler.source.private)
        every = early and not run.process.update.plain
        return TrainedModel(self.network.module, run, {}, private, self.releases, self.assumed, every, self.caveats)

    def _expected(self, step: int) -> int:
        """As many records as the loader drew for this step, and no batch was left out before."""
        if self._watch is not None:
            self._watch.check(step)
        if self._sampler is None:
            return self.run.batches.size_at(step) or 0
        drawn = self._sampler.drawn
        if not 1 <= len(drawn) <= 1 + self._ahead:
            what = "a batch that no step has used" if drawn else "no batch for this step"
            raise InvalidInput(f"the loader has handed out {what}: one step for each batch.", field="loader")
        return drawn.popleft()[0]

    def _check_whole(self) -> None:
        if self._failed:
            raise InvalidInput(
                "a step has failed, so that what was executed is not the run. Begin again, with the parameters of the "
                "start, a new optimiser and a new loader."
            )

    def _check_goes_on(self) -> None:
        self._check_whole()
        if self.taken >= self.run.steps:
            raise InvalidInput(f"the run has {self.run.steps} steps, and all were taken. Describe a longer run.")
