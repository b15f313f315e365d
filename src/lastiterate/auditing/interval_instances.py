"""Bounded domains: the others pull the iterate to one end of an interval, and the record pushes against them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lastiterate.auditing.allowed import (
    Counts,
    WorstCase,
    allowed_hessians,
    allowed_splits,
    clipped_flat,
    counted,
    counts_of,
    greatest,
    half_gradient,
)
from lastiterate.auditing.chain import Chain, chain_of, interval_width, refined, rough, short_enough
from lastiterate.auditing.grid_steps import Map, Shifted
from lastiterate.auditing.linear_instances import pushing
from lastiterate.auditing.quadratic import QuadraticSteps, steps_of
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import RARE, Turns
from lastiterate.runs.per_step import is_constant, spread
from lastiterate.runs.run import Run

_PULLS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0, 10.0)  # of the others against the record, in units of the noise
_SEARCH = 8
_MOST_KINDS = 1000  # of steps that differ
_ROUGHLY = 1e-14  # of batches that are left out while a pull is searched for


@dataclass(frozen=True)
class _Pulled:
    """A run on an interval; others pull by multiples of the first noise, elsewhere and in the record's batches.

    In a fixed order these are different batches, with data of their own; otherwise both are the same.
    """

    run: Run
    steps: QuadraticSteps
    width: float
    split: tuple[float, float]
    counts: Counts
    elsewhere: float = 0.0
    beside: float = 0.0

    def pulled(self, pull: float) -> _Pulled:
        return replace(self, elsewhere=pull, beside=pull)

    @property
    def chain(self) -> Chain:
        kinds, which = self._kinds
        first, *changes = (self._maps(*kind) for kind in kinds)
        many = len(kinds) > 1
        return chain_of(
            self.run,
            first,
            self.width / 2,
            self.steps.noise,
            in_full=False if many else None,
            changes=tuple(changes),
            which=tuple(which) if many else None,
            left_out=self.counts.left_out * self.run.steps,
        )

    @property
    def _kinds(self) -> tuple[list[tuple[float, float, float]], list[int]]:
        """Distinct steps as (factor, push, pull of one noise), and the index of each step among them."""
        sizes = spread("step_size", self.run.step_size, self.run.steps)
        if self.steps.alike and is_constant(sizes):
            return [(float(self.steps.factor[0]), float(self.steps.push[0]), float(self.steps.noise[0]))], []
        pulls = sizes / sizes[0] * self.steps.noise[0]
        rows, which = np.unique(np.stack([self.steps.factor, self.steps.push, pulls]), axis=1, return_inverse=True)
        return [(row[0], row[1], row[2]) for row in rows.T.tolist()], which.ravel().tolist()

    def _maps(self, factor: float, push: float, unit: float) -> tuple[Map, Map, Map]:
        batches, counts = self.run.batches, self.counts
        elsewhere, beside = -self.elsewhere * unit, -self.beside * unit
        bounded = math.isfinite(half_gradient(self.run))
        own = [side * push for side in self.split]
        if batches.constant_size:
            missing = beside / batches.divisor if bounded else 0.0
            moves = [counts.always(elsewhere), *(counts.always(beside - missing + one) for one in own)]
        elif batches.own_mean:
            missing = beside if bounded else 0.0
            moves = [counts.unless_empty(elsewhere), *(counts.averaged(beside, one - missing) for one in own)]
        else:
            moves = [counts.summed(elsewhere / batches.divisor, one) for one in (0.0, *own)]
        without, record, neighbour = (_moved(factor, *move) for move in moves)
        return without, record, neighbour


def on_an_interval(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε for intervals, where others pull against the record (Bok et al. 2024, Theorem C.16)."""
    hessians, width = allowed_hessians(run), interval_width(run)
    if hessians is None or width is None or not short_enough(run):
        return
    for hessian, split in product(sorted(set(hessians)), _splits(run)):
        given = _Pulled(run, steps_of(run, hessian), width, split, _counts(run, hessian, _ROUGHLY))
        if len(given._kinds[0]) > _MOST_KINDS:
            return
        for best in _best_pulls(given, delta):
            chain = refined(replace(best, counts=_counts(run, hessian)).chain)
            pulls = {"beside": best.beside, "elsewhere": best.elsewhere}
            yield chain.least_epsilon(delta), WorstCase("pulls_on_interval", {"pushing": pushing(*split), **pulls})


def _splits(run: Run) -> tuple[tuple[float, float], ...]:
    """Pairs of pushes of record and neighbour: bounded gradients push to both bounds, or to one and not at all."""
    if not math.isfinite(half_gradient(run)):
        return allowed_splits(run)
    return ((0.5, -0.5),) if run.adjacency.replaces else ((1.0, 0.0),)


def _counts(run: Run, hessian: float, rare: float = RARE) -> Counts:
    """Numbers of other records; without empty batches where these would not even contract."""
    found = counts_of(run.batches, rare)
    return found if hessian == 0 or not run.batches.own_mean else found.never_empty


def _best_pulls(given: _Pulled, delta: float) -> list[_Pulled]:
    """Search the pulls that maximise ε: one for all batches and, in a fixed order, others beside the record's batch."""
    pulls = _pulls(given)
    _, pull = greatest(lambda pull: rough(given.pulled(pull).chain).epsilon(delta), pulls, _SEARCH)
    best = given.pulled(pull)
    if given.run.batches.turns is not Turns.FIXED_ORDER or given.run.batches.per_epoch == 1 or len(pulls) == 1:
        return [best]
    both = sorted({*pulls, *(-one for one in pulls)})
    _, beside = greatest(lambda pull: rough(replace(best, beside=pull).chain).epsilon(delta), both, _SEARCH)
    apart = replace(best, beside=beside)
    _, elsewhere = greatest(lambda pull: rough(replace(apart, elsewhere=pull).chain).epsilon(delta), both, _SEARCH)
    return [best, replace(apart, elsewhere=elsewhere)]


def _pulls(given: _Pulled) -> tuple[float, ...]:
    """Pulls to try: at most the bound of a gradient, and none in Poisson sums of unbounded gradients."""
    run, steps = given.run, given.steps
    bounded = math.isfinite(half_gradient(run))
    if counted(run) and not bounded:
        return (0.0,)
    if not bounded:
        return _PULLS
    size = float(spread("step_size", run.step_size, run.steps)[0])
    most = size * half_gradient(run) / float(steps.noise[0])
    if clipped_flat(run):
        return (most,)
    return (*(one for one in _PULLS if one < most), most)


def _moved(factor: float, shifts: Floats, chances: Floats) -> Map:
    if len(shifts) > 1:
        return Shifted(lambda x: factor * x, shifts, chances)
    shift = float(shifts[0])
    return lambda x: factor * x + shift
