"""Many guarantees for one release, of which the best is sought when something is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.adjacency import REPLACE_ONE, Adjacency
from lastiterate.privacy.notion import Notion

_FEW = 3  # so many values are worth a search each; of more, three are searched for
# Times the best: an estimate above it stands for the answer; less could pass over the best rung, more is slower.
_HOPELESS = 2.0
_LARGE = 12.0  # an ε above which estimates are near enough to tell
_RATIO = 1.3  # between rungs: around the best ε is flat, so that closer rungs gain little; a choice of effort

Estimate = Callable[[Notion, float], float]


@dataclass(frozen=True, eq=False)
class Ladder(Notion):
    """One guarantee per rung; every rung is valid, so where the search ends is a matter of tightness only.

    Along the rungs a guarantee gets better and then worse: the search halves intervals, and looks at few rungs.
    """

    rungs: tuple[int, ...]
    climb: Callable[[int], Notion]
    adjacency: Adjacency = REPLACE_ONE
    _known: dict[int, Notion] = field(default_factory=dict, init=False, repr=False)

    def member(self, index: int) -> Notion:
        """The guarantee of this rung, made once."""
        if index not in self._known:
            self._known[index] = self.climb(self.rungs[index])
        return self._known[index]

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return self._least(log_deltas, lambda member, values: member._epsilon(values), _epsilon_estimate)

    def epsilon_estimate(self, log_delta: float) -> float:
        """About the least ε, if every rung has an estimate; else 0."""
        return min(self.member(index).epsilon_estimate(log_delta) for index in range(len(self.rungs)))

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self._least(epsilons, lambda member, values: member._log_delta(values), _no_estimate)

    def best_rung(self, log_delta: float) -> int:
        """The rung that gives the least ε, as far as the search goes."""
        wanted = np.array([log_delta])
        return self.rungs[self._search(wanted, lambda member, values: member._epsilon(values), _epsilon_estimate)]

    def _least(self, values: Floats, ask: Callable[[Notion, Floats], Floats], estimate: Estimate) -> Floats:
        """A few values one by one; for many, the rungs that are best for some of them."""
        if not values.size:
            return values.copy()
        spots = values if values.size <= _FEW else np.quantile(values, [0.1, 0.5, 0.9])
        chosen = {self._search(np.array([spot]), ask, estimate) for spot in spots.tolist()}
        return np.asarray(np.min([ask(self.member(index), values) for index in sorted(chosen)], axis=0))

    def _search(self, value: Floats, ask: Callable[[Notion, Floats], Floats], estimate: Estimate) -> int:
        found: dict[int, float] = {}

        def at(index: int) -> float:
            if index not in found:
                # What is far from the best so far is not worth the work of a sharp bound: it will not be chosen.
                guess = estimate(self.member(index), float(value[0])) if found else 0.0
                hopeless = guess > max(_LARGE, _HOPELESS * min(found.values(), default=math.inf))
                found[index] = guess if hopeless else float(ask(self.member(index), value)[0])
            return found[index]

        low, high = 0, len(self.rungs) - 1
        at(high)  # often a bound of another kind: no window, one block
        while high - low > 2:
            left, right = low + round(0.382 * (high - low)), low + round(0.618 * (high - low))
            if left == right:
                right += 1
            low, high = (low, right) if at(left) <= at(right) else (left, high)
        for index in range(low, high + 1):
            at(index)
        return min(found, key=lambda index: (found[index], index))


def _epsilon_estimate(notion: Notion, log_delta: float) -> float:
    return notion.epsilon_estimate(log_delta)


def _no_estimate(notion: Notion, value: float) -> float:
    return 0.0


def rungs(most: int, ratio: float = _RATIO, least: int = 1) -> tuple[int, ...]:
    """Whole numbers from `least` to `most`, each about `ratio` times the one before."""
    found = [min(least, most)]
    while found[-1] < most:
        found.append(min(max(found[-1] + 1, round(found[-1] * ratio)), most))
    return tuple(found)
