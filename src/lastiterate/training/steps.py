"""The steps of a run, one after the other, plain or with an optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.randomness import Source
from lastiterate.progress import tracked
from lastiterate.runs.batches import Batches
from lastiterate.runs.optimizers import At
from lastiterate.runs.per_step import extremes, spread
from lastiterate.runs.run import Run
from lastiterate.training.checkpoint import Keeper, Standing, State
from lastiterate.training.objectives import Objective

# Plain steps: gradient, noise, proximal map, projection.


Watch = Callable[[Floats], None]

_CHUNKS = 200
ROUNDING = 64 * 2.0**-53  # of one step, beside the iterates before and after it


def take_steps(
    run: Run,
    objective: Objective,
    state: State,
    source: Source,
    releases: tuple[int, ...],
    keeper: Keeper | None = None,
    watch: Watch | None = None,
    until: int | None = None,
) -> State:
    """Take the steps of a run from a state to its end, or `until` this many steps are done.

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
    """Return the object that takes the steps of this run from this state on."""
    if run.process.update.plain:
        return TrainingStep(run, objective, source, state.weights.size)

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
        """Return what is released after the step that was just taken."""
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
        """Add noise to a value, on the grid of releases if it is `seen`, or on the grid of hidden iterates."""
        grid = self.vectors.grid_of_released(self.finer) if seen else self.finer
        return self.vectors.noisy(value, noise, self.source, grid, length)

    def _length(self, vector: Any) -> float:
        return self.vectors.length(vector)

    def _finer(self, parameters: int) -> int:
        """Fineness of the grid of hidden iterates that the run needs; an error if it is too fine for private noise."""
        apart, (least, most) = self._apart(), extremes(self.noises)
        finer = self.vectors.grid_of_hidden(apart, (least, most), math.sqrt(self.run.steps * parameters))
        if finer > self.vectors.finest and self.source.private:
            raise InvalidInput("rounding_amplified", lipschitz=apart, least=least, most=most)
        return min(finer, self.vectors.finest)

    def _apart(self) -> float:
        """Factor by which a step may enlarge the distance of two iterates."""
        return self.run.process.contraction

    def _divisor(self, chosen: Indices) -> float:
        """Number that divides the gradient sum of a batch with this many records, by the run."""
        records = self.run.batches.records
        count = len(range(*chosen.indices(records))) if isinstance(chosen, slice) else len(chosen)
        return self.run.divisor_of(count)

    def _check_range(self, lengths: float) -> None:
        if not math.isfinite(lengths):
            raise InvalidInput("iterates_overflowed")

    def _check_heard(self, noise: float, lengths: float) -> None:
        """Raise an error if the rounding of a private step is not small beside its noise."""
        if self.source.private and not lengths <= self.farthest * noise:
            raise InvalidInput("noise_lost_in_rounding", noise=noise, length=lengths / 2, least=2 / self.farthest)


# Steps with an optimiser, and averages of iterates.
#
# Noise is added to the iterate itself, or to what a linear optimiser makes it from, so that whatever is rounded is
# rounded before the noise of some step: then it moves a Gaussian by that much, and nothing else. What is released last
# gets its noise last: an average is not computed from the last iterate, but drawn in its place. (docs/numerics.md)


