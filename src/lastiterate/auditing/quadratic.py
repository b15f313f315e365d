"""A run on quadratic losses, by the update as it is written: two Gaussians, whose distance is known exactly.

The loss of a record is hessian/2·x² + g·x, g moves by the sensitivity when the record is replaced, and is as long as it may
be where the neighbour has nothing. Nothing here uses the numbers that theorems see; every convention of the noise is applied
once more, as its definition says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastiterate.auditing.allowed import allowed_hessians
from lastiterate.errors import Unavailable
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import geometric_sum
from lastiterate.runs.batches import Batches, Turns
from lastiterate.runs.per_step import each, is_constant, spread
from lastiterate.runs.run import Run


@dataclass(frozen=True, eq=False)
class QuadraticSteps:
    """x ← factor·x + noise·N(0, 1); in a batch with the record, and + push."""

    factor: Floats
    push: Floats
    noise: Floats

    @property
    def alike(self) -> bool:
        return all(is_constant(one) for one in (self.factor, self.push, self.noise))


def steps_of(run: Run, hessian: float) -> QuadraticSteps:
    """The steps of this run on such losses: x ← prox((1 − η·decay)·x − η·(mean gradient) + noise)."""
    eta = spread("step_size", run.step_size, run.steps)
    decay = run.loss.l2 + run.weight_decay
    squeeze = each(lambda size: 1 / (1 + size * (run.prox.strong_convexity if run.prox else 0.0)), eta)
    sizes = _sizes(run)
    change = each(lambda clip: np.minimum(2 * clip, run.loss.gradient_sensitivity), _clip(run))
    if not run.adjacency.replaces:  # half of it: then all other records may have any gradient that the record may
        change = each(lambda moved: np.minimum(moved / 2, run.loss.gradient_bound), change)
    return QuadraticSteps(
        each(lambda size, q, count, by: q * (1 - size * decay - size * hessian * count / by), eta, squeeze, *sizes),
        each(lambda size, s, q, by: q * size * s / by, eta, change, squeeze, sizes[1]),
        each(lambda std, q: q * std, _noise_on_iterate(run, eta), squeeze),
    )


def _sizes(run: Run) -> tuple[Floats, Floats]:
    """Number of records of each batch, where chance has no part in it, and what its gradient sum is divided by."""
    batches = run.batches
    if not batches.uneven:
        return (np.broadcast_to(batches.divisor, run.steps),) * 2
    last = batches.last_size
    counts = batches.pattern(batches.divisor, last, run.steps)
    return counts, batches.pattern(batches.divisor, run.divisor_of(last), run.steps)


def _clip(run: Run) -> Floats:
    return np.broadcast_to(np.inf, run.steps) if run.clip is None else spread("clip", run.clip, run.steps)


def _noise_on_iterate(run: Run, eta: Floats) -> Floats:
    """Standard deviation of the noise on the iterate, from the update as the kind of noise writes it."""
    nothing, one = np.zeros(()), np.ones(())

    def at(step: int) -> float:
        return abs(float(run.noise.update(nothing, step, float(eta[step]), nothing, run.batches.divisor, one)))

    if is_constant(eta) and run.noise.constant:
        return np.broadcast_to(at(0), run.steps)
    return np.array([at(step) for step in range(run.steps)])


def exact_mu(run: Run, hessian: float, releases: tuple[int, ...] = ()) -> float:
    """μ of the last iterate, and of those after `releases` steps, for batches that are not random.

    Of the record that the last step sees. Given the iterate that was released before, an iterate is again one of two
    Gaussians, so the squares of their μ add up.
    """
    steps = steps_of(run, hessian)
    every = run.batches.per_epoch if run.batches.turns is Turns.FIXED_ORDER else 1
    if steps.alike and not releases:
        return _mu_alike(steps, every, run.steps)
    return exact_mu_of(steps, run.batches.inclusion(run.steps), releases)


def exact_mu_of(steps: QuadraticSteps, seen: Floats, releases: tuple[int, ...] = ()) -> float:
    """Exact mu of records that all push in one direction, `seen` of them at each step."""
    ends = (0, *releases, len(seen))
    squares = [_mu_of_part(steps, seen, ends[k], ends[k + 1]) ** 2 for k in range(len(ends) - 1)]
    return math.sqrt(math.fsum(squares))


def weights_of(factor: Floats) -> Floats:
    """Effect at the end of a unit push at each step."""
    after = np.ones(len(factor))
    np.cumprod(factor[:0:-1], out=after[1:])
    return after[::-1]


def _mu_of_part(steps: QuadraticSteps, seen: Floats, first: int, last: int) -> float:
    part = slice(first, last)
    weights = weights_of(steps.factor[part])
    gap = float(np.sum(weights * steps.push[part] * seen[part]))
    return abs(gap) / math.sqrt(float(np.sum(np.square(weights * steps.noise[part]))))


def _mu_alike(steps: QuadraticSteps, every: int, count: int) -> float:
    """μ of equal steps if the record is used every `every` steps, counted from the end."""
    factor, turns = float(steps.factor[0]), -(-count // every)
    gap = abs(geometric_sum(factor**every, turns)) * float(steps.push[0])
    return gap / (float(steps.noise[0]) * math.sqrt(geometric_sum(factor**2, count)))


# Simulation in one dimension: something to audit whose exact ε is known.


PUSHES, OPPOSITE = 0.5, -0.5  # of the sensitivity: the record, and its neighbour


@dataclass(frozen=True, eq=False)
class Simulation:
    """`train(PUSHES, seed)` and `train(OPPOSITE, seed)` are last iterates on two neighbouring data sets."""

    steps: QuadraticSteps
    batches: Batches
    count: int
    half_width: float

    def train(self, record: float, seed: int) -> float:
        """Return the last iterate of a training with this record and seed."""
        source = np.random.default_rng(seed)
        seen = self._seen(source)
        pushes = np.where(seen, record * self.steps.push, 0.0) + self.steps.noise * source.standard_normal(self.count)
        iterate = 0.0
        for factor, push in zip(self.steps.factor.tolist(), pushes.tolist(), strict=True):
            iterate = min(max(factor * iterate + push, -self.half_width), self.half_width)
        return iterate

    def _seen(self, source: np.random.Generator) -> NDArray[np.bool_]:
        """Draw whether each step uses the record; in a fixed order, a record that the last step uses."""
        per_epoch, steps = self.batches.per_epoch, np.arange(self.count)
        if self.batches.shuffled:
            places = self._places(source, -(-self.count // per_epoch))
            place = places[steps // per_epoch] if self.batches.reshuffled else places[0]
            return np.asarray(steps % per_epoch == place)
        return np.asarray(source.random(self.count) < self.batches.inclusion(self.count))

    def _places(self, source: np.random.Generator, epochs: int) -> NDArray[np.intp]:
        """Draw the batch of the record in each epoch: for itself, or by its place among the records."""
        if self.batches.turns is Turns.OWN_PLACE:
            return source.integers(self.batches.per_epoch, size=epochs, dtype=np.intp)
        return source.integers(self.batches.records, size=epochs, dtype=np.intp) // self.batches.largest


def simulation(run: Run) -> Simulation:
    """Return a simulation of the run on the flattest losses, projected onto an interval if there is a domain."""
    hessians = allowed_hessians(run)
    bounded = math.isfinite(run.domain.diameter)
    if hessians is None or run.batches.own_mean or (bounded and run.prox is not None):
        raise Unavailable("not_simulated")
    return Simulation(steps_of(run, hessians[0]), run.batches, run.steps, run.domain.widest_interval / 2)
