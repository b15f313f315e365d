"""Lower bounds on ε from the worst instance that a run's own assumptions allow.

Allowed is every loss with the facts that the run states (its range of Hessians, how far a gradient can move, where it is
clipped), every data set, every start. No theorem that knows only these can prove less.
"""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.auditing.allowed import WorstCase
from lastiterate.auditing.filtered import filtered_gaussians
from lastiterate.auditing.instances import two_wells
from lastiterate.auditing.interval_instances import on_an_interval
from lastiterate.auditing.linear_instances import (
    best_gaussians,
    clipped_gaussians,
    epsilon_of,
    last_step_apart,
    named_gaussians,
    random_pushes,
    two_gaussians,
)
from lastiterate.errors import worded
from lastiterate.progress import tracked
from lastiterate.runs.run import Run

_FAMILIES = (
    two_gaussians,
    clipped_gaussians,
    random_pushes,
    best_gaussians,
    last_step_apart,
    on_an_interval,
    two_wells,
)
_OF_OPTIMISERS = (filtered_gaussians,)  # the others are about plain steps
_BEFOREHAND, _NONE = WorstCase("beforehand_alone"), WorstCase("no_worst_case")


@dataclass(frozen=True)
class LowerBound:
    """Lower bound: on `instance`, a loss and data that the run allows, ε at `delta` is at least `epsilon`.

    If the instance is a supremum, a loss near it attains the printed number, which is rounded down.
    """

    epsilon: float
    delta: float
    instance: WorstCase

    def __str__(self) -> str:
        return worded("lower_bound_at", epsilon=self.epsilon, delta=self.delta, instance=self.instance)


def named_instance(run: Run, delta: float, releases: tuple[int, ...], members: tuple[int, ...]) -> LowerBound:
    """Lower bound for the records of one person in a fixed order, `members` at each place of an epoch."""
    found = [LowerBound(0.0, delta, _NONE)]
    if run.process.update.plain:
        found += [LowerBound(epsilon, delta, one) for epsilon, one in named_gaussians(run, delta, releases, members)]
    return max(found, key=lambda one: one.epsilon)


def worst_instance(run: Run, delta: float, releases: tuple[int, ...]) -> LowerBound:
    """Return the largest lower bound on ε over all instances; iterates after `releases` steps are released, too."""
    found = [LowerBound(0.0, delta, _NONE)]
    if run.prior_mu:
        found.append(LowerBound(epsilon_of(run, 0.0, delta), delta, _BEFOREHAND))
    families = _FAMILIES if run.process.update.plain else _OF_OPTIMISERS
    for family in tracked(families, "instances"):
        found += [LowerBound(epsilon, delta, instance) for epsilon, instance in family(run, delta, releases)]
    return max(found, key=lambda one: one.epsilon)