class OptimisedStep(TrainingStep):
    """A step with an optimiser; its memory, the average and the rounding of its sum are kept in `memory`."""

    def __init__(self, run: Run, objective: Objective, source: Source, state: Standing) -> None:
        self.optimizer, self.average = run.optimizer, run.released
        super().__init__(run, objective, source, math.prod(state.weights.shape))
        begun = (state.weights, *self._nothing(state.weights, 1))[: self.average.slots]
        self.memory = state.memory or (*self._nothing(state.weights, self.optimizer.slots), *begun)
        at_the_end = state.step == run.steps and self._linear  # then the state holds what was drawn last
        self._drawn: Floats | None = state.weights if at_the_end else None
        self._last: tuple[Any, float] = (None, 0.0)  # the iterate, and its length

    def __call__(self, step: int, weights: Floats, chosen: Indices, seen: bool) -> Floats:
        size, remembered = float(self.sizes[step]), self.memory[: self.optimizer.slots]
        at = At(step, size, size / float(self.sizes[max(step - 1, 0)]), size * self._beside)
        noise = float(self.noises[step]) * self.optimizer.noise_factor
        lengths = self._lengths(weights, remembered)
        mean = self._noised(weights, self._taken(step, weights, chosen), remembered, at.ratio)
        length = self._length(mean)
        self._check_lengths(noise, lengths + length, weights)
        if step + 1 == self.run.steps and self._linear:
            self._drawn = self._drawn_last(step, weights, mean, remembered, at, noise)
            return self._drawn
        moved = self._noisy(mean, noise, seen, length)
        after, kept = self._settled(weights, moved, remembered, at)
        after = self.vectors.settled(self.run, after, size)
        self._last = after, self._length(after)
        self._check_range(self._last[1])
        self.memory = (*kept, *self._averaged(step, after))
        return after

    def leaving(self, weights: Floats) -> Floats:
        """Return what is released: the average if there is one, otherwise the weights."""
        if self._drawn is not None:
            return self._drawn
        return weights if self.average.plain else self.memory[-2] + self.memory[-1]

    @property
    def _linear(self) -> bool:
        """Whether the last release is a number times what gets the noise, plus something known before."""
        projected = math.isfinite(self.run.domain.diameter) or self.run.prox is not None
        return self.optimizer.linear is not None and not projected

    @property
    def _beside(self) -> float:
        return self.run.weight_decay if self.optimizer.decoupled else 0.0

    def _nothing(self, like: Floats, count: int) -> tuple[Floats, ...]:
        return tuple(self.vectors.zeros_like(like) for _ in range(count))

    def _noised(self, weights: Floats, taken: Floats, remembered: tuple[Floats, ...], ratio: float) -> Floats:
        """Return what the noise is added to."""
        return self.optimizer.noised(weights, taken, remembered, ratio)

    def _settled(self, weights: Floats, moved: Floats, remembered: tuple[Floats, ...], at: At) -> Any:
        """Return the next iterate and memory from the value that got the noise."""
        return self.optimizer.settled(weights, moved, remembered, at)

    def _taken(self, step: int, weights: Floats, chosen: Indices) -> Floats:
        """Return −step_size·(mean gradient, plus the terms that make weights decay)."""
        size, clip = float(self.sizes[step]), None if self.clips is None else float(self.clips[step])
        total = self.objective.gradient_sum(weights, chosen, clip)
        total *= -size / self._divisor(chosen)
        decay = size * (self.decay - self._beside)
        return total if decay == 0 else total - decay * weights

    def _drawn_last(
        self, step: int, weights: Floats, mean: Floats, remembered: tuple[Floats, ...], at: At, noise: float
    ) -> Floats:
        """Return what is released at the end, drawn with the noise of the last step as it enters there."""
        factor, known = self.optimizer.as_released(weights, remembered, at.ratio)
        value = mean if factor == 1 else factor * mean
        value += known
        if not self.average.plain:
            weight, (before, carried) = self.average.weight(step, self.run.steps), self.memory[-2:]
            value, factor = before + (weight * (value - before) + (1 - weight) * carried), weight * factor
        self._check_last(factor * noise, self._length(value) + self._length(weights))
        return self._noisy(value, factor * noise, seen=True)

    def _averaged(self, step: int, after: Floats) -> tuple[Floats, ...]:
        """Return the average after a step, and what its sum rounds off, which is carried along."""
        if self.average.plain:
            return ()
        before, carried = self.memory[-2:]
        weight = self.average.weight(step, self.run.steps)
        more = weight * ((after - before) - carried) + carried
        total = before + more
        added = total - before
        return total, (before - (total - added)) + (more - added)

    def _lengths(self, weights: Floats, remembered: tuple[Floats, ...]) -> float:
        """Sum of the lengths of what a step begins with; the iterate was measured when it was made."""
        found = self._last[1] if weights is self._last[0] else self._length(weights)
        return found + (2 * self._length(remembered[0]) if self.optimizer.linear is not None and remembered else 0.0)

    def _check_lengths(self, noise: float, lengths: float, weights: Floats) -> None:
        self._check_range(lengths)
        roundings = 1.0 if self.run.prox is None else self.run.prox.roundings(weights.shape)
        self._check_heard(noise, lengths * roundings * (2.0 if self.optimizer.slots else 1.0))

    def _check_last(self, noise: float, lengths: float) -> None:
        """Raise an error if the rounding of an average, of all its terms, is not small and would be accounted for."""
        charged = not isinstance(self.run.process.update.curvature, Fact) and self.source.private
        if charged and not ROUNDING * lengths <= self.vectors.straying / 8 * noise:
            raise InvalidInput("noise_lost_in_average", noise=noise, length=lengths)

    def _apart(self) -> float:
        """Factor by which a rounding grows: it affects the next two steps, and the average with its smaller noise."""
        curvature = self.run.process.update.curvature
        if isinstance(curvature, Fact):
            return math.inf
        linear = self.optimizer.linear
        felt = 1.0 if linear is None else sum(map(abs, linear.steps[1:])) + 1.0
        steps = self.run.steps
        drawn = self.average.weight(steps - 1, steps) * math.sqrt(steps)
        return 4 * felt * (1 + abs(curvature[0]) + curvature[1]) * max(1.0, 1 / drawn)


# Sampling of batches.


class Sampler:
    """Source of one batch after the other; it remembers `order` alone, that of the epoch if shuffled."""

    def __init__(self, batches: Batches, source: Source, order: Any = None) -> None:
        self.batches = batches
        self.source = source
        self.order = order

    def batch(self, step: int) -> Indices:
        """The records of this step, counted from 0."""
        self.order = self.batches.order(step, self.source, self.order)
        return self.batches.batch(step, self.source, self.order)
