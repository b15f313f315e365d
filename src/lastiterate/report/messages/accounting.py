"""The words of accounts, calibration, budgets, selections, forgetting, certificates and the planner."""

from __future__ import annotations

import math

from lastiterate.digits import above, below
from lastiterate.report.messages import Message

_NOT_OURS = "a theorem of yours, which is not part of the library"


def _own_theorem_for_others(field: str, what: str, theorem: str) -> str:
    made = {"file": "a file that others sign", "label": "a label"}[what]
    return (
        f"{made} can be made with theorems of the library only. This report is by {theorem!r:.60}, {_NOT_OURS}. Use "
        "li.account without it; or print the report, and give its certificate to those who have the theorem."
    )


def _sandwich(lower: float, upper: float, instance: str, ratio: float) -> str:
    known = f", ratio {ratio:.4g}" if math.isfinite(ratio) else ""
    return f"[{below(lower, 6)}, {above(upper, 6)}]{known}; lower bound from {instance}"


def _epsilons_of_records(delta: float, least: float, most: float, median: float, batches: int) -> str:
    of = f"{batches} batches" if batches > 1 else "the same for all records"
    return f"epsilon of a record at delta = {delta:g}: {least:.6g} to {most:.6g}, median {median:.6g}, {of}"


def _no_steps_meet(steps: int, epsilon: float) -> str:
    return f"not even {steps} step{'s' if steps > 1 else ''} meet epsilon = {epsilon:g}. Calibrate the noise instead."


_ACCOUNTS: dict[str, Message] = {
    "no_theorem_applies": "no theorem applies to this run. The most frequent reason, for {count} of {tried} theorems: each "
    "{reason}.",
    "theorem_false": "{theorem} is false for this run: it says epsilon = {epsilon:.6g}, and an allowed loss has "
    "epsilon >= {least:.6g} ({instance}). Check its bound and its assumptions.",
    "theorem_says_nan": "{theorem} says epsilon = nan for this run. Leave it out of theorems.",
    "own_theorem_for_others": _own_theorem_for_others,
    "record_named_twice": "group must name each record once.",
    "group_of_users": "group names all records of one person, but the run says that a user has up to {user_records} "
    "records. Leave out one of the two.",
    "group_of_group": "group needs a report for single records. This one is for users with up to {user_records} records. "
    "Give the run another user_records.",
    "one_person_composed": "a report for the records of one person cannot be composed with reports for everybody. Leave "
    "out group.",
    "adjacency_not_implied": "a guarantee under {proved!r} implies none under {wanted!r}. Give the run "
    "adjacency={wanted!r}.",
    "single_records_accounted": "user_records must be 1, because account_each is about single records. Got {got}. For the "
    "records of one person use li.account(replace(run, user_records=1), delta, group=[...]).",
    "epsilons_of_records": _epsilons_of_records,
    "sandwich": _sandwich,
    # Alternatives: what is changed.
    "with_batches": "with {batches}",
    "with_plain_steps": "with plain steps instead of {optimizer}",
    "with_step_size": "with step_size {step_size} and the same noise multiplier",
    "with_clipping": "with gradients clipped at {clip:.4g}",
    "with_weight_decay": "with weight_decay (or l2) {decay:.4g}",
    "with_projection": "with a projection on li.Ball(radius={radius:.4g}) after each step",
}

_CALIBRATION: dict[str, Message] = {
    "theorems_with_trials": "theorems cannot be given together with trials. Leave out one of them.",
    "spent_beforehand": "beforehand_mu = {mu:g} alone has epsilon = {spent:.4g} at delta = {delta:g}, so nothing of "
    "epsilon = {epsilon:g} is left for training. Release less before training, or allow a larger epsilon.",
    "no_run_meets": "no run was found that accounts to epsilon = {epsilon:g}: the nearest has {nearest:.6g}.",
    "no_noise_meets": "no noise up to e^{widest:.0f} times the present one meets epsilon = {epsilon:g}.",
    "most_steps_below_epoch": "most_steps must be at least one epoch of {per_epoch} steps. Got {got}.",
    "no_steps_meet": _no_steps_meet,
    "no_batch_size": "{batches} of {records} records have no batch size to change. Use li.Shuffled or li.Poisson.",
    "no_batch_size_meets": "no batch size from {least} to {most} meets epsilon = {epsilon:g}. Calibrate the noise instead.",
    "every_step_size_meets": "every step size meets epsilon = {epsilon:g}: the noise grows with the step. Calibrate the "
    "noise.",
    "no_step_size_meets": "no step size meets epsilon = {epsilon:g}. Calibrate the noise instead.",
    "no_trial_meets": "no epsilon of one trial was found with which the best of {mean:g} trials on average meets "
    "epsilon = {epsilon:g} at delta = {delta:g}. Allow a larger epsilon, or fewer trials.",
}

MESSAGES: dict[str, Message] = _ACCOUNTS | _CALIBRATION
