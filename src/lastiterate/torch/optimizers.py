"""Is the optimiser of a training the one that the run describes? Whatever it is called, what it does has to be the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from lastiterate.errors import InvalidInput, must_be
from lastiterate.runs.optimizers import SGD, Adam, OtherOptimizer
from lastiterate.runs.per_step import at_step
from lastiterate.runs.run import Run
from lastiterate.torch.network import Network


def optimizer_for(run: Run, network: Network) -> Any:
    """The optimiser of a run, of torch.optim; None for SGD, whose steps the run takes itself."""
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
    """The run as it is executed where groups of parameters have their own rates, weight decay or momentum.

    Whatever an optimiser makes of noisy gradients, the composition of all of them holds, and nothing else is known of it.
    """
    if not isinstance(optimizer, torch.optim.Optimizer) or not _has_groups(optimizer):
        return run
    alike = any(optimizer_of_group(optimizer, group) == run.optimizer for group in optimizer.param_groups)
    return replace(run, optimizer=OtherOptimizer(_in_groups(optimizer))) if alike else run


def _has_groups(optimizer: Any) -> bool:
    """Whether they differ in anything."""
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
    """What a run says for an optimiser of torch.optim; by its name alone, where the library knows no more of it."""
    found = {optimizer_of_group(optimizer, group) for group in optimizer.param_groups}
    return found.pop() if len(found) == 1 else OtherOptimizer(_in_groups(optimizer))


def optimizer_of_group(optimizer: Any, group: dict[str, Any]) -> SGD | Adam | OtherOptimizer:
    """What it does with the parameters of this group, but for their learning rate and weight decay."""
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
    """The learning rate is that of the run at this step, whatever a scheduler did; or that of one of several groups."""
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
    """What it remembers of steps before came from gradients that are no part of the run, perhaps of the same records."""
    for state in optimizer.state.values():
        if float(state.get("step", 0.0)) > 0 or state.get("momentum_buffer") is not None:
            raise InvalidInput("optimizer_not_new", field="optimizer")


def _differs(run: Run, found: str) -> InvalidInput:
    return InvalidInput("optimizer_differs", field="optimizer", optimizer=run.optimizer.described, got=found)


_KNOWN = {torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW}
