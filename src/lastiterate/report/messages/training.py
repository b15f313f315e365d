"""The words of trainings, audits and mechanisms."""

from __future__ import annotations

from typing import Any

from lastiterate.digits import below
from lastiterate.report.messages import Message

# Plans.

_WAYS = {
    "full_batches": "full batches with momentum",
    "hidden_passes": "smaller batches without momentum, only the last iterate released",
    "random_batches": "random batches with momentum",
}


def _plan_way(way: str) -> str:
    return _WAYS[way]


def _plan_compared(error: float, others: tuple[tuple[Any, float], ...]) -> str:
    compared = "; ".join(f"{other:.3g} for {way}" for way, other in others)
    return f"Expected excess loss on the reference problem: {error:.3g}, compared with {compared}."


def _plan_with_more(of: str, passes: int, epsilon: float, percent: float) -> str:
    more = {"records": "Twice as many records", "passes": f"Up to {passes} passes", "epsilon": f"Epsilon = {epsilon:g}"}
    return f"{more[of]} would reduce the expected error by {percent:.0f}%."


_PLANS: dict[str, Message] = {
    "no_plan": "no plan meets these settings. Remove batches, epochs, step_size or passes to let plan choose.",
    "plan_without_loss": "{field} must be a loss, such as li.losses.logistic(feature_norm=1.0). Got {got}.",
    "loss_not_planned": "{field} must have a known smoothness and a clip or gradient bound to be planned. Got {kind} "
    "without. Set them, or describe a run and use li.calibrate with free='noise' or free='batch_size'.",
    "batches_beyond_records": "{field} must be at most the number of records, {records}. Got {got}.",
    "plan_goal": "{records} records of {features} features, epsilon = {epsilon:g} at delta = {delta:g}, {unit}, at most "
    "{passes} passes over the data",
    "plan_way": _plan_way,
    "plan_settings": "{way}; {length}, step size {step_size:.4g}, l2 {l2:g}. {why}",
    "plan_only_way": "Your settings allow no other way to train.",
    "plan_compared": _plan_compared,
    "plan_batches_otherwise": "Plan {plan} with {batches} instead of {instead_of} would reduce the noise by {percent:.0f}%.",
    "plan_with_more": _plan_with_more,
    "plans_legend": "Expected error: excess loss on a reference problem, to compare plans. ½, 2 × step: the factor on this "
    "error with half\nand with twice the step size. All released: epsilon if every iterate were released. Time: "
    "approximate, on one core.\nHidden passes: SGD without momentum, in which only the last iterate is released.",
    "frontier_title": "Expected error of the best plan at each ε",
}

# Data.


def _column_not_once(field: str, got: str, path: str, columns: list[str]) -> str:
    return f"{field} must name columns that occur once in {path}. Got {got}; the columns are {', '.join(columns)}."


_DATA: dict[str, Message] = {
    "data_not_pair": "{field} must be a pair, features and targets.",
    "data_shapes_differ": "{field} must be features and targets with one row per record. Got shapes {features} and "
    "{targets}.",
    "data_not_finite": "{field} must be finite, with rows of norm below {norm:g}. Got NaN, infinity or huge numbers; drop "
    "or fill such records without looking at others.",
    "data_masked": "{field} must have no masked entries. Fill them without looking at other records.",
    "data_not_arrays": "{field} must be arrays: {error}.",
    "targets_too_large": "{field} must be at most {largest:.3g} in size, the largest number of {dtype}. Got {got}; scale "
    "them by a public number, or use dtype=numpy.float64.",
    "records_not_as_run": "{field} must have as many records as the run, {records}. Got {got}.",
    "pieces_missing": "{field} must return all records that a step uses. {missing} of them are missing.",
    "pieces_shapes": "pieces of {field} must hold the requested records: features of shape {shape} and as many targets. Got "
    "shapes {features} and {targets}.",
    "pyarrow_missing": "Parquet files need pyarrow. Run pip install 'lastiterate[arrow]'.",
    "parquet_path": "{field} must name a file, a folder or a pattern. Got {got}.",
    "parquet_not_found": "{field} must name Parquet files. Found none at {got}.",
    "parquet_gone": "{path} cannot be read: {error}.",
    "parquet_not_read": "{path} cannot be read as a Parquet file: {error}.",
    "parquet_changed": "{path} has changed since it was opened. Create a new ParquetRecords, and do not change its files.",
    "columns_not_list": "features must be a list of columns. Got {got}; write [{got}].",
    "columns_repeated": "{field} must be columns other than the target, each once. Got {got}.",
    "column_not_once": _column_not_once,
    "column_not_numeric": "columns must hold numbers. Got {column} of type {dtype} in {path}; encode it without looking at "
    "other records, or remove it from {field}.",
    "column_has_missing": "{field} must be finite. Got missing values in column {column} of {path}; drop or fill such "
    "records without looking at others.",
    "target_types_differ": "the {field} must have one type in all files. Got {got} in {path}, but {first} in the first.",
    "records_beyond_count": "records must be positions below {records}, the number of records.",
    "memmap_exists": "{path} already exists. Open it with numpy.load(..., mmap_mode='r'), or choose another {field}.",
}

