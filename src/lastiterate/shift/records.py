"""The steps that one record's shift meets, when it takes its turn now and then. Trusted, as `certify` is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.shift.merge import interleaved, whole, windows
from lastiterate.shift.steps import Counts, Steps


@dataclass(frozen=True, eq=False)
class Turns:
    """Steps of which a record sees one in `every`, more or less. `constant`: all steps are alike.

    Stretches without the record are merged into one step, which loses nothing; unless distances may grow there, and starting
    half-way from the diameter could be better, or the merged numbers overflow: then all steps are kept.
    """

    steps: Steps
    every: int
    constant: bool

    def regular(self, first: int) -> Steps:
        """What a record meets that takes part at `first`, `first` + every, …; what comes before is left out."""
        return self.at(np.arange(first, len(self.steps), self.every))

    def at(self, turns: Counts) -> Steps:
        """What a record meets that takes part at these steps only."""
        return self._dense(turns) if self.dense else self._merged(turns)

    @cached_property
    def dense(self) -> bool:
        """Whether every record needs every step: slow when there are many batches."""
        growing = np.isfinite(self.steps.diameter) and bool((self.steps.lipschitz > 1).any())
        return self.every == 1 or growing or not np.isfinite(self._windows[0]).all()

    def _dense(self, turns: Counts) -> Steps:
        tail = self.steps.part(int(turns[0]), len(self.steps))
        sensitivity = np.zeros(len(tail))
        sensitivity[turns - turns[0]] = self.steps.sensitivity[turns]
        return Steps(sensitivity, tail.noise, tail.lipschitz, tail.diameter)

    def _merged(self, turns: Counts) -> Steps:
        given = self.steps
        own = Steps(given.sensitivity[turns], given.noise[turns], given.lipschitz[turns], given.diameter)
        starts, ends = turns + 1, np.append(turns[1:], len(given))
        return interleaved(own, *self._between(starts, ends), ends > starts)

    def _between(self, starts: Counts, ends: Counts) -> tuple[Floats, Floats]:
        """The stretches from each start up to each end, merged: looked up where they have the usual length."""
        factor, noise = np.ones(len(starts)), np.zeros(len(starts))
        usual = ends - starts == self.every - 1
        at = np.zeros(usual.sum(), np.int64) if self.constant else starts[usual]
        factor[usual], noise[usual] = self._windows[0][at], self._windows[1][at]
        for index in np.flatnonzero(~usual & (ends > starts)):
            stretch = self.steps.part(int(starts[index]), int(ends[index]))
            factor[index], noise[index] = whole(stretch.lipschitz, stretch.noise)
        return factor, noise

    @cached_property
    def _windows(self) -> tuple[Floats, Floats]:
        """All stretches of the usual length; one of them if all steps are alike."""
        length = self.every - 1
        if length >= len(self.steps):
            return np.ones(1), np.ones(1)
        count = length if self.constant else len(self.steps)
        return windows(self.steps.lipschitz[:count], self.steps.noise[:count], length)


def latest_turns(steps: Steps, every: int) -> Floats:
    """For each stretch of `every` steps, a push at its last step that is no better than any single turn inside it.

    A turn at t is carried to the end with the factors after t; payments on the way are the same for both.
    """
    epochs = len(steps) // every
    shape = (epochs, every)
    sensitivity, lipschitz = (
        values[: epochs * every].reshape(shape) for values in (steps.sensitivity, steps.lipschitz)
    )
    carried = np.zeros(epochs)
    with np.errstate(over="ignore"):
        for column in range(every):
            carried = np.maximum(carried * lipschitz[:, column], sensitivity[:, column])
    return carried * (1 + every * 2.0**-52)
