"""Processes and exact instances to which a theorem applies: what its laws are tried on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.auditing.filtered_instances import FilteredInstance, random_filtered
from lastiterate.auditing.instances import Instance, own_place_instance, random_instance
from lastiterate.privacy.adjacency import REPLACE_ONE, Adjacency
from lastiterate.testing.draws import MOST_DRAWS, draws, there_or_not, with_updates
from lastiterate.theorems.theorem import PLAIN_STEPS, Guarantee, Inapplicable, Theorem

Value = TypeVar("Value")

_A_FEW = 4
_SMALL = 1.5  # a domain, in units of the noise, on which everything is quick


class NothingToTry(Exception):
    """The theorem applies to too few of the runs that are drawn."""


@dataclass(frozen=True)
class Subject:
    """A theorem on trial: its numbers may be off by `tolerance`, a part of them, as those of a search on a grid are.

    So many examples and exact instances are looked at, and `processes` that were given; where `fewer` will do, as many as
    there are, and as can be looked at in so many `seconds`.
    """

    theorem: Theorem
    tolerance: float = 1e-9
    count: int = 3
    instances: int = 4
    processes: tuple[Process, ...] = ()
    fewer: bool = False
    seconds: float = math.inf

    @property
    def examples(self) -> tuple[Process, ...]:
        """Those that were given, and then drawn ones."""
        given = tuple(one for one in self.processes if applies(self.theorem, one))
        drawn = found_examples(self.theorem, self.count) if self.fewer else examples(self.theorem, self.count)
        return _some((*given, *drawn), self.theorem)

    @property
    def exact(self) -> list[tuple[int, Any]]:
        if self.fewer:
            return list(_some(tuple(found_instances(self.theorem, self.instances)), self.theorem))
        return instances(self.theorem, self.instances)

    def in_time(self, values: Iterable[Value]) -> Iterator[Value]:
        """A few of them, and more as long as there is time."""
        end = time.thread_time() + self.seconds
        for number, value in enumerate(values):
            if number >= _A_FEW and time.thread_time() > end:
                return
            yield value

    def epsilon(self, given: Process, delta: float = 1e-5) -> float:
        return epsilon(self.theorem, given, delta)


def _some(found: tuple[Value, ...], theorem: Theorem) -> tuple[Value, ...]:
    if not found:
        raise NothingToTry(f"{theorem.name} applies to nothing that was drawn")
    return found


def draws_for(theorem: Theorem, seed: int) -> Iterator[Process]:
    """With steps and neighbours that the theorem is about."""
    if theorem.updates is not PLAIN_STEPS:
        return with_updates(seed)
    return draws(seed) if REPLACE_ONE in theorem.adjacencies else there_or_not(seed)


def holds(theorem: Theorem, given: Process) -> bool:
    """Whether nothing fails; assumptions that take long to look at come last, and mostly need not be."""
    return all(one.failure(given) is None for one in (theorem.updates, *theorem.assumptions))


def applies(theorem: Theorem, given: Process) -> bool:
    return holds(theorem, given) and isinstance(answer_about(theorem, given), Guarantee)


@cache
def found_examples(theorem: Theorem, count: int, seed: int = 3) -> tuple[Process, ...]:
    """Processes to which the theorem applies, up to so many."""
    return tuple(islice((given for given in draws_for(theorem, seed) if applies(theorem, given)), count))


def examples(theorem: Theorem, count: int, seed: int = 3) -> tuple[Process, ...]:
    """So many."""
    found = found_examples(theorem, count, seed)
    if len(found) < count:
        raise NothingToTry(f"{theorem.name} applies to {len(found)} of {MOST_DRAWS} processes")
    return found


@lru_cache(maxsize=1000)
def _drawn_instance(seed: int, adjacency: Adjacency, most_steps: int, drawn: Any) -> Any:
    """Theorems share those that apply to several: an exact law takes longer than a bound."""
    source = np.random.default_rng(seed)
    if drawn is random_instance:
        return drawn(source, most_steps, adjacency)
    instance: Instance | FilteredInstance = drawn(source, most_steps)
    if drawn is own_place_instance:
        return instance
    return replace(instance, process=replace(instance.process, adjacency=adjacency))


@lru_cache(maxsize=100)
def found_instances(
    theorem: Theorem, count: int, adjacency: Adjacency = REPLACE_ONE, small: bool = False
) -> list[tuple[int, Any]]:
    """Exact one-dimensional runs to which the theorem applies, with their seeds, up to so many."""
    drawn: Any = random_filtered
    if theorem.updates is PLAIN_STEPS:
        drawn = random_instance if REPLACE_ONE in theorem.adjacencies else own_place_instance
    found: list[tuple[int, Any]] = []
    for seed in range(50_000, 50_000 + MOST_DRAWS):
        instance = _drawn_instance(seed, adjacency, 30 if small else 120, drawn)
        if small and _SMALL < instance.process.diameter < math.inf:
            continue
        if holds(theorem, instance.process):
            found.append((seed, instance))
            if len(found) == count:
                break
    return found


def instances(
    theorem: Theorem, count: int, adjacency: Adjacency = REPLACE_ONE, small: bool = False
) -> list[tuple[int, Any]]:
    """So many."""
    found = found_instances(theorem, count, adjacency, small)
    if len(found) < count:
        raise NothingToTry(f"{theorem.name} applies to {len(found)} instances only")
    return found


@lru_cache(maxsize=100)
def answer_about(theorem: Theorem, given: Process) -> Guarantee | Inapplicable:
    """What it says of this very process: every law asks about the same examples, and beside them about others."""
    return theorem.apply(given)


def epsilon(theorem: Theorem, given: Process, delta: float = 1e-5) -> float:
    """∞ where the theorem says nothing."""
    answer = answer_about(theorem, given)
    return answer.epsilon(delta) if isinstance(answer, Guarantee) else math.inf
