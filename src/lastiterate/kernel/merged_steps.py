"""The steps that one record's shift meets if it takes its turn now and then; those between two turns are merged.

Steps k = 1..n with factors L_k and noise ν_k act on a distance like one step with factor ΠL_k and noise √U,
U = Σ ν_k²·(L_{k+1}⋯L_n)²: paying a at that step means paying a·ν_k²·L_{k+1}⋯L_n / U at step k. Two such steps merge as
P = P_1·P_2 and U = U_1·P_2² + U_2. Factors are rounded up, noise down, and what leaves the range of floats is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .steps import Counts, Floats, Steps, greatest

_HALF_ULP = 2.0**-53
_LEAST, _LOG_MOST, _LEAST_SQUARE = 1e-150, 345.388, 1e-280  # below the last, terms of a sum may have lost digits


@dataclass(frozen=True, eq=False)
class RecordSteps:
    """Steps of which a record sees one in `every`, more or less; stretches without it are merged, which loses nothing.

    Unless distances may grow there, and starting half-way from the diameter could be better, or the merged numbers overflow:
    then all steps are kept. With an unknown factor nothing may be left between two turns, and what lies between is left out.
    """

    steps: Steps
    every: int

    def regular(self, *firsts: int) -> Steps | None:
        """Return what a record meets that takes part at `first`, `first` + every, …; what comes before is left out.

        With two of them, at both. None where all come too late.
        """
        if self.every == 1 and not self.unknown:
            return self.steps.part(firsts[0], len(self.steps))  # as they are: equal steps stay stored once
        turns = np.sort(np.concatenate([np.arange(first, len(self.steps), self.every) for first in firsts]))
        return self.at(turns) if turns.size else None

    def at(self, turns: Counts, pushes: Floats | None = None) -> Steps:
        """Return what a record meets that takes part at these steps only, with the steps' own pushes or with others."""
        pushes = self.steps.sensitivity[turns] if pushes is None else pushes
        if self.unknown:
            return Steps(pushes, self.steps.noise[turns], np.full(len(turns), math.inf))
        merged = None if self.dense else self._merged(turns, pushes)
        return self._dense(turns, pushes) if merged is None else merged

    @cached_property
    def unknown(self) -> bool:
        return math.isinf(greatest(self.steps.lipschitz))

    @cached_property
    def dense(self) -> bool:
        """Whether every record needs every step: slow when there are many batches."""
        if self.unknown or self.every == 1:
            return not self.unknown
        growing = math.isfinite(self.steps.diameter) and greatest(self.steps.lipschitz) > 1
        return growing or not np.isfinite(self._windows[0]).all()

    def _dense(self, turns: Counts, pushes: Floats) -> Steps:
        return self.dense_at(turns, pushes).part(int(turns[0]), len(self.steps))

    def dense_at(self, turns: Counts, pushes: Floats) -> Steps:
        """Return all steps as they are, with these pushes at these turns and none elsewhere."""
        sensitivity = np.zeros(len(self.steps))
        sensitivity[turns] = pushes
        return Steps(sensitivity, self.steps.noise, self.steps.lipschitz, self.steps.diameter)

    def _merged(self, turns: Counts, pushes: Floats) -> Steps | None:
        """The record's own steps, each followed by the merged steps up to the next, where there are any."""
        starts, ends = turns + 1, np.append(turns[1:], len(self.steps))
        factors, noises = np.ones(len(turns)), np.zeros(len(turns))
        usual = ends - starts == self.every - 1  # these are looked up
        at = np.zeros(usual.sum(), np.intp) if self.steps.alike else starts[usual]
        factors[usual], noises[usual] = self._windows[0][at], self._windows[1][at]
        others = np.flatnonzero(~usual & (ends > starts))
        # Where all steps are alike, one stretch of each length is enough.
        kinds = (ends - starts)[others] if self.steps.alike else others
        _, which, of = np.unique(kinds, return_index=True, return_inverse=True)
        cuts = [slice(starts[index], ends[index]) for index in others[which]]
        found = [whole(self.steps.lipschitz[cut], self.steps.noise[cut]) for cut in cuts]
        factors[others], noises[others] = np.array(found).reshape(-1, 2)[of].T
        if not np.isfinite(factors).all():
            return None
        kept, nothing = np.column_stack([ends > turns, ends > starts]), np.zeros(len(turns))
        pairs = (pushes, nothing), (self.steps.noise[turns], noises), (self.steps.lipschitz[turns], factors)
        sensitivity, noise, lipschitz = (np.column_stack(pair)[kept] for pair in pairs)
        return Steps(sensitivity, noise, lipschitz, self.steps.diameter)

    @cached_property
    def _windows(self) -> tuple[Floats, Floats]:
        """(factors, noises) of all stretches of the usual length; of one of them if all steps are alike."""
        length = self.every - 1
        if length >= len(self.steps):
            return np.ones(1), np.ones(1)
        count = length if self.steps.alike else len(self.steps)
        return windows(self.steps.lipschitz[:count], self.steps.noise[:count], length)


