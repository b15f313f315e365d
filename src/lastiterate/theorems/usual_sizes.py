"""Batches of random size: a theorem is about all but unusual ones, and which are unusual is chosen for the δ in question.

That some batch is of unusual size does not depend on the data, so its probability is added to δ (docs/proofs.md). A larger
one leaves a narrower range of sizes, and so smaller Lipschitz constants and sensitivities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.chosen_slack import ChosenSlack
from lastiterate.curves.notion import Notion
from lastiterate.curves.slack import with_slack
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import RARE
from lastiterate.runs.per_step import is_constant
from lastiterate.runs.process import Process

REFERENCE = 1e-8
"""What a theorem assumes has to hold but for this probability, which is chosen for δ = 1e-5; for smaller δ it may not."""
# Relative: a range that changes less may be worth less than its probability, so that both are tried.
_NEAR = 0.01
# Of δ(ε): what to begin with, below which no exception is chosen, and what feels the exception that it was begun with.
_USUAL, _DEEP, _FELT = math.log(1e-5), math.log(1e-14), math.log(30 * REFERENCE)


@dataclass(frozen=True, eq=False)
class UsualSizes:
    """The process of all but unusual batches, for each probability of these, as far as the theorem `holds` for it."""

    process: Process
    holds: Callable[[Process], bool]
    sees: Callable[[Process], tuple[Any, ...]]
    _known: dict[float, Process | None] = field(default_factory=dict, init=False, repr=False)
    _chosen: dict[int, tuple[float, ...]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def extreme(self) -> float:
        """A probability that no δ feels."""
        return up(len(self.process) * RARE)

    def but_for(self, exception: float) -> Process | None:
        """None where the theorem says nothing of it."""
        if exception not in self._known:
            given = self.process.but_for(exception)
            self._known[exception] = given if self.holds(given) else None
        return self._known[exception]

    def exceptions(self, power: int) -> tuple[float, ...]:
        """Probabilities to try for a δ that fits this power of ten: no exception where nothing is gained by one."""
        if power not in self._chosen:
            self._chosen[power] = self._worth_a_try(ChosenSlack.exception(power))
        return self._chosen[power]

    def _worth_a_try(self, chosen: float) -> tuple[float, ...]:
        others = [one for one in (0.0, self.extreme) if self.but_for(one) is not None]
        same = [one for one in others if one <= chosen and self._apart(one, chosen) == 0]
        if same:
            return (same[0],)
        first = () if self.but_for(chosen) is None else (chosen,)
        return (*first, *(one for one in others if one >= chosen or self._apart(one, chosen) < _NEAR))

    def _apart(self, one: float, other: float) -> float:
        """The largest relative difference of what the theorem sees."""
        first, second = self.but_for(one), self.but_for(other)
        if first is None or second is None:
            return math.inf
        return max(_apart(*pair) for pair in zip(self.sees(first), self.sees(second), strict=True))


def _apart(*seen: Any) -> float:
    """Of one quantity; what is stored once for all steps is looked at once."""
    arrays = [np.asarray(values) for values in seen]
    one, other = (array.reshape(-1)[: 1 if all(map(is_constant, arrays)) else None] for array in arrays)
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(one == other, 0.0, np.abs(one - other) / np.maximum(np.abs(other), 1e-300))))


@dataclass(frozen=True, eq=False, repr=False)
class OfUsualSizes(Notion):
    """`bound` of the process of usual batches, their complement added to δ: the best choice for what is asked."""

    sizes: UsualSizes
    bound: Callable[[Process], Notion]
    adjacency: Adjacency = REPLACE_ONE
    _known: dict[float, Notion] = field(default_factory=dict, init=False, repr=False)

    def member(self, exception: float) -> Notion | None:
        given = self.sizes.but_for(exception)
        if given is None:
            return None
        if exception not in self._known:
            self._known[exception] = with_slack(self.bound(given), exception)
        return self._known[exception]

    def _members(self, power: int) -> list[Notion]:
        found = (self.member(exception) for exception in self.sizes.exceptions(power))
        return [one for one in found if one is not None]

    def _epsilon(self, log_deltas: Floats) -> Floats:
        powers = np.array([ChosenSlack.power(one) for one in log_deltas.tolist()])
        found = np.full_like(log_deltas, np.inf)
        for power in np.unique(powers).tolist():
            asked = powers == power
            for member in self._members(power):
                found[asked] = np.minimum(found[asked], member._epsilon(log_deltas[asked]))
        return found

    def _log_delta(self, epsilons: Floats) -> Floats:
        """By any of its members: what is found tells for which δ to choose, and the last is felt by no δ."""
        found, seen = np.zeros_like(epsilons), set[float]()

        def look(exceptions: tuple[float, ...]) -> None:
            nonlocal found
            for exception in set(exceptions) - seen:
                member = self.member(exception)
                if member is not None:
                    found = np.minimum(found, member._log_delta(epsilons))
                seen.add(exception)

        for middle in (_USUAL, None, None):
            median = float(np.median(np.clip(found, _DEEP, -1e-9)))
            look(self.sizes.exceptions(ChosenSlack.power(median if middle is None else middle)))
        if 0.0 not in seen and found.size and found.min() < _FELT:
            look((self.sizes.extreme,))
        return found

    def _after(self, mu: float) -> OfUsualSizes:
        return replace(self, bound=lambda given: self.bound(given).after(mu))

    def epsilon_estimate(self, log_delta: float) -> float:
        members = self._members(ChosenSlack.power(log_delta))
        return min((member.epsilon_estimate(log_delta) for member in members), default=0.0)


def without_exceptions(notion: Notion) -> Notion:
    """The same of all batches, where unusual ones make no difference to what the theorem sees: this composes exactly."""
    if isinstance(notion, OfUsualSizes) and notion.sizes.exceptions(ChosenSlack.power(_USUAL)) == (0.0,):
        plain = notion.member(0.0)
        return plain if plain is not None and plain.adjacency is notion.adjacency else notion
    return notion
