"""`li.plan`: which batches, how many epochs, which step size and noise, for a target that is given beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import calibrate
from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    checked_choice,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.progress import tracked
from lastiterate.runs.losses import Loss
from lastiterate.runs.named import names_arguments
from lastiterate.training.plans.choose import error_with, preference, several_plans, steadiness
from lastiterate.training.plans.duration import seconds_of
from lastiterate.training.plans.goal import Goal
from lastiterate.training.plans.plan import MOST_PASSES, Plan, Wishes
from lastiterate.training.plans.plans import PlannedRun, Plans
from lastiterate.training.plans.runs import run_of


@names_arguments
def plan(
    *,
    loss: Loss,
    records: int,
    features: int,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = REPLACE_ONE,
    passes: int = MOST_PASSES,
    batches: int | None = None,
    epochs: int | None = None,
    step_size: float | None = None,
    user_records: int = 1,
) -> Plans:
    """Plans to train within (epsilon, delta), smallest expected error first, each with a run that is ready to train.

    Uses public numbers only: the number of `records`, the number of `features` per row, and a `loss` such as
    `li.losses.logistic(feature_norm=1.0)`. Every plan makes at most `passes` over the data. `batches` per epoch, `epochs`,
    `step_size` and the L2 term of the loss are chosen unless you set them. The expected error is computed on a quadratic
    reference problem whose curvatures decay like 1/j over the features: use it to compare plans, not to predict the error
    on your data.
    With `user_records`, the target is for a whole user, who has at most this many records.
    """
    if not isinstance(loss, Loss):
        raise InvalidInput("plan_without_loss", field="loss", got=f"{shown(loss):.60}")
    goal = Goal(
        loss=loss,
        records=checked_count("records", records),
        features=checked_count("features", features),
        epsilon=checked_number("epsilon", epsilon, POSITIVE),
        delta=checked_number("delta", delta, INSIDE_UNIT),
        adjacency=checked_choice("adjacency", adjacency, Adjacency),
        wishes=Wishes(
            _count_or_none("batches", batches),
            _count_or_none("epochs", epochs),
            None if step_size is None else checked_number("step_size", step_size, POSITIVE),
            loss.l2 or None,
            checked_count("passes", passes),
        ),
        user_records=_checked_user(user_records, records),
    )
    settings = several_plans(goal.problem, goal.wishes)
    found = [_planned(goal, one) for one in tracked(settings, "planning")]
    return Plans(goal, tuple(sorted(found, key=lambda one: preference(one.settings))))


def _checked_user(user_records: Any, records: int) -> int:
    if checked_count("user_records", user_records) > records:
        raise must_be("user_records", f"at most records = {records}", f"{user_records}")
    return int(user_records)


def _count_or_none(name: str, value: Any) -> int | None:
    return None if value is None else checked_count(name, value)


def _planned(goal: Goal, settings: Plan) -> PlannedRun:
    """With the noise that the target asks for, and the error that goes with it."""
    run = calibrate(run_of(settings, goal.setting(settings)), epsilon=goal.epsilon, delta=goal.delta)
    noise = float(run.process.noise[0]) / settings.step_size
    known = replace(settings, noise=noise, error=error_with(goal.problem, goal.wishes, settings, noise))
    halved, doubled = (steadiness(goal.problem, known, factor) for factor in (0.5, 2.0))
    return PlannedRun(known, account(run, goal.delta), seconds_of(goal.problem, known), halved, doubled)
