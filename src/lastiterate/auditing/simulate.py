"""A run on quadratic losses in one dimension, executed: something to audit whose exact cost is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastiterate.auditing.allowed import allowed_hessians
from lastiterate.auditing.quadratic import QuadraticSteps, steps_of
from lastiterate.errors import Unavailable
from lastiterate.runs.batches import Batches, Turns
from lastiterate.runs.run import Run

PUSHES, OPPOSITE = 0.5, -0.5  # of the sensitivity: the record, and its neighbour


@dataclass(frozen=True, eq=False)
class Simulation:
    """`train(PUSHES, seed)` and `train(OPPOSITE, seed)` are last iterates on two neighbouring data sets."""

    steps: QuadraticSteps
    batches: Batches
    count: int
    half_width: float

    def train(self, record: float, seed: int) -> float:
        """The last iterate, step by step."""
        source = np.random.default_rng(seed)
        seen = self._seen(source)
        pushes = np.where(seen, record * self.steps.push, 0.0) + self.steps.noise * source.standard_normal(self.count)
        iterate = 0.0
        for factor, push in zip(self.steps.factor.tolist(), pushes.tolist(), strict=True):
            iterate = min(max(factor * iterate + push, -self.half_width), self.half_width)
        return iterate

    def _seen(self, source: np.random.Generator) -> NDArray[np.bool_]:
        """Whether each step's batch has the record; in a fixed order, the record that the last step sees."""
        per_epoch, steps = self.batches.per_epoch, np.arange(self.count)
        if self.batches.shuffled:
            places = self._places(source, -(-self.count // per_epoch))
            place = places[steps // per_epoch] if self.batches.reshuffled else places[0]
            return np.asarray(steps % per_epoch == place)
        return np.asarray(source.random(self.count) < self.batches.inclusion(self.count))

    def _places(self, source: np.random.Generator, epochs: int) -> NDArray[np.intp]:
        """Of the record in each epoch: any batch for itself, or by its place among the records."""
        if self.batches.turns is Turns.OWN_PLACE:
            return source.integers(self.batches.per_epoch, size=epochs, dtype=np.intp)
        return source.integers(self.batches.records, size=epochs, dtype=np.intp) // self.batches.largest


def simulation(run: Run) -> Simulation:
    """The run on losses as flat as they may be; with projection on an interval, if there is a domain."""
    hessians = allowed_hessians(run)
    bounded = math.isfinite(run.domain.diameter)
    if hessians is None or run.batches.own_mean or (bounded and run.prox is not None):
        raise Unavailable("not_simulated")
    return Simulation(steps_of(run, hessians[0]), run.batches, run.steps, run.domain.widest_interval / 2)
