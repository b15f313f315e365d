"""What would help beside the plan, each with its effect in percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lastiterate.accounting.calibrate import calibrate
from lastiterate.errors import LastIterateError, worded
from lastiterate.runs.batches import FixedSize
from lastiterate.runs.batches.same_rate import drawn_otherwise
from lastiterate.runs.run import Run
from lastiterate.training.plans.choose import chosen_plan
from lastiterate.training.plans.goal import Goal
from lastiterate.training.plans.plan import Plan

_WORTH_A_LINE = 0.05  # of the noise or of the error


def advice(goal: Goal, planned: Sequence[tuple[Plan, Run]]) -> tuple[str, ...]:
    """Batches drawn otherwise, for the plan in passes with the smallest ones; and more of whatever limits the best."""
    in_passes = [(place, run) for place, (_, run) in enumerate(planned, 1) if run.batches.passes]
    smallest = max(in_passes, key=lambda one: one[1].batches.per_epoch, default=None)
    batches = list(_drawn_otherwise(goal, *smallest)) if smallest else []
    return (*batches, *_more_of_something(goal))


def _drawn_otherwise(goal: Goal, place: int, run: Run) -> Iterator[str]:
    """As large on average, but drawn otherwise; the same epsilon for the same neighbours."""
    for batches in drawn_otherwise(run.batches):
        if isinstance(batches, FixedSize):  # about as good as Poisson batches, and slow to calibrate
            continue
        try:
            changed = calibrate(replace(run, batches=batches, steps=run.steps), epsilon=goal.epsilon, delta=goal.delta)
        except LastIterateError:
            continue
        change = float(changed.process.noise[0] / run.process.noise[0]) - 1
        if change < -_WORTH_A_LINE:
            drawn = {"batches": batches.called, "instead_of": run.batches.called}
            yield worded("plan_batches_otherwise", plan=place, **drawn, percent=-100 * change)


def _more_of_something(goal: Goal) -> Iterator[str]:
    """By the reference problem."""
    before = chosen_plan(goal.problem, goal.wishes).error
    wishes = goal.wishes
    more = {
        "records": replace(goal, records=2 * goal.records),
        "passes": replace(goal, wishes=replace(wishes, passes=2 * wishes.most_epochs)),
        "epsilon": replace(goal, epsilon=2 * goal.epsilon),
    }
    for what, other in more.items():
        change = chosen_plan(other.problem, other.wishes).error / before - 1
        if change < -_WORTH_A_LINE:
            now = {"passes": other.wishes.most_epochs, "epsilon": other.epsilon}
            yield worded("plan_with_more", of=what, **now, percent=-100 * change)
