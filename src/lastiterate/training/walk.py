"""The steps of a run, one after the other: gradient, noise, proximal map, projection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source
from lastiterate.progress import tracked
from lastiterate.runs.per_step import extremes, spread
from lastiterate.runs.run import Run
from lastiterate.training.checkpoint import Keeper
from lastiterate.training.objectives import Objective
from lastiterate.training.samplers import Sampler
from lastiterate.training.state import State

Watch = Callable[[Floats], None]

_CHUNKS = 200
ROUNDING = 64 * 2.0**-53  # of one step, beside the iterates before and after it


def walked(
    run: Run,
    objective: Objective,
    state: State,
    source: Source,
    releases: tuple[int, ...],
    keeper: Keeper | None = None,
    watch: Watch | None = None,
    until: int | None = None,
) -> State:
    """From this state to the end of the run, or `until` so many steps are done, to be gone on from.

    `watch` sees every iterate, so nothing it saw may be called private.
    """
    step_of = step_for(run, objective, source, state)
    source.go_on(state.randomness)
    sampler = Sampler(run.batches, source, state.order)
    weights, released = state.weights, list(state.released)
    every, end = -(-run.steps // _CHUNKS), run.steps if until is None else until
    for first in tracked(range(state.step, end, every), "steps"):
        for step in range(first, min(first + every, end)):
            seen = step + 1 == run.steps or step + 1 in releases
            weights = step_of(step, weights, sampler.batch(step), seen)
            if step + 1 in releases:
                released.append(step_of.leaving(weights))
            if watch is not None:
                watch(weights)
            if keeper is not None and keeper.due():
                now = (tuple(released), sampler.order, source.state(), step_of.memory)
                keeper.keep(State(step + 1, weights, *now))
    if until is not None:
        return State(until, weights, tuple(released), sampler.order, source.state(), step_of.memory)
    return State(run.steps, step_of.leaving(weights), tuple(released))


def step_for(run: Run, objective: Objective, source: Source, state: State) -> TrainingStep:
    """The steps of this run, from this state on."""
    if run.process.update.plain:
        return TrainingStep(run, objective, source, state.weights.size)
    from lastiterate.training.optimised import OptimisedStep

    return OptimisedStep(run, objective, source, state)


class TrainingStep:
    """x ← Π(prox((1 − step_size·decay)·x − step_size·(mean gradient) + noise)), with the numbers of each step at hand."""

    def __init__(self, run: Run, objective: Objective, source: Source, parameters: int) -> None:
        self.run, self.objective, self.source, self.vectors = run, objective, source, objective.vectors
        self.sizes = spread("step_size", run.step_size, run.steps)
        self.clips = None if run.clip is None else spread("clip", run.clip, run.steps)
        self.noises = run.noise.on_iterate(self.sizes, run.batches.divisor)
        self.decay = run.decay
        # Half of what iterates may stray; the other half is for the grid of those that stay hidden.
        self.farthest = self.vectors.straying / 2 / ROUNDING / math.sqrt(run.steps)
        self.finer = self._finer(parameters)
        self.memory: tuple[Floats, ...] = ()

    def leaving(self, weights: Floats) -> Floats:
        """What is released after the step that was just taken."""
        return weights

    def __call__(self, step: int, weights: Floats, chosen: Indices, seen: bool) -> Floats:
        size, noise = float(self.sizes[step]), float(self.noises[step])
        clip = None if self.clips is None else float(self.clips[step])
        moved = self.objective.gradient_sum(weights, chosen, clip)
        kept = 1 - size * self.decay
        moved *= -size / self._divisor(chosen)
        moved += weights if kept == 1 else kept * weights
        prox, length = self.run.prox, self._length(moved)
        lengths = max(1.0, abs(kept)) * self._length(weights) + length
        self._check_range(lengths)
        self._check_heard(noise, lengths * (1.0 if prox is None else prox.roundings(weights.shape)))
        return self.vectors.settled(self.run, self._noisy(moved, noise, seen, length), size)

    def _noisy(self, value: Any, noise: float, seen: bool, length: float | None = None) -> Any:
        """What is seen is on the grid of what is released."""
        grid = self.vectors.grid_of_released(self.finer) if seen else self.finer
        return self.vectors.noisy(value, noise, self.source, grid, length)

    def _length(self, vector: Any) -> float:
        return self.vectors.length(vector)

    def _finer(self, parameters: int) -> int:
        """How fine the grid of hidden iterates has to be."""
        apart, (least, most) = self._apart(), extremes(self.noises)
        finer = self.vectors.grid_of_hidden(apart, (least, most), math.sqrt(self.run.steps * parameters))
        if finer > self.vectors.finest and self.source.private:
            raise InvalidInput("rounding_amplified", lipschitz=apart, least=least, most=most)
        return min(finer, self.vectors.finest)

    def _apart(self) -> float:
        """By how much a step may make a difference of iterates larger."""
        return self.run.process.contraction

    def _divisor(self, chosen: Indices) -> float:
        """What the run says of a batch of so many records."""
        records = self.run.batches.records
        count = len(range(*chosen.indices(records))) if isinstance(chosen, slice) else len(chosen)
        return self.run.divisor_of(count)

    def _check_range(self, lengths: float) -> None:
        if not math.isfinite(lengths):
            raise InvalidInput("iterates_overflowed")

    def _check_heard(self, noise: float, lengths: float) -> None:
        """The rounding of a step is nothing beside its noise. Seeds are for tests, and never private."""
        if self.source.private and not lengths <= self.farthest * noise:
            raise InvalidInput("noise_lost_in_rounding", noise=noise, length=lengths / 2, least=2 / self.farthest)
