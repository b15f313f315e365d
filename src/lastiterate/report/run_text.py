"""A run in words, line by line."""

from __future__ import annotations

from lastiterate.accounting.calibrate import Free
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.arithmetic import EXACT
from lastiterate.runs.per_step import extremes, per_step_shown
from lastiterate.runs.run import Run


def described(run: Run) -> list[str]:
    """The run, line by line."""
    process = run.process
    lines = [
        f"{run.steps} steps{_epochs(run)}, {run.batches.described}",
        f"loss: {_loss(run)}",
        f"step size {per_step_shown(run.step_size)}, noise {run.noise.described}",
        f"domain: {run.domain.described}",
        f"per step, on the iterate: sensitivity {_range(process.sensitivity)}, noise {_range(process.noise)}"
        + (f", Lipschitz constant {_range(process.lipschitz)}" if process.update.plain else " (for a plain step)"),
    ]
    if not process.update.plain:
        lines.insert(3, f"optimiser: {process.update.described}")
    if run.prox is not None:
        lines.insert(3, f"proximal map of {run.prox}")
    if run.weight_decay:
        lines.insert(3, f"weight decay {run.weight_decay:g}")
    if run.arithmetic != EXACT:
        lines.append(
            f"floating-point rounding: the sensitivity is multiplied by up to {run.arithmetic.factor:.9g}, and rounding of "
            f"iterates adds {2 * run.arithmetic.displacement:.2g} to mu; both are included in epsilon"
        )
    if run.prior_mu:
        lines.append(
            f"released before training, about the same records: mu = {run.prior_mu:g} of Gaussian differential "
            "privacy, included in epsilon"
        )
    if run.user_records > 1:
        lines.append(f"privacy unit: one user with up to {run.user_records} records, all included in epsilon")
    return lines


def _epochs(run: Run) -> str:
    per_epoch = run.batches.per_epoch
    if per_epoch == 1:
        return ""
    whole, rest = divmod(run.steps, per_epoch)
    return f" ({whole} epochs of {per_epoch}{f' and {rest} more' if rest else ''})"


def _loss(run: Run) -> str:
    loss = run.loss
    strongly = run.convex and (loss.l2 > 0 or (loss.curvature > 0 and run.clip is None))
    shape = "strongly convex" if strongly else "convex" if run.convex else "not convex"
    clip = "" if run.clip is None else f", clipped at {per_step_shown(run.clip)}"
    l2 = f", l2 {loss.l2:g}" if loss.l2 else ""
    return f"{loss.described}{clip}{l2}: {shape}"


def _range(values: Floats) -> str:
    low, high = extremes(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def calibrated(before: Run, run: Run, free: Free, epsilon: float) -> str:
    """What was changed of a run to meet a target."""
    new, old = _free(run, free), _free(before, free)
    if new == old:
        return f"Nothing has to change to meet ε = {epsilon:g}: {new}."
    return f"To meet ε = {epsilon:g}: {new}, instead of {old.rpartition(' ')[2]}."


def _free(run: Run, free: Free) -> str:
    """What a calibration may change, by its name and size."""
    if free is Free.NOISE:
        called = {"std": "standard deviation of the noise", "multiplier": "noise multiplier"}[run.noise.size]
        return f"{called} {per_step_shown(getattr(run.noise, run.noise.size))}"
    if free is Free.STEPS:
        whole = run.steps % run.batches.per_epoch == 0
        return f"epochs {run.steps // run.batches.per_epoch}" if whole else f"steps {run.steps}"
    if free is Free.BATCH_SIZE:
        return f"batch size {run.batches.divisor:.6g}"
    return f"step size {per_step_shown(run.step_size)}"
