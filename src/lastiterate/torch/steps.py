"""Steps of a network: by the run itself, in double precision, or by an optimiser of torch.optim from noisy gradients.

The run's own steps are those of `lastiterate.training`, with tensors: what theorems about the last iterate speak of. What an
optimiser does in the precision of the model, and with noisy gradients alone, composition covers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from lastiterate.errors import InvalidInput, must_be
from lastiterate.numerics.randomness import Source
from lastiterate.runs.optimizers import SGD, Adam, At, OtherOptimizer
from lastiterate.runs.per_step import at_step
from lastiterate.runs.run import Run
from lastiterate.torch.checkpoint import NetworkState
from lastiterate.torch.network import Network
from lastiterate.torch.objective import NetworkObjective
from lastiterate.training.steps import OptimisedStep, TrainingStep


class TeamStep(OptimisedStep):
    """A step whose memory each process computes, and whose iterate the leader broadcasts."""

    def __init__(self, run: Run, objective: NetworkObjective, source: Source, state: NetworkState) -> None:
        super().__init__(run, objective, source, state)
        self.team = objective.team

    def __call__(self, step: int, weights: Any, chosen: Any, seen: bool) -> Any:
        return self.team.broadcast(super().__call__(step, weights, chosen, seen))


class PlainStep(TrainingStep):
    """A plain step, which uses the iterate before as the vector for its sum: whoever needs it has a copy."""

    def __init__(self, run: Run, objective: NetworkObjective, source: Source) -> None:
        super().__init__(run, objective, source, objective.network.size)
        self.spare = objective.network.spare

    def __call__(self, step: int, weights: Any, chosen: Any, seen: bool) -> Any:
        after = super().__call__(step, weights, chosen, seen)
        self.spare.keep(weights)
        return after


class MomentumStep(TeamStep):
    """A step with momentum in three vectors, which change places: whoever needs the iterate before has a copy.

    What was remembered becomes the next iterate, and what is remembered next takes the place of the iterate before.
    """

    def __init__(
        self, run: Run, optimizer: SGD, objective: NetworkObjective, source: Source, state: NetworkState
    ) -> None:
        super().__init__(run, objective, source, state)
        self.momentum, self.spare = optimizer.momentum, objective.network.spare

    def _noised(self, weights: Any, taken: Any, remembered: tuple[Any, ...], ratio: float) -> Any:
        """Return what the noise is added to, equal to `SGD.noised` to the last bit."""
        moved, factor = remembered[0], self.optimizer.noise_factor
        moved *= self.momentum * ratio
        moved += weights
        moved += taken if factor == 1 else factor * taken
        self.spare.keep(taken)
        return moved

    def _settled(self, weights: Any, moved: Any, remembered: tuple[Any, ...], at: At) -> tuple[Any, tuple[Any, ...]]:
        """Return the next iterate and memory, as `SGD.settled` does."""
        return moved, (torch.sub(moved, weights, out=weights),)


class OptimizerStep(OptimisedStep):
    """A step by an optimiser of torch.optim, which sees the noisy mean gradient and nothing else."""

    def __init__(
        self, run: Run, objective: NetworkObjective, source: Source, state: NetworkState, optimizer: Any
    ) -> None:
        super().__init__(run, objective, source, state)
        self.network, self.team, self.by = objective.network, objective.team, optimizer
        self.memory = state.memory or (state.weights, self.vectors.zeros_like(state.weights))[: self.average.slots]

    def __call__(self, step: int, weights: Any, chosen: Any, seen: bool) -> Any:
        size, noise = float(self.sizes[step]), float(self.noises[step])
        clip = None if self.clips is None else float(self.clips[step])
        mean = self.objective.gradient_sum(weights, chosen, clip)
        mean /= self._divisor(chosen)
        length = self._length(mean)
        self._check_range(length)
        self._give(self._noisy(mean, noise / size, seen, length), weights)
        del mean  # before the optimiser takes memory of its own
        self.by.step()
        self.by.zero_grad(set_to_none=True)
        flat = self.network.flat(weights if self.average.plain else None)
        after = self.team.broadcast(self.vectors.settled(self.run, flat, size))
        self.memory = self._averaged(step, after)
        return after

    def _give(self, noisy: Any, weights: Any) -> None:
        """Give the optimiser this gradient, with that of the l2 term."""
        gradient = noisy + self.run.loss.l2 * weights if self.run.loss.l2 else noisy
        self.by.zero_grad(set_to_none=True)  # also of frozen parameters, whose old gradients have no noise
        for name, part in self.network.views(gradient).items():
            self.network.parameters[name].grad = part.to(self.network.parameters[name].dtype)


def count_step(run: Run, optimizer: Any) -> None:
    """A step that the run has taken itself: the optimiser, which has no gradients, takes none, and its scheduler goes on."""
    if isinstance(run.optimizer, SGD) and optimizer is not None:
        optimizer.zero_grad(set_to_none=True)
        optimizer.step()


def step_of(run: Run, objective: NetworkObjective, source: Source, state: NetworkState, optimizer: Any) -> Any:
    """Return the object that takes the steps from this state on; steps of SGD are the run's own."""
    if not isinstance(run.optimizer, SGD):
        return OptimizerStep(run, objective, source, state, optimizer)
    if run.process.update.plain:
        return PlainStep(run, objective, source)
    if run.released.plain and not run.optimizer.nesterov:
        return MomentumStep(run, run.optimizer, objective, source, state)
    return TeamStep(run, objective, source, state)


