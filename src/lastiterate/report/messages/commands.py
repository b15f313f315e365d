"""The words of the command line."""

from __future__ import annotations

from typing import Any

from lastiterate.digits import above
from lastiterate.report import english
from lastiterate.report.messages import Message

_CHECKED = "{path} (check it with: lastiterate verify {path})"


def _not_understood(said: str, prog: str, close: str | None) -> str:
    meant = f" Did you mean {close}?" if close else ""
    return f"lastiterate: {said}.{meant} Try: {prog} --help."


def _would_spend(run: str, epsilon: float, budget: float) -> str:
    return f"With {run}: epsilon = {epsilon:.4g}, {'within' if epsilon <= budget else 'over'} the budget"


def _fixed_at_creation(field: str) -> str:
    return f"--{field.replace('_', '-')} is fixed when a budget is created. Use it with --create only."


def _calibrated(
    setting: str, value: Any, before: Any, target: float, delta: float, epsilon: float, theorem: str
) -> str:
    return (
        f"{setting} = {_number(value)} (was {_number(before)}) meets epsilon <= {target:g} at delta = {delta:g}: "
        f"epsilon = {above(epsilon, 9)} by {theorem}"
    )


def _number(value: Any) -> str:
    return f"from {min(value):.9g} to {max(value):.9g}" if isinstance(value, tuple) else f"{value:.9g}"


def _calibrated_search(epsilon: float, law: str, mean: float, shape: float | None = None) -> str:
    return (
        f" for one trial\nsearch: epsilon = {epsilon:.9g} for the best trial; "
        f"number of trials: {english.trials(law, mean, shape)}"
    )


def _refusals_counted(count: int, near: int, covered: dict[str, int]) -> str:
    kinds = {"need an assumption that this run does not meet": near}
    kinds |= {f"cover {one}": others for one, others in covered.items()}
    lines = (f"\n{number:12d}  {kind}" for kind, number in kinds.items() if number)
    return f"{count} theorems do not apply (--all lists the reasons):{''.join(lines)}"


def _selected(epsilon: float, delta: float, unit: Any, law: str, mean: float, shape: float | None = None) -> str:
    return (
        f"epsilon = {above(epsilon, 6)} at delta = {delta:g} ({unit}) for releasing only the best trial\n"
        f"number of trials: random and not released, drawn from a {english.trials(law, mean, shape)}"
    )


def _selected_trial(path: str, epsilon: float, theorem: str) -> str:
    return f"one trial of {path}: epsilon = {above(epsilon, 6)}, by {theorem}"


MESSAGES: dict[str, Message] = {
    "not_enough_memory": "not enough memory. Use fewer steps or records.",
    # What was typed
    "not_understood": _not_understood,
    "command_not_loaded": "{reason}",
    "completion_without_shtab": "completion needs shtab. Run pip install 'lastiterate[completion]'.",
    "each_of_group": "--each is for single records. Remove --each, or remove --group and --group-records.",
    "neighbour_of_simulation": (
        "--make-neighbour needs a .py file. Got a run, whose two data sets are simulated; remove it."
    ),
    "option_of_other_loss": "{field} is not a setting of the loss {loss}. Remove it.",
    "mean_of_trials_missing": "mean must be given with --trials. Give --mean, the mean number of trials.",
    "shape_of_other_trials": (
        "shape must be given with --trials negative-binomial, and only with it. Give both --trials negative-binomial "
        "and --shape, or neither."
    ),
    "verified_file_not_json": (
        "{path} must be a certificate or a model (.json), or a report (.html). It is not JSON: {reason}."
    ),
    # account, audit, calibrate, compare, select, serve
    "trainer_file_failed": "{path} failed while training. {kind}: {reason}.",
    "audit_in_comparison": (
        "For comparison: an allowed loss exists with epsilon >= {lower_bound:.4g}, and epsilon <= {proved:.4g} is proved."
    ),
    "calibrated": _calibrated,
    "calibrated_search": _calibrated_search,
    "calibrated_to_most_steps": (
        "More steps may also meet the target: the search stopped at --most-steps {most_steps}."
    ),
    "compared_lower_bound": "lower bound: no theorem can prove less",
    "compared_refusals": _refusals_counted,
    "selected": _selected,
    "selected_trial": _selected_trial,
    "planner_address": "The planner runs at {address}. Press Ctrl-C to stop it.",
    # budget
    "spend_without_what": (
        "--spend needs --what, one line that describes the release in the budget's history. "
        'For example: --what "the churn model of March".'
    ),
    "option_fixed_at_creation": _fixed_at_creation,
    "creation_incomplete": "--create needs --epsilon and --delta. Got no --{field}.",
    "recorded_as": "Recorded as no. {number}: {what}",
    "would_spend": _would_spend,
    # Files that were written
    "written_certificate": f"certificate: {_CHECKED}",
    "written_model": f"model: {_CHECKED}",
    "written_plan": "plan 1: {path} (account for it with: lastiterate account {path})",
    "written_plot": "plot: {path}",
    "written_report": f"report: {_CHECKED}",
    "written_run": "run: {path}",
}