def windows(lipschitz: Floats, noise: Floats, length: int) -> tuple[Floats, Floats]:
    """(factor, noise) of the `length` ≥ 1 steps that begin at each place where so many are left, by doubling."""
    found: tuple[Floats, Floats] = np.ones(len(noise) + 1), np.zeros(len(noise) + 1)
    remaining, width = length, 1
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power = np.asarray(lipschitz), np.square(noise)
        while True:
            if remaining & 1:
                found = _joined(power, found, width)
            remaining >>= 1
            if not remaining:
                return _rounded(*found, length, lipschitz)
            power, width = _joined(power, power, width), 2 * width


def whole(lipschitz: Floats, noise: Floats) -> tuple[float, float]:
    """Return the (factor, noise) of all these steps together."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        after = np.cumprod(np.append(1.0, lipschitz[::-1]))
        square = np.square(noise[::-1] * after[:-1]).sum(keepdims=True)
        factor, together = _rounded(after[-1:], square, len(noise), lipschitz)
    return float(factor[0]), float(together[0])


def _joined(first: tuple[Floats, Floats], then: tuple[Floats, Floats], width: int) -> tuple[Floats, Floats]:
    count = min(len(first[0]), len(then[0]) - width)
    factor, square = (values[width : width + count] for values in then)
    return first[0][:count] * factor, first[1][:count] * factor * factor + square  # a square by itself may underflow


def _rounded(factor: Floats, square: Floats, length: int, lipschitz: Floats) -> tuple[Floats, Floats]:
    """Round to the safe side: a product of n numbers is off by n half ulps, a sum of such squares by 4n, its root by 2n."""
    slack = 4 * (length + 1) * _HALF_ULP
    # What underflows on its way has lost its digits: it must not grow by more than _LOG_MOST, and stays below _LEAST.
    grown = np.cumsum(np.append(0.0, np.log(np.maximum(lipschitz, 1.0))))
    usable = (grown[length:] - grown[:-length] <= _LOG_MOST) & (square < math.inf) & (square >= _LEAST_SQUARE)
    factor = np.where(usable, np.maximum(factor * (1 + slack), _LEAST), math.inf)
    return factor, np.where(usable, np.sqrt(square) * (1 - slack), math.nan)


def latest_turns(steps: Steps, ends: Counts) -> Floats:
    """Return for each piece of the steps, which ends with one of `ends`, the worst push at its last step.

    A turn at t is carried to the end with the factors after t; payments on the way are the same for both.
    """
    lengths = np.diff(np.append(-1, ends))
    pushes = np.zeros(len(ends))
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        at = ends[chosen[:1] if steps.alike else chosen] - length
        carried = np.zeros(len(at))
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(length):
                at = at + 1
                stretched = np.where(
                    carried > 0, carried * steps.lipschitz[at], 0.0
                )  # nothing apart stays so: 0·∞ is 0
                carried = np.maximum(stretched, steps.sensitivity[at])
        pushes[chosen] = carried * (1 + length * 2.0**-52)
    return pushes
