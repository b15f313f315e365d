"""Plans that are within reach, and the one with the least expected error."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from lastiterate.errors import Unavailable
from lastiterate.training.plans import composed, passes
from lastiterate.training.plans.plan import Plan, Way, Wishes
from lastiterate.training.plans.problem import Problem

_WAYS = (composed.full_batches, passes.hidden_passes, composed.sampled_batches)
_NO_WISHES = Wishes()
_CLEARLY = 1.1  # times: the problem is a guess, and full batches are the quickest to account for
_FEWER = (1, 5, 25)  # times fewer passes than one may have: what haste costs


@lru_cache(maxsize=64)
def chosen_plan(problem: Problem, wishes: Wishes = _NO_WISHES) -> Plan:
    """From public numbers alone."""
    best, *others = sorted(_of_every_way(problem, wishes), key=preference)
    return replace(best, others=tuple((plan.way, plan.error) for plan in others))


def several_plans(problem: Problem, wishes: Wishes) -> list[Plan]:
    """The best of each way, with all passes that one may have and with fewer, unless another is better and quicker."""
    limits = dict.fromkeys(max(1, wishes.most_epochs // fewer) for fewer in _FEWER)
    every = [plan for most in limits for plan in _of_every_way(problem, replace(wishes, passes=most))]
    firsts = {plan.way: plan for plan in sorted(every, key=preference, reverse=True)}
    kept = [plan for plan in every if plan in firsts.values() or not any(_beats(other, plan) for other in every)]
    return sorted(dict.fromkeys(kept), key=preference)


def _beats(plan: Plan, other: Plan) -> bool:
    """In error, with no more passes over the data."""
    return plan.error < other.error and plan.epochs <= other.epochs


def error_with(problem: Problem, wishes: Wishes, plan: Plan, noise: float) -> float:
    """Expected of the plan with so much noise on the mean gradient."""
    if plan.way is Way.PASSES:
        return passes.error_with(problem, plan, noise)
    return composed.error_with(problem, plan, noise, composed.factors_of(wishes))


def steadiness(problem: Problem, plan: Plan, factor: float) -> float:
    """Times the expected error, with so many times the step size and the same noise beside gradients."""
    error = passes.error_with if plan.way is Way.PASSES else composed.error_with
    return error(problem, plan, plan.noise, (factor,)) / error(problem, plan, plan.noise, (1.0,))


def _of_every_way(problem: Problem, wishes: Wishes) -> list[Plan]:
    plans = [plan for way in _WAYS if (plan := way(problem, wishes)) is not None]
    if not plans:
        raise Unavailable("no_plan")
    return plans


def preference(plan: Plan) -> float:
    """The least is best."""
    return plan.error * (1.0 if plan.way is Way.FULL else _CLEARLY)
