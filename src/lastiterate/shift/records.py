"""The steps that one record's shift meets, when it takes its turn now and then. Trusted, as `certify` is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.algorithms.per_step import extremes
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.merge import interleaved, tails, whole, windows
from lastiterate.shift.steps import Counts, Steps


@dataclass(frozen=True, eq=False)
class Turns:
    """Steps of which a record sees one in `every`, more or less. `constant`: all steps are alike.

    Stretches without the record are merged into one step, which loses nothing; unless distances may grow there, and starting
    half-way from the diameter could be better, or the merged numbers overflow: then all steps are kept. With an unknown
    factor nothing may be left between two turns, so that what lies between does not matter.
    """

    steps: Steps
    every: int
    constant: bool

    def regular(self, first: int) -> Steps:
        """What a record meets that takes part at `first`, `first` + every, …; what comes before is left out."""
        if self.between or self.unknown:
            return self.at(np.arange(first, len(self.steps), self.every))
        return self.steps.part(first, len(self.steps))  # as they are: equal steps stay stored once

    def at(self, turns: Counts, pushes: Floats | None = None) -> Steps:
        """What a record meets that takes part at these steps only, with the steps' own pushes or with others."""
        pushes = self.steps.sensitivity[turns] if pushes is None else pushes
        own = Steps(pushes, self.steps.noise[turns], self.steps.lipschitz[turns], self.steps.diameter)
        if self.unknown:
            return Steps(pushes, own.noise, np.full(len(turns), math.inf))
        return self._dense(turns, pushes) if self.dense else self._merged(turns, own)

    @property
    def between(self) -> int:
        """How many steps there usually are between two turns."""
        return self.every - 1

    @cached_property
    def unknown(self) -> bool:
        return math.isinf(extremes(self.steps.lipschitz)[1])

    @cached_property
    def dense(self) -> bool:
        """Whether every record needs every step: slow when there are many batches."""
        if self.unknown or not self.between:
            return not self.unknown
        growing = math.isfinite(self.steps.diameter) and extremes(self.steps.lipschitz)[1] > 1
        return growing or not np.isfinite(self._windows).all() or not np.isfinite(self._tails).all()

    def _dense(self, turns: Counts, pushes: Floats) -> Steps:
        tail = self.steps.part(int(turns[0]), len(self.steps))
        sensitivity = np.zeros(len(tail))
        sensitivity[turns - turns[0]] = pushes
        return Steps(sensitivity, tail.noise, tail.lipschitz, tail.diameter)

    def _merged(self, turns: Counts, own: Steps) -> Steps:
        starts, ends = turns + 1, np.append(turns[1:], len(self.steps))
        return interleaved(own, *self._between(starts, ends), ends > starts)

    def _between(self, starts: Counts, ends: Counts) -> tuple[Floats, Floats]:
        """The stretches from each start up to each end, merged: looked up where they are as long as usual or end the run."""
        factor, noise = np.ones(len(starts)), np.zeros(len(starts))
        usual = ends - starts == self.between
        at = np.zeros(usual.sum(), np.intp) if self.constant else starts[usual]
        factor[usual], noise[usual] = self._windows[0][at], self._windows[1][at]
        for index in np.flatnonzero(~usual & (ends > starts)):
            factor[index], noise[index] = self._stretch(int(starts[index]), int(ends[index]))
        return factor, noise

    def _stretch(self, start: int, end: int) -> tuple[float, float]:
        if end == len(self.steps) and end - start < self.every:
            factors, noises = self._tails
            return float(factors[start - end]), float(noises[start - end])
        return whole(self.steps.lipschitz[start:end], self.steps.noise[start:end])

    @cached_property
    def _windows(self) -> tuple[Floats, Floats]:
        """All stretches of the usual length; one of them if all steps are alike."""
        if self.between >= len(self.steps):
            return np.ones(1), np.ones(1)
        count = self.between if self.constant else len(self.steps)
        return windows(self.steps.lipschitz[:count], self.steps.noise[:count], self.between)

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        """All stretches after a last turn that are shorter than usual."""
        last = slice(max(len(self.steps) - self.between, 0), len(self.steps))
        return tails(self.steps.lipschitz[last], self.steps.noise[last])


def latest_turns(steps: Steps, ends: Counts, constant: bool) -> Floats:
    """For each piece of the steps, which ends with one of `ends`, the worst push at its last step.

    A turn at t is carried to the end with the factors after t; payments on the way are the same for both.
    """
    lengths = np.diff(np.append(-1, ends))
    pushes = np.zeros(len(ends))
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        firsts = ends[chosen[:1] if constant else chosen] - length + 1
        pushes[chosen] = _carried(steps, firsts, int(length))
    return pushes


def _carried(steps: Steps, firsts: Counts, length: int) -> Floats:
    carried = np.zeros(len(firsts))
    with np.errstate(over="ignore"):
        for place in range(length):
            at = firsts + place
            carried = np.maximum(carried * steps.lipschitz[at], steps.sensitivity[at])
    return carried * (1 + length * 2.0**-52)
