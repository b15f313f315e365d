"""The answer in plain sentences."""

from __future__ import annotations

import math

from lastiterate.accounting.calibrate import Free
from lastiterate.accounting.detection import FALSE_POSITIVE_RATE, HARDLY_ANY_PROTECTION, detection_rates
from lastiterate.accounting.detection import attack_sentence as attack_sentence_of
from lastiterate.accounting.report import Report
from lastiterate.algorithms.per_step import per_step_shown
from lastiterate.algorithms.run import Run
from lastiterate.digits import above, below
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT

_NEIGHBOURS = {
    REPLACE_ONE: "one record is replaced",
    ZERO_OUT: "one record contributes nothing",
    ADD_OR_REMOVE_ONE: "one record is added or removed",
}
_HARDLY_ANY = "This hardly protects a single record."


def claim_sentences(report: Report) -> list[str]:
    """What may be claimed, and what releasing everything would cost."""
    run = report.run
    if not math.isfinite(report.epsilon):
        return [f"No finite ε is proved for this run at δ = {_shown(report.delta)}."]
    said = [
        f"Releasing only {run.released.called} has ε = {above(report.epsilon)} at δ = {_shown(report.delta)}, "
        f"when {_NEIGHBOURS[run.adjacency]}."
    ]
    if math.isfinite(report.composition) and report.epsilon > 0:
        ratio = report.composition / report.epsilon
        much = f", {ratio:.3g} times as much" if ratio > 1.005 else ", the same"
        said.append(f"Releasing every iterate would have ε = {above(report.composition)}{much}.")
    return said


def attack_sentence(report: Report) -> str:
    found = float(detection_rates(report, FALSE_POSITIVE_RATE))
    said = attack_sentence_of(report.run, found)
    return f"{said} {_HARDLY_ANY}" if found > HARDLY_ANY_PROTECTION else said


def lower_sentence(report: Report) -> str:
    """How much too large this ε can be."""
    lower, ratio = report.sandwich.lower.epsilon, report.sandwich.ratio
    if not lower > 0:
        return "No lower bound is known for such a run."
    if ratio < 1 + 1e-6:
        return "This ε is exact: an allowed loss exists that attains it."
    known = f"Lower bound: an allowed loss exists with ε ≥ {below(lower)}"
    return f"{known}, so this ε is at most {above(ratio, 3)} times too large."


def calibrated_sentence(before: Run, run: Run, free: Free, epsilon: float) -> str:
    """What was changed to meet the target."""
    new, old = _changed(run, free), _changed(before, free)
    if new == old:
        return f"Nothing has to change to meet ε = {epsilon:g}: {new}."
    return f"To meet ε = {epsilon:g}: {new}, instead of {old.rpartition(' ')[2]}."


def _changed(run: Run, free: Free) -> str:
    """By its name and size."""
    if free is Free.NOISE:
        called = {"std": "standard deviation of the noise", "multiplier": "noise multiplier"}[run.noise.size]
        return f"{called} {per_step_shown(getattr(run.noise, run.noise.size))}"
    if free is Free.STEPS:
        whole = run.steps % run.batches.per_epoch == 0
        return f"epochs {run.steps // run.batches.per_epoch}" if whole else f"steps {run.steps}"
    if free is Free.BATCH_SIZE:
        return f"batch size {run.batches.divisor:.6g}"
    return f"step size {per_step_shown(run.step_size)}"


def _shown(delta: float) -> str:
    return f"{delta:g}".replace("e-0", "e-")
