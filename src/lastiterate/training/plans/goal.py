"""The goal of a plan: public numbers, a target, and what the user has fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import worded
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.runs.losses import Loss
from lastiterate.training.plans.plan import Ingredients, Plan, Way, Wishes, batches_of, change_of, loss_for
from lastiterate.training.plans.problem import Problem, clip_of, columns_of, guess_of


@dataclass(frozen=True)
class Goal:
    """Everything that plans depend on. The target is for a user with up to `user_records` records."""

    loss: Loss
    records: int
    features: int
    epsilon: float
    delta: float
    adjacency: Adjacency
    wishes: Wishes
    user_records: int = 1

    @cached_property
    def problem(self) -> Problem:
        """The reference problem; without smoothness where hidden steps would not be those of a convex loss."""
        hidden = loss_for(self.loss, Way.PASSES, 0.0)
        return Problem(
            self.records,
            self.features,
            columns_of(self.loss),
            float(shift_below(math.log(self.delta), self.epsilon)) / self.user_records,
            self.adjacency.replaces,
            guess_of(self.loss),
            clip_of(self.loss),
            change_of(hidden, self.adjacency),
            hidden.smoothness if hidden.convex else math.inf,
        )

    def setting(self, plan: Plan) -> Ingredients:
        """Return the ingredients of the run that carries out the plan."""
        loss = loss_for(self.loss, plan.way, plan.l2)
        batches = batches_of(plan, self.records, self.adjacency)
        return Ingredients(loss, batches, self.adjacency, clip_of(self.loss), user_records=self.user_records)

    @property
    def described(self) -> str:
        return worded(
            "plan_goal",
            records=self.records,
            features=self.features,
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.adjacency.unit(self.user_records),
            passes=self.wishes.most_epochs,
        )


# Rough training times by `li.train` on one core, to compare plans.


# Seconds, as `python -m benchmarks.speed.plans` measures them.
_A_PRODUCT, _A_RECORD, _A_STEP = 4e-10, 3e-8, 2e-4
_A_RECORD_GATHERED = 1.5e-7  # for a batch that is not all of them


def seconds_of(problem: Problem, plan: Plan) -> float:
    """Seconds that a plan takes: two products per pass, row and column of weights, and a cost per record and step."""
    products = problem.features * problem.columns * _A_PRODUCT
    record = _A_RECORD if plan.batches == 1 else _A_RECORD_GATHERED
    return plan.epochs * problem.records * (products + record) + plan.steps * _A_STEP