# Training.


def _loss_not_given(field: str, kind: str, known: list[str]) -> str:
    *others, last = known
    return (
        f"a run with a loss of kind {kind!r} needs {field}=, a function that returns one gradient per record. "
        f"Pass it, or use li.losses.{', '.join(others)} or {last}."
    )


def _trained_released(steps: list[int]) -> str:
    return f"Also released: the iterates after {', '.join(map(str, steps))} steps"


_TRAINING: dict[str, Message] = {
    "loss_not_given": _loss_not_given,
    "domain_dimension": "the run's domain must have one dimension per weight, {weights}. Got {got}.",
    "start_not_given": "{field} must be given together with loss=: it defines the shape of the weights.",
    "start_shape": "{field} must have shape {shape}. Got {got}.",
    "gradients_shape": "{field} must return one gradient per record, in shape {shape}. Got {got}.",
    "gradients_not_numbers": "{field} must return an array of numbers, one gradient per record. Got {got}.",
    "gradients_not_finite": "{field} must return finite gradients. Got NaN or infinity.",
    "gradients_too_large": "gradients are so large that rounding of their sum is not small compared with "
    "gradient_sensitivity. Clip them.",
    "batches_round_too_much": "{field} must be so small that rounding raises the sensitivity of their sum by a factor of at "
    "most {most}. Got {got} for {size} records; use numpy.float64 or smaller batches.",
    "rounding_amplified": "steps with a Lipschitz constant of {lipschitz:.3g} and noise from {least:.3g} to {most:.3g} "
    "amplify rounding errors too much. Use a smaller step_size, or remove the smoothness of the loss.",
    "iterates_overflowed": "the iterates overflowed. Use a smaller step_size or a smaller l2 term.",
    "noise_lost_in_rounding": "noise of {noise:.3g} on the iterate is lost in the rounding of iterates of length "
    "{length:.3g}: it must be at least {least:.2g} times their length. Use more noise, a smaller step_size, or a domain.",
    "noise_lost_in_average": "noise of {noise:.3g} on what is released is lost in the rounding of iterates of length "
    "{length:.3g}. Average fewer iterates, or use more noise.",
    "noise_lost_beside_value": "noise of {noise:.3g} is lost beside a value of {value:.3g}: double precision has too few "
    "digits for both. Subtract a public constant, or use more noise.",
    "trained_weights": "{size} weights of shape {shape}, after {steps} steps",
    "trained_released": _trained_released,
}

_CHECKPOINTS: dict[str, Message] = {
    "checkpoint_not_written": "the checkpoint {path} cannot be written: {error}.",
    "checkpoint_folder": "no checkpoint can be written in {folder}: {error}.",
    "checkpoint_of_another_run": "the checkpoint {path} belongs to another run, other data, another start or another loss. "
    "Use the same ones again, or remove the file.",
    "checkpoint_damaged": "{path} is not a checkpoint of this training, or it is damaged. Remove it, or choose another "
    "file.",
    "checkpoint_in_use": "another training uses the checkpoint {path}. Use a different file for each training.",
    "checkpoint_of_objects": "a checkpoint needs arrays of numbers, dates or strings of fixed length. Got {got}.",
}

