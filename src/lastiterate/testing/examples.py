"""Processes and exact instances to which a theorem applies: what its laws are tried on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement, islice
from typing import Any, TypeVar

import numpy as np

from lastiterate.auditing.filtered import FilteredInstance, random_filtered, scheduled_instance
from lastiterate.auditing.instances import Instance, own_place_instance, random_instance
from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.runs.process import Process
from lastiterate.testing.draws import MOST_DRAWS, draws, there_or_not, with_updates
from lastiterate.theorems.evidence import About
from lastiterate.theorems.features import MOMENTUM
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

Value = TypeVar("Value")

_A_FEW = 4
_POOL, _MOST_LOOKED_AT = 30, 300  # of exact instances that a theorem covers, and of those that are drawn for them
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
        """Processes that the theorem covers: those given first, then random ones."""
        given = tuple(one for one in self.processes if applies(self.theorem, one))
        drawn = found_examples(self.theorem, self.count) if self.fewer else examples(self.theorem, self.count)
        return _some((*given, *drawn), self.theorem)

    @property
    def exact(self) -> list[tuple[int, Any]]:
        if self.fewer:
            return list(_some(tuple(found_instances(self.theorem, self.instances)), self.theorem))
        return instances(self.theorem, self.instances)

    @property
    def varied(self) -> list[tuple[int, Any]]:
        """Exact runs of all kinds that the theorem covers, with their seeds."""
        return list(_some(tuple(varied_instances(self.theorem, self.instances)), self.theorem))

    def in_time(self, values: Iterable[Value]) -> Iterator[Value]:
        """Yield a few values, and more as long as there is time."""
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
    """Yield random processes with the updates and neighbours that the theorem is about."""
    if of_filters(theorem):
        return with_updates(seed)
    return draws(seed) if REPLACE_ONE in theorem.adjacencies else there_or_not(seed)


def of_filters(theorem: Theorem) -> bool:
    """Whether the theorem is about momentum and averages in particular, and not about any optimiser."""
    return MOMENTUM in theorem.features and theorem.about is not About.EVERY_ITERATE


def applies(theorem: Theorem, given: Process) -> bool:
    return theorem.holds(given) and isinstance(answer_about(theorem, given), Guarantee)


@lru_cache(maxsize=100)
def found_examples(theorem: Theorem, count: int, seed: int = 3) -> tuple[Process, ...]:
    """Return up to `count` random processes that the theorem covers."""
    return tuple(islice((given for given in draws_for(theorem, seed) if applies(theorem, given)), count))


def examples(theorem: Theorem, count: int, seed: int = 3) -> tuple[Process, ...]:
    """Return `count` random processes that the theorem covers; raise NothingToTry if there are fewer."""
    found = found_examples(theorem, count, seed)
    if len(found) < count:
        raise NothingToTry(f"{theorem.name} applies to {len(found)} of {MOST_DRAWS} processes")
    return found


@lru_cache(maxsize=1000)
def _drawn_instance(seed: int, adjacency: Adjacency, most_steps: int, drawn: Any) -> Any:
    """Return the instance of a seed, cached since an exact law takes longer than a bound."""
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
    """Return up to `count` exact instances that the theorem covers, with their seeds."""
    drawn: Any = random_filtered
    if not of_filters(theorem):
        drawn = random_instance if REPLACE_ONE in theorem.adjacencies else own_place_instance
    found: list[tuple[int, Any]] = []
    for seed in range(50_000, 50_000 + MOST_DRAWS):
        instance = _drawn_instance(seed, adjacency, 30 if small else 120, drawn)
        if small and _SMALL < instance.process.diameter < math.inf:
            continue
        if theorem.holds(instance.process):
            found.append((seed, instance))
            if len(found) == count:
                break
    return found


def instances(
    theorem: Theorem, count: int, adjacency: Adjacency = REPLACE_ONE, small: bool = False
) -> list[tuple[int, Any]]:
    """Return `count` exact instances that the theorem covers; raise NothingToTry if there are fewer."""
    found = found_instances(theorem, count, adjacency, small)
    if len(found) < count:
        raise NothingToTry(f"{theorem.name} applies to {len(found)} instances only")
    return found


def traits(given: Process) -> frozenset[str]:
    """Unusual traits of a process; some mistakes show only where two of them meet."""
    batches, update = given.batches, given.update
    every = batches.per_epoch if batches.passes else 1
    begins = update.released.begins(len(given))
    found = {
        "steps differ": not given.constant,
        "a smaller last batch": batches.uneven,
        "several batches": every > 1,
        "several epochs": len(given) > every,
        "an epoch cut short": len(given) % every > 0,
        "an average that begins at an epoch": begins > 0 and begins % every == 0,
        "an average that begins inside an epoch": begins % every > 0,
        "a step that expands": given.contraction > 1,
        f"{batches.turns}": True,
        f"{given.adjacency}": True,
        f"{type(update.released)}": True,
        f"{getattr(update.optimizer, 'nesterov', None)}": True,
        f"{getattr(update.optimizer, 'dampening', None)}": True,
    }
    return frozenset(name for name, has in found.items() if has)


@lru_cache(maxsize=100)
def varied_instances(theorem: Theorem, count: int) -> list[tuple[int, Any]]:
    """Return instances that differ as much as possible: each adds the most pairs of traits not seen before."""
    pool: list[tuple[int, Any]] = []
    for seed in range(90_000, 90_000 + _MOST_LOOKED_AT):
        source = np.random.default_rng(seed)
        if of_filters(theorem):
            instance = random_filtered(source, 30)
        else:
            adjacency = theorem.adjacencies[seed % len(theorem.adjacencies)]
            instance = scheduled_instance(source, adjacency=adjacency, bins=REPLACE_ONE not in theorem.adjacencies)
        if theorem.holds(instance.process):
            pool.append((seed, instance))
            if len(pool) == _POOL:
                break
    found: list[tuple[int, Any]] = []
    unseen = {seed: set(combinations_with_replacement(sorted(traits(one.process)), 2)) for seed, one in pool}
    while len(found) < min(count, len(pool)):
        best = max(pool, key=lambda pair: len(unseen[pair[0]]))
        shown = set(unseen[best[0]])
        unseen = {seed: pairs - shown for seed, pairs in unseen.items()}
        found.append(best)
        pool = [pair for pair in pool if pair is not best]
    return found


@lru_cache(maxsize=100)
def answer_about(theorem: Theorem, given: Process) -> Guarantee | Inapplicable:
    """Apply the theorem to the process, once: all laws ask about the same examples."""
    return theorem.apply(given)


def epsilon(theorem: Theorem, given: Process, delta: float = 1e-5) -> float:
    """Return the theorem's ε, or ∞ if it refuses."""
    answer = answer_about(theorem, given)
    return answer.epsilon(delta) if isinstance(answer, Guarantee) else math.inf
