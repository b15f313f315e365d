"""Messages of estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lastiterate.digits import above
from lastiterate.report.messages import Message


def _search_setting(field: str, prefix: str, got: str) -> str:
    """`prefix`: of settings of the last step of a pipeline; empty where there is none."""
    named = f", as {prefix}l2 names one of the last step" if prefix else ""
    return f"{field} must hold settings of the estimator{named}. Got {got}."


def _search_learning_step(field: str, steps: Sequence[str]) -> str:
    return (
        f"{field} must not learn from the records without noise. {' and '.join(steps)} does. Use PrivatePreparation, or "
        "steps that look at each row alone, such as Normalizer."
    )


def _table_empty(path: str, header: bool) -> str:
    return f"{path} must hold {'a header line and ' if header else ''}at least one record."


def _table_no_target(path: str, target: str, columns: Sequence[str]) -> str:
    hint = " Cells are separated by commas." if len(columns) == 1 else ""
    return f"{path} has no column {target!r}. It has {', '.join(columns)}.{hint}"


def _train_scale_column(option: str, column: str, columns: Sequence[str]) -> str:
    return f"{option} names the column {column!r}, which is not in the data. The columns are {', '.join(columns)}."


def _train_epsilon(report: Any) -> str:
    return (
        f"epsilon = {above(report.epsilon, 6)} at delta = {report.delta:g} ({report.unit}), by "
        f"{report.best.theorem.name}\nreleasing every iterate: epsilon = {report.epsilon_all_released:.4g}"
    )


def _train_one_class(answer: Any, test: str | None, rows: int, bounded: bool) -> str:
    """`test`: the file of public records; None where rows were drawn."""
    drawn = "within the bounds" if bounded else "around the private centre"
    which = f"each of {rows} rows drawn {drawn}" if test is None else f"every record of {test}"
    return (
        f"the model predicts {answer!r} for {which}. Set public ranges of the columns with --bounds or --scale, or use a "
        "larger epsilon."
    )


_FITS: dict[str, Message] = {
    "fit_batches_kind": (
        "{field} must be the number of batches per epoch, or batches such as li.FullBatch(records=1000). Got {got}."
    ),
    "fit_batches_rows": "{field} must describe {rows} records, one for each row. Got {got}.",
    "labels_type": "{field} must have the type of classes = {classes}. Got {got}.",
    "labels_unknown": "{field} must hold only labels in classes = {classes}. It holds others.",
    "classes_too_few": "classes must hold at least two labels. Got one class, {got}.",
    "random_state_kind": "{field} must be None, an integer or a RandomState: {error}.",
    "preparation_adjacency": (
        "PrivatePreparation in this pipeline has adjacency {own!r}, the model has {adjacency!r}. Use the same adjacency "
        "for both."
    ),
    "rows_shortened": (
        "{count} of {rows} rows were longer than feature_norm = {norm:g} and were scaled down to it. This number is not "
        "private."
    ),
    "targets_clipped": (
        "{count} of {targets} targets were larger than target_bound = {bound:g} and were clipped to it. This number is "
        "not private."
    ),
}

_SEARCHES: dict[str, Message] = {
    "search_estimator_kind": (
        "{field} must be a private estimator, such as PrivateLogisticRegression(epsilon=0.5, delta=1e-5), or a Pipeline "
        "that ends in one. Got {got}."
    ),
    "search_half_target": (
        "epsilon and delta of a search must be given together. Give both, or neither: the estimator's are for one trial."
    ),
    "search_grid_kind": "{field} must map settings to lists of values: {error}.",
    "search_setting": _search_setting,
    "search_learning_step": _search_learning_step,
    "search_after_learning": (
        "PrivateGridSearchCV must not follow a step that learns from the same records: trials would not be independent. "
        "Private estimators prepare features by themselves."
    ),
    "search_adjacencies": "{field} must be the same in all steps. Give PrivatePreparation adjacency={adjacency!r}.",
    "search_memory": (
        "{field} must be None in a pipeline that is searched: with a cache, trials would share what one of them learnt, "
        "and would not be independent."
    ),
    "search_not_given": "{field} must be given to {step}: a trial must not learn it from the data.",
    "search_trial_seeded": (
        "{field} must not be set in the estimator: all trials would be the same. Give it to the search, for tests."
    ),
    "search_scoring": (
        "{field} must be '{allowed}' where private records are held out: its noise is known for no other score. Got {got}. "
        "For other scores give public records: validation=(X, y)."
    ),
    "search_validation_kind": (
        "{field} must be public records (X, y), or the share of records to hold out. Got {got}."
    ),
    "search_share": (
        "{field} = {share:g} of {records} records leaves no records to train on or to score. Choose another share."
    ),
    "search_overspent": "the search would spend epsilon = {epsilon:.6g}, which is more than {most:g}.",
    "search_trial_differs": "a trial ran otherwise than it was accounted for, so nothing is released.",
    "search_no_trial": (
        "the number of trials that was drawn is 0, so there is no model. This does not depend on the data. Use "
        "li.trials.Geometric, which is never 0."
    ),
}

_TABLES: dict[str, Message] = {
    "table_not_parquet": "{path} cannot be read as a Parquet file: {error!s:.120}",
    "table_not_csv": "{path}, line {line} is not CSV: {error}.",
    "table_empty": _table_empty,
    "table_no_target": _table_no_target,
    "table_no_feature": "{path} must have at least one feature column besides the target. Got {got}.",
    "table_name_twice": "{path} must have a different name for each column. Got {got} twice.",
    "table_row": "{path}, line {line} must have {columns} cells, one per column. Got {got}.",
    "table_gap": "{path}, record {record}: column {column} is empty. Fill it, or remove the record.",
    "table_cell": (
        "{path}, {unit} {at}: column {column} must hold numbers. Got {got}; encode or fill it without looking at other "
        "records, or remove the column."
    ),
    "table_target": "the target column of a regression must hold numbers. Got {got}.",
}

# `lastiterate train`.
_TRAIN: dict[str, Message] = {
    "train_classes_unused": "--classes needs a classifier. Got --model {model}; remove --classes.",
    "train_bound_unused": "--target-bound needs a regression. Got --model {model}; remove --target-bound.",
    "train_many_labels": (
        "--target {target} has {labels} different values, too many for a classifier. Use --model ridge for numbers, or "
        "list all labels with --classes."
    ),
    "train_test_private": (
        "--test must be a file of public records. Got the training data; a score on them would be another release."
    ),
    "train_test_columns": "{test} must have the columns of {data}, in the same order.",
    "train_scale_form": "{option} must look like {example}. Got {got}.",
    "train_scale_column": _train_scale_column,
    "train_scale_number": "--scale of {column} must be a number. Got {got}.",
    "train_scaled_twice": "column {column} is in both --bounds and --scale. Remove it from one of them.",
    "train_bounds_form": ("--bounds of {column} must be LOW:HIGH, two numbers, the lower one first. Got {got}."),
    "train_one_class": _train_one_class,
    "train_epsilon": _train_epsilon,
    "train_plan": (
        "training plan: {plan}\nnoise std {noise:.4g} on the mean gradient; centring and scaling used {share:.2g}% of the "
        "privacy budget (of mu²)"
    ),
    "train_score": "{name} on {test}: {score:.4f}",
    "train_unsaved": "save the model with --write model.json",
}

MESSAGES: dict[str, Message] = {**_FITS, **_SEARCHES, **_TABLES, **_TRAIN}
