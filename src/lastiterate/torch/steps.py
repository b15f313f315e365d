"""Steps of a network: by the run itself, in double precision, or by an optimiser of torch.optim from noisy gradients.

The run's own steps are those of `lastiterate.training`, with tensors: what theorems about the last iterate speak of. What an
optimiser does in the precision of the model, and with noisy gradients alone, composition covers.
"""

from __future__ import annotations

from typing import Any

import torch

from lastiterate.numerics.randomness import Source
from lastiterate.runs.optimizers import SGD, At
from lastiterate.runs.run import Run
from lastiterate.torch.checkpoint import NetworkState
from lastiterate.torch.objective import NetworkObjective
from lastiterate.training.optimised import OptimisedStep
from lastiterate.training.walk import TrainingStep


class ToldStep(OptimisedStep):
    """What is remembered from step to step is computed by each process; the iterate of all of them is the leader's."""

    def __init__(self, run: Run, objective: NetworkObjective, source: Source, state: NetworkState) -> None:
        super().__init__(run, objective, source, state)
        self.team = objective.team

    def __call__(self, step: int, weights: Any, chosen: Any, seen: bool) -> Any:
        return self.team.told(super().__call__(step, weights, chosen, seen))


class PlainStep(TrainingStep):
    """The iterate before is the vector for the next sum: whoever needs it longer has a copy."""

    def __init__(self, run: Run, objective: NetworkObjective, source: Source) -> None:
        super().__init__(run, objective, source, objective.network.size)
        self.spare = objective.network.spare

    def __call__(self, step: int, weights: Any, chosen: Any, seen: bool) -> Any:
        after = super().__call__(step, weights, chosen, seen)
        self.spare.keep(weights)
        return after


class MomentumStep(ToldStep):
    """With momentum, in three vectors, which change places: whoever needs the iterate before has a copy.

    What was remembered becomes the next iterate, and what is remembered next takes the place of the iterate before.
    """

    def __init__(
        self, run: Run, optimizer: SGD, objective: NetworkObjective, source: Source, state: NetworkState
    ) -> None:
        super().__init__(run, objective, source, state)
        self.momentum, self.spare = optimizer.momentum, objective.network.spare

    def _noised(self, weights: Any, taken: Any, remembered: tuple[Any, ...], ratio: float) -> Any:
        """As `SGD.noised`, to the last bit."""
        moved, factor = remembered[0], self.optimizer.noise_factor
        moved *= self.momentum * ratio
        moved += weights
        moved += taken if factor == 1 else factor * taken
        self.spare.keep(taken)
        return moved

    def _settled(self, weights: Any, moved: Any, remembered: tuple[Any, ...], at: At) -> tuple[Any, tuple[Any, ...]]:
        """As `SGD.settled`."""
        return moved, (torch.sub(moved, weights, out=weights),)


class OptimizerStep(OptimisedStep):
    """The optimiser sees the noisy mean gradient, and nothing else."""

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
        after = self.team.told(self.vectors.settled(self.run, flat, size))
        self.memory = self._averaged(step, after)
        return after

    def _give(self, noisy: Any, weights: Any) -> None:
        """The optimiser this gradient, and that of the l2 term."""
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
    """The steps of this run, from this state on. Those of SGD the run takes itself, whatever optimiser holds its rate."""
    if not isinstance(run.optimizer, SGD):
        return OptimizerStep(run, objective, source, state, optimizer)
    if run.process.update.plain:
        return PlainStep(run, objective, source)
    if run.released.plain and not run.optimizer.nesterov:
        return MomentumStep(run, run.optimizer, objective, source, state)
    return ToldStep(run, objective, source, state)
