"""About how long a plan takes to train, by `li.train` on one core: to compare plans, not to promise."""

from __future__ import annotations

from lastiterate.training.plans.plan import Plan
from lastiterate.training.plans.problem import Problem

# Seconds, as `python -m benchmarks.speed.plans` measures them.
_A_PRODUCT, _A_RECORD, _A_STEP = 4e-10, 3e-8, 2e-4
_A_RECORD_GATHERED = 1.5e-7  # for a batch that is not all of them


def seconds_of(problem: Problem, plan: Plan) -> float:
    """Each pass multiplies every row with every column of weights, twice; each step has its own cost."""
    products = problem.features * problem.columns * _A_PRODUCT
    record = _A_RECORD if plan.batches == 1 else _A_RECORD_GATHERED
    return plan.epochs * problem.records * (products + record) + plan.steps * _A_STEP