_FORGETTING: dict[str, Message] = {
    "not_removed_records": "{field} must be such as li.forget(run, epsilon=1, delta=1e-5).of([17]). Got {got}.",
    "forget_not_zero_out": "forget leaves records out, so the run must have {field}=li.ZERO_OUT. Got {got}; plan it for "
    "replace(run, {field}=li.ZERO_OUT).",
    "forget_not_with": "{field} is for the losses that the library knows, and for a training without checkpoint. Leave "
    "{argument} out.",
    "forget_on_disk": "forget needs features in memory. Got records on disk; load them first.",
    "releases_not_planned": "{field} must be among those that forget is planned with: {planned}. Got {got}.",
    "releases_before_trained": "{field} must come after the {steps} steps of trained. Got {got}.",
    "trained_not_adaptive": "{field} needs a plan for adaptive requests, because the model that was trained earlier is "
    "known. Plan it with li.forget(run, epsilon=1, delta=1e-5, adaptive=True).",
    "trained_of_another_run": "{field} must be the model of the run that forget is planned for, before one of its requests. "
    "Got the model of another run.",
    "trained_shape": "{field} must have weights of shape {shape}, as the data say. Got {got}.",
    "start_with_trained": "{field} must be left out with trained, which is where it goes on.",
    "forgotten_not_named": "{field} must name first the records that trained has already forgotten: {forgotten}. Got {got}.",
}

# Audits.


def _trainer_lacks(path: str, missing: list[str]) -> str:
    made = " The option --make-neighbour derives it from data." if missing == ["neighbour"] else ""
    return f"{path} must define train(data, seed), data and neighbour. It lacks {', '.join(missing)}.{made}"


def _audit_bounds(
    epsilon: float,
    delta: float,
    confidence: float,
    runs: int,
    one_score: bool,
    mu: float,
    if_gaussian: float,
) -> str:
    alike = " (all runs gave the same score: check that train uses its seed)" if one_score else ""
    return (
        f"epsilon is at least {below(epsilon)} at delta = {delta:g}, with {confidence:g}% confidence, from {runs} runs on "
        f"each data set{alike}\n"
        f"mu is at least {mu:.4g}; if the trade-off is Gaussian, epsilon is at least {if_gaussian:.4g}"
    )


def _audit_title(epsilon: float, delta: float, confidence: float) -> str:
    return f"Audit: ε ≥ {below(epsilon)} at δ = {delta:g}, with {confidence:g}% confidence"


_AUDITS: dict[str, Message] = {
    "audit_too_short": "{field} must be at least {least}, or no bound is possible. Got {got}.",
    "train_signature": "{field} must take data and a seed: train(data, seed). Got {got}; {error}. Wrap it in a function of "
    "both that draws its noise from the seed.",
    "train_returned_none": "{field} must return the last iterate. Got {got}.",
    "iterate_shapes_differ": "{field} must return arrays of one shape. Got {got}; return arrays, or pass score=.",
    "score_failed": "{field} must be a function from an iterate to a number. {error}.",
    "scores_not_finite": "{field} must return finite numbers, and so must score. Got NaN or infinity.",
    "trainer_missing": "{path} cannot be read: the file does not exist.",
    "trainer_failed": "{path} cannot be run: {kind}: {error}.",
    "trainer_lacks": _trainer_lacks,
    "not_simulated": "this run cannot be simulated on quadratic losses. Audit a trainer instead: lastiterate audit "
    "train.py.",
    "neighbours_of_zero_out": "neighbours_of does not support li.ZERO_OUT, because only your trainer knows a record that "
    "contributes nothing. Pass both data sets to audit, the second one with such a record.",
    "neighbours_lengths_differ": "{field} must be arrays with the same number of records, at least one. Got {got}.",
    "neighbours_not_arrays": "{field} must be an array of records, or a tuple of arrays such as (features, targets). Got "
    "{got}.",
    "record_is_its_opposite": "record {record} is 0 and equals its opposite. Choose another record, or pass both data sets "
    "to audit.",
    "audit_bounds": _audit_bounds,
    "audit_refuted": "the claim of epsilon = {claimed:g} at delta = {delta:g} is refuted, with {confidence:g}% confidence",
    "audit_not_refuted": "the claim of epsilon = {claimed:g} at delta = {delta:g} is not refuted by these runs; this does "
    "not prove the claim",
    "audit_title": _audit_title,
    "start_outside_interval": "the interval must be finite and contain start. Got [{low}, {high}] and start {start}.",
    "chain_which": "{field} must have one integer from 0 to {most} per step. Got {got}.",
    "chain_lengths_differ": "noise and hazard must have one entry per step. Got {noise} and {hazard}.",
    "maps_leave_interval": "the maps leave the interval too far for this grid. Use fewer cells.",
}

