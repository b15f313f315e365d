"""The plan with the least expected error, of every way within reach."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from lastiterate.training.plans.composed import full_batches, sampled_batches
from lastiterate.training.plans.passes import hidden_passes
from lastiterate.training.plans.plan import Plan, Way, Wishes
from lastiterate.training.plans.problem import Problem

_WAYS = (full_batches, hidden_passes, sampled_batches)
_NO_WISHES = Wishes()
_CLEARLY = 1.1  # times: the problem is a guess, and full batches are the quickest to account for


@lru_cache(maxsize=256)
def chosen_plan(problem: Problem, wishes: Wishes = _NO_WISHES) -> Plan:
    """From public numbers alone."""
    plans = [plan for way in _WAYS if (plan := way(problem, wishes)) is not None]
    best, *others = sorted(plans, key=lambda plan: plan.error * (1.0 if plan.way is Way.FULL else _CLEARLY))
    return replace(best, others=tuple((plan.way, plan.error) for plan in others))
