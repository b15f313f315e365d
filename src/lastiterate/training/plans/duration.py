"""About how long a plan takes to train, by `li.train` on one core: to compare plans, not to promise."""

from __future__ import annotations

from lastiterate.training.plans.plan import Plan
from lastiterate.training.plans.problem import Problem

# Seconds, as `python -m benchmarks.speed.plans` measures them.
_A_PRODUCT, _A_RECORD, _A_STEP = 3e-10, 5e-8, 2e-4


def seconds_of(problem: Problem, plan: Plan) -> float:
    """Each pass multiplies every row with every column of weights, twice; each step has its own cost."""
    products = problem.features * problem.columns * _A_PRODUCT
    return plan.epochs * problem.records * (products + _A_RECORD) + plan.steps * _A_STEP
