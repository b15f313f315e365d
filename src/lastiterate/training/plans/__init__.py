"""Plans for training, chosen from public numbers: every reachable way is tried on paper, and the best is taken."""

from lastiterate.training.plans.plan import Plan, Wishes
from lastiterate.training.plans.planning import chosen_plan
from lastiterate.training.plans.problem import Problem

__all__ = ["Plan", "Problem", "Wishes", "chosen_plan"]
