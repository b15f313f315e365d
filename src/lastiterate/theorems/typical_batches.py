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

from lastiterate.curves.adjacency import FIXED_SIZE, POISSON, REPLACE_ONE, Adjacency
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.notion import Notion
from lastiterate.curves.subsampled import SubsampledGaussians, mixed_subsampled_gaussian, subsampled_gaussian
from lastiterate.curves.transformed import ChosenSlack, with_slack
from lastiterate.curves.zeroed_out import Step, ZeroedOut
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import RARE
from lastiterate.runs.per_step import each, extremes, is_constant
from lastiterate.runs.process import Process
from lastiterate.theorems.features import Assumption

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
    """Return how far versions of one quantity are apart; what is stored once for all steps is looked at once."""
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

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        powers = np.array([ChosenSlack.power(one) for one in log_deltas.tolist()])
        found = np.full_like(log_deltas, np.inf)
        for power in np.unique(powers).tolist():
            asked = powers == power
            for member in self._members(power):
                found[asked] = np.minimum(found[asked], member.epsilon_at_log(log_deltas[asked]))
        return found

    def log_delta(self, epsilons: Floats) -> Floats:
        """By any of its members: what is found tells for which δ to choose, and the last is felt by no δ."""
        found, seen = np.zeros_like(epsilons), set[float]()

        def look(exceptions: tuple[float, ...]) -> None:
            nonlocal found
            for exception in set(exceptions) - seen:
                member = self.member(exception)
                if member is not None:
                    found = np.minimum(found, member.log_delta(epsilons))
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


# Random batches: what the last steps of a run reveal if every iterate leaves.


# Each is integrated by itself; a step is rounded up to the next, by 11 % at most and usually far less.
_MOST_LEVELS = 200
_FEW_LEVELS = 40  # the same where each is put on a lattice
_MOST_ON_A_LATTICE, _LARGEST_ON_A_LATTICE = 50_000, 8.0  # steps, and a push over the noise


def sampled_step(process: Process, mu: float) -> Notion:
    """One step on a random batch that would be μ-GDP if the batch were known to have the record.

    C_p(G(μ)) where batches with the record, with its neighbour and without either are all within μ; where the sum is divided
    by a constant, the law of Poisson sampling; where it is divided by the size of the batch, C_p(G(share·μ)) averaged over
    that size (docs/proofs.md).
    """
    rate, sampling = float(process.inclusion[0]), process.batches.sampling
    if len(process.levels) > 1:
        return mixed_subsampled_gaussian(mu=up(mu), inclusion=rate, levels=process.levels)
    law = process.adjacency if sampling is POISSON else REPLACE_ONE
    return subsampled_gaussian(mu=up(mu), inclusion=rate, sampling=sampling, adjacency=law).relabelled(
        process.adjacency
    )


def sampled_window(process: Process, count: int) -> Notion:
    """The last `count` steps of a run, every iterate released."""
    ratios = each(np.divide, process.sampled[-count:], process.noise[-count:])
    if is_constant(ratios):
        return compose_counted([(sampled_step(process, float(ratios[0])), count)])
    levels, counts = few_levels(ratios, _MOST_LEVELS, 1e-9)
    steps = [sampled_step(process, mu) for mu in levels.tolist()]
    return compose_counted(list(zip(steps, counts.tolist(), strict=True)))


def released_window(process: Process, count: int) -> Notion:
    """Return the guarantee of a released window, sharper where a record takes the place of one that contributes nothing."""
    composed = sampled_window(process, count)
    apart = not process.adjacency.replaces and process.batches.sampling is FIXED_SIZE
    if not apart or not isinstance(composed, SubsampledGaussians) or not _worth_a_lattice(process, count):
        return composed
    last = slice(len(process) - count, None)
    ratios = [each(np.divide, values[last], process.noise[last]) for values in (process.sensitivity, process.sampled)]
    return ZeroedOut(_few_steps(process, *ratios), composed)


def _worth_a_lattice(process: Process, count: int) -> bool:
    """Whether a lattice pays: of more steps, or of larger pushes, lattices take long and gain little."""
    largest = extremes(process.sampled)[1] / extremes(process.noise)[0]
    return count <= _MOST_ON_A_LATTICE and largest <= _LARGEST_ON_A_LATTICE and float(process.inclusion[0]) < 1


def _few_steps(process: Process, near: Floats, far: Floats) -> tuple[tuple[Step, int], ...]:
    """Each rounded up to the next of a few: how far from others, and the largest part of it that nothing is away."""
    rate, part = float(process.inclusion[0]), min(float(np.max(near / far)), 1.0)
    if is_constant(far):
        return (((up(part * float(far[0])), up(float(far[0])), rate), len(far)),)
    levels, counts = few_levels(far, _FEW_LEVELS, 1e-9)
    found = ((up(part * one), up(one), rate) for one in levels.tolist())
    return tuple(zip(found, counts.tolist(), strict=True))


def _bounded_records(process: Process) -> Fact | None:
    if process.batches.constant_size or math.isfinite(extremes(process.sampled)[1]):
        return None
    return fact("record_gradients_unbounded")


BOUNDED_RECORDS = Assumption("bounded_records", _bounded_records)