# Worst cases: the instances of lower bounds.

_PUSHING = {
    "": "",
    "named": "these records, on ",
    "opposite": "two records with opposite gradients on ",
    "one_sided": "a record with a gradient, against one without, on ",
    "against_others": "a record whose gradient opposes all others, against no record, on ",
}


def _pushing_on(losses: str, pushing: str, user_records: int = 1) -> str:
    together = f"{user_records} records of a user in one batch, on " if user_records > 1 else ""
    return f"{together}{_PUSHING[pushing]}{losses}"


def _quadratic_losses(hessian: float, pushing: str = "", user_records: int = 1) -> str:
    return _pushing_on(f"quadratic losses with Hessian {hessian:g}", pushing, user_records)


def _clipped_losses(pushing: str = "", user_records: int = 1) -> str:
    losses = "losses whose gradients are clipped everywhere the iterates reach (a supremum)"
    return _pushing_on(losses, pushing, user_records)


def _changing_curvature(pushing: str = "", kept: float = 1.0) -> str:
    losses = (
        "quadratic losses whose curvature changes over time (a supremum, approached by losses with a clock coordinate)"
    )
    shrinks = f"; before the last step the iterate shrinks by a factor of {kept:.3g}" if pushing else ""
    return _pushing_on(losses, pushing) + shrinks


def _pulls_on_interval(pushing: str, beside: float, elsewhere: float) -> str:
    pulled = f", where the other records pull back by {beside:.3g} times the noise"
    if elsewhere != beside:
        pulled += f" in the record's batch and by {elsewhere:.3g} times in others"
    elif not beside:
        pulled = ""
    return _pushing_on("an interval", pushing) + pulled


def _lower_bound_at(epsilon: float, delta: float, instance: object) -> str:
    return f"epsilon is at least {below(epsilon, 6)} at delta = {delta:g}: {instance}"


_WORST_CASES: dict[str, Message] = {
    "lower_bound_at": _lower_bound_at,
    "no_worst_case": "no worst-case loss is known for such a run",
    "beforehand_alone": "the release before training alone",
    "quadratic_losses": _quadratic_losses,
    "quadratic_up_to_bound": "quadratic losses with Hessian {hessian:g} for all other records, up to the bound on gradients",
    "clipped_losses": _clipped_losses,
    "changing_curvature": _changing_curvature,
    "pulls_on_interval": _pulls_on_interval,
    "two_wells": "a non-convex loss with two wells, where the record decides into which one the iterates fall",
}

# Mechanisms.

_MECHANISMS: dict[str, Message] = {
    "kernel_shape": "{field} must have rows and columns, at most 1e8 entries. Got shape {got}.",
    "kernel_row_sum": "every row of matrix must sum to 1. Row {row} sums to {sum:.9g}.",
    "kernels_do_not_match": "the second kernel must have {rows} rows, the number of columns of the first.",
    "kernel_not_square": "a kernel must be square to be repeated. Got shape {got}.",
    "exponential_unbounded": "the exponential mechanism needs strong_convexity or diameter. Got neither.",
    "trace_not_kept": "there is no trace to plot. Use trace=True, on public data only.",
    "gradient_raised": "{field} must return numbers of shape {shape}. It raised: {error}.",
    "gradient_shape": "{field} must return finite numbers of shape {shape}. Got shape {got}.",
    "kappa_raised": "{field} must take an array of times. It raised: {error}.",
    "kappa_values": "{field} must return one finite number >= 0 for each time.",
    "kappa_falls_slowly": "{field} must fall at least as fast as 1/t². From t = {time:.6g} on t²·kappa grows.",
}

# Plots, and several processes.

_TOOLS: dict[str, Message] = {
    "matplotlib_missing": "plots need matplotlib, which is not installed. Run pip install 'lastiterate[plots]'.",
    "not_drawn": "{path} cannot be drawn: {error}.",
    "joblib_missing": "workers > 1 needs joblib, which is not installed. Run pip install joblib.",
}

MESSAGES: dict[str, Message] = {
    **_PLANS,
    **_DATA,
    **_TRAINING,
    **_CHECKPOINTS,
    **_FORGETTING,
    **_AUDITS,
    **_WORST_CASES,
    **_MECHANISMS,
    **_TOOLS,
}
