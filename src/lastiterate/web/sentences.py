"""The answer in plain sentences."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from lastiterate.accounting.detection import detection_rates
from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT

_NEIGHBOURS = {
    REPLACE_ONE: "one record is replaced",
    ZERO_OUT: "one record contributes nothing",
    ADD_OR_REMOVE_ONE: "one record is added or removed",
}
_CHANGED = {
    REPLACE_ONE: "a replaced record",
    ZERO_OUT: "a record that was left out",
    ADD_OR_REMOVE_ONE: "a record that was added or removed",
}
_FALSE_POSITIVE_RATE = 0.01  # the 1 % of the sentence


def claim_sentences(report: Report) -> list[str]:
    """What may be claimed, and what releasing everything would cost."""
    run = report.run
    if not math.isfinite(report.epsilon):
        return [f"No finite ε is proved for this run at δ = {_shown(report.delta)}."]
    said = [
        f"Releasing only {run.released.called} has ε = {rounded_up(report.epsilon)} at δ = {_shown(report.delta)}, "
        f"when {_NEIGHBOURS[run.adjacency]}."
    ]
    if math.isfinite(report.composition) and report.epsilon > 0:
        ratio = report.composition / report.epsilon
        much = f", {ratio:.3g} times as much" if ratio > 1.005 else ", no more"
        said.append(f"Releasing every iterate would cost ε = {rounded_up(report.composition)}{much}.")
    return said


def attack_sentence(report: Report) -> str:
    found = float(detection_rates(report, _FALSE_POSITIVE_RATE))
    return (
        f"An attacker with a 1 % false-positive rate detects {_CHANGED[report.run.adjacency]} at most "
        f"{rounded_up(100 * found, 3)} % of the time."
    )


def lower_sentence(report: Report) -> str:
    """How much too large ε may be."""
    lower, ratio = report.sandwich.lower.epsilon, report.sandwich.ratio
    if not lower > 0:
        return "No lower bound is known for such a run."
    if ratio < 1 + 1e-6:
        return "This is exact: an allowed loss exists that costs as much."
    known = f"Lower bound: an allowed loss exists with ε ≥ {rounded_down(lower)}"
    return f"{known}, so this ε is at most {rounded_up(ratio, 3)} times too large."


def calibrated_sentence(before: Run, run: Run, epsilon: float) -> str:
    """What was changed to meet the target."""
    if run.steps != before.steps:
        return f"{run.steps} steps meet ε = {epsilon:g}; there were {before.steps}."
    if run.noise == before.noise:
        return f"Nothing has to change to meet ε = {epsilon:g}."
    name = run.noise.size
    new, old = _largest(getattr(run.noise, name)), _largest(getattr(before.noise, name))
    called = {"std": "A noise of standard deviation", "multiplier": "A noise multiplier of"}[name]
    return f"{called} {new:.4g} meets ε = {epsilon:g}; it was {old:.4g}."


def _largest(size: Any) -> float:
    return max(size) if isinstance(size, tuple) else float(size)


def rounded_up(value: float, digits: int = 4) -> str:
    """An upper bound as it is shown: never less than it is."""
    return _rounded(value, Context(digits, ROUND_CEILING))


def rounded_down(value: float, digits: int = 4) -> str:
    return _rounded(value, Context(digits, ROUND_FLOOR))


def _rounded(value: float, context: Context) -> str:
    return f"{float(context.create_decimal_from_float(value)):.{context.prec}g}" if math.isfinite(value) else "∞"


def _shown(delta: float) -> str:
    return f"{delta:g}".replace("e-0", "e-")
