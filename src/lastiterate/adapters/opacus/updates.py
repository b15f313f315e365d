"""What a PyTorch optimiser does with noisy gradients, in the words of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch

from lastiterate.runs.optimizers import SGD, Optimizer, OtherOptimizer
from lastiterate.torch.optimizers import optimizer_of_group


@dataclass(frozen=True)
class Executed:
    """An optimiser and its numbers as they are now; of optimisers that are only named, no numbers."""

    optimizer: Optimizer
    learning_rate: float | None = None
    weight_decay: float | None = None

    @property
    def scales(self) -> bool:
        """Whether a gradient twice as long makes a step twice as long, so that divisor and learning rate are one number."""
        return isinstance(self.optimizer, SGD)


def executed_by(optimizer: torch.optim.Optimizer) -> Executed:
    """What it is now: learning rates may change from step to step."""
    groups = {_group(optimizer, group) for group in optimizer.param_groups}
    if len(groups) > 1:
        return Executed(OtherOptimizer(f"{type(optimizer).__name__} with parameter groups"))
    return groups.pop()


def _group(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> Executed:
    found = optimizer_of_group(optimizer, group)
    if isinstance(found, SGD) and found.dampening:
        # PyTorch's first step is not dampened, li.SGD's is: as one more optimiser that is only named it is covered.
        found = OtherOptimizer("SGD with dampening")
    if isinstance(found, OtherOptimizer):
        return Executed(found)
    return Executed(found, float(group["lr"]), float(group["weight_decay"]))


def as_written(optimizer: Optimizer) -> str:
    """How a run says it."""
    if isinstance(optimizer, OtherOptimizer):
        return f"optimizer={optimizer.name!r}"
    given = {one.name: getattr(optimizer, one.name) for one in fields(optimizer)}  # type: ignore[arg-type]
    told = (f"{name}={value}" for name, value in given.items() if value != getattr(type(optimizer)(), name))
    return f"optimizer=li.{type(optimizer).__name__}({', '.join(told)})"