# Check of an optimiser: does it do what the run describes?


def optimizer_for(run: Run, network: Network) -> Any:
    """Return the optimiser of torch.optim for a run; None for SGD, whose steps the run takes itself."""
    made = run.optimizer
    if isinstance(made, SGD):
        return None
    if not isinstance(made, Adam):
        raise InvalidInput("optimizer_not_given", field="optimizer", name=made.described)
    kind = torch.optim.AdamW if made.decoupled else torch.optim.Adam
    return kind(
        list(network.parameters.values()),
        lr=at_step(run.step_size, 0),
        betas=made.betas,
        eps=made.eps,
        weight_decay=run.weight_decay,
    )


def with_groups(run: Run, optimizer: Any) -> Run:
    """Return the run as executed if groups of parameters have their own rates, weight decay or momentum.

    Whatever an optimiser makes of noisy gradients, the composition of all of them holds, and nothing else is known of it.
    """
    if not isinstance(optimizer, torch.optim.Optimizer) or not _has_groups(optimizer):
        return run
    alike = any(optimizer_of_group(optimizer, group) == run.optimizer for group in optimizer.param_groups)
    return replace(run, optimizer=OtherOptimizer(_in_groups(optimizer))) if alike else run


def _has_groups(optimizer: Any) -> bool:
    """Whether the groups of parameters differ in anything."""
    groups = optimizer.param_groups
    told = {(optimizer_of_group(optimizer, one), float(one["lr"]), one.get("weight_decay", 0.0)) for one in groups}
    return len(told) > 1


def _in_groups(optimizer: Any) -> str:
    return f"{type(optimizer).__name__} with parameter groups"


def check_optimizer(optimizer: Any, run: Run, network: Network) -> None:
    """An error, of one sentence, if this is not the optimiser of the run, or holds other parameters than are trained."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise must_be("optimizer", "a torch.optim.Optimizer", type(optimizer).__name__)
    _check_parameters(optimizer, network)
    _check_new(optimizer)
    if isinstance(run.optimizer, OtherOptimizer):
        name = type(optimizer).__name__
        if run.optimizer.name.lower() not in (name.lower(), _in_groups(optimizer).lower()):
            raise _differs(run, name)
        return
    found = optimizer_like(optimizer)
    if found != run.optimizer:
        raise _differs(run, found.described)
    decays = {group.get("weight_decay", 0.0) for group in optimizer.param_groups}
    if decays != {run.weight_decay}:
        raise InvalidInput(
            "weight_decay_differs", field="weight_decay", weight_decay=run.weight_decay, decays=sorted(decays)
        )


def optimizer_like(optimizer: Any) -> SGD | Adam | OtherOptimizer:
    """Return a run's optimiser for one of torch.optim; by its name alone if the library knows no more of it."""
    found = {optimizer_of_group(optimizer, group) for group in optimizer.param_groups}
    return found.pop() if len(found) == 1 else OtherOptimizer(_in_groups(optimizer))


def optimizer_of_group(optimizer: Any, group: dict[str, Any]) -> SGD | Adam | OtherOptimizer:
    """Return a run's optimiser for a parameter group, apart from its learning rate and weight decay."""
    name = type(optimizer).__name__
    if type(optimizer) not in _KNOWN:
        return OtherOptimizer(name)
    for option in ("maximize", "amsgrad"):
        if group.get(option):
            return OtherOptimizer(f"{name} with {option}")
    if type(optimizer) is torch.optim.SGD:
        momentum = float(group["momentum"])
        return _sgd(momentum, group) if momentum else SGD()
    first, second = map(float, group["betas"])
    decoupled = type(optimizer) is torch.optim.AdamW or bool(group.get("decoupled_weight_decay"))
    return Adam(betas=(first, second), eps=float(group["eps"]), decoupled=decoupled)


def _sgd(momentum: float, group: dict[str, Any]) -> SGD:
    return SGD(momentum=momentum, nesterov=bool(group["nesterov"]), dampening=float(group["dampening"]))


def check_rate(optimizer: Any, run: Run, step: int, size: float) -> None:
    """Raise an error unless the learning rate is the run's, for all groups or for one of several."""
    rates = {float(group["lr"]) for group in optimizer.param_groups}
    matches = [abs(rate - size) <= 1e-9 * size for rate in rates]
    if not (any(matches) if run.optimizer == OtherOptimizer(_in_groups(optimizer)) else all(matches)):
        raise InvalidInput(
            "learning_rate_differs", field="step_size", step=step + 1, step_size=size, rates=sorted(rates)
        )


def _check_parameters(optimizer: Any, network: Network) -> None:
    held = {id(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}
    if held != {id(one) for one in network.parameters.values()}:
        raise InvalidInput("optimizer_of_other_parameters", field="optimizer")


def _check_new(optimizer: Any) -> None:
    """Refuse an optimiser that has taken steps: its memory may depend on the same records, outside the run."""
    for state in optimizer.state.values():
        if float(state.get("step", 0.0)) > 0 or state.get("momentum_buffer") is not None:
            raise InvalidInput("optimizer_not_new", field="optimizer")


def _differs(run: Run, found: str) -> InvalidInput:
    return InvalidInput("optimizer_differs", field="optimizer", optimizer=run.optimizer.described, got=found)


_KNOWN = {torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW}
