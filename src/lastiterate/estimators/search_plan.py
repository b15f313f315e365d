"""All that a search will do, decided from public numbers before the first trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from lastiterate.accounting.account import account
from lastiterate.accounting.searches.per_trial import largest_spending
from lastiterate.accounting.select import Selection, select
from lastiterate.curves.trials import Trials
from lastiterate.errors import INSIDE_UNIT, Unavailable, checked_number
from lastiterate.estimators.trial import model_of, planned_run, prefix_of, trial_of
from lastiterate.estimators.validation import Validation
from lastiterate.runs.run import Run

Setting = dict[str, Any]


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """Which settings may be drawn and what each will run, how trials are scored, and the guarantee of the whole search."""

    estimator: Any
    settings: tuple[tuple[Setting, Run], ...]
    validation: Validation
    guarantee: Selection
    delta: float

    @property
    def epsilon(self) -> float:
        """Of the whole search."""
        return float(self.guarantee.epsilon(self.delta))


def search_plan(
    estimator: Any, settings: Sequence[Setting], features: Any, validation: Validation, trials: Trials
) -> SearchPlan:
    """Of trials that spend what the estimator says: the worst setting counts, whichever are drawn."""
    model, delta = model_of(estimator), _delta_of(estimator)
    scored = validation.spending(model.epsilon, delta)
    runs = [planned_run(trial_of(estimator, setting), features) for setting in settings]
    reports = [account(run, delta) for run in dict.fromkeys(runs)]
    guarantee = select([*reports, *scored.guarantees(runs[0].adjacency)], trials=trials)
    return SearchPlan(estimator, tuple(zip(settings, runs, strict=True)), scored, guarantee, delta)


def search_plan_within(
    epsilon: float,
    estimator: Any,
    settings: Sequence[Setting],
    features: Any,
    validation: Validation,
    trials: Trials,
) -> SearchPlan:
    """Of trials that spend as much as the whole search may, with this ε at the estimator's δ."""
    prefix = prefix_of(estimator)

    def made(spent: float) -> tuple[SearchPlan, float]:
        spending = clone(estimator).set_params(**{f"{prefix}epsilon": spent})
        plan = search_plan(spending, settings, features, validation, trials)
        return plan, plan.epsilon

    plan = largest_spending(made, epsilon=epsilon, delta=_delta_of(estimator), trials=trials)
    if not plan.epsilon <= epsilon:
        raise Unavailable("search_overspent", epsilon=plan.epsilon, most=epsilon)
    return plan


def _delta_of(estimator: Any) -> float:
    return checked_number("delta", model_of(estimator).delta, INSIDE_UNIT)
