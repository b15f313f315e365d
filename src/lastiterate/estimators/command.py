"""`lastiterate train`: from a CSV file to a private linear model, written as JSON."""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from pathlib import Path
from typing import Any

from lastiterate.accounting.report import Report
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import InvalidInput, worded
from lastiterate.estimators import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.one_class import warning_of_one_class
from lastiterate.estimators.public_scales import PublicScales, public_scales
from lastiterate.estimators.regressors import REGRESSIONS
from lastiterate.estimators.table import Table, read_table
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.report.english import warning

_MOST_LABELS = 100  # that are taken for classes without being told
_SHARED = ("epsilon", "delta", "feature_norm", "l2", "batches", "epochs", "step_size")


def train_table(options: argparse.Namespace) -> tuple[dict[str, Any], str, Report]:
    """What was trained, for JSON and for people, and its report. Warnings are said on the standard error stream."""
    _check(options)
    table = read_table(options.data, options.target)
    _check_labels(options, table)
    test = _test_table(table, options)  # before the budget is spent
    scales = public_scales(table.names, options.bounds, options.scale)
    model = _model(options, scales)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(scales.cut_rows(table.features), _targets(options, table))
    for one in said:
        leak = getattr(one.message, "leak", None)
        print(f"warning: {one.message if leak is None else warning(leak, options=True)}", file=sys.stderr)
    content = _content(model, table, scales, options)
    if test is not None:
        content["score_on_test"] = float(model.score(scales.rows(test.features), _targets(options, test)))
    _say_if_one_class(model, scales, test, options)
    return content, _text(model, content, options), model.report_


def _check(options: argparse.Namespace) -> None:
    regression = options.model in REGRESSIONS
    if regression and options.classes:
        raise InvalidInput("train_classes_unused", model=options.model)
    if not regression and options.target_bound is not None:
        raise InvalidInput("train_bound_unused", model=options.model)
    if options.test and Path(options.test).resolve() == Path(options.data).resolve():
        raise InvalidInput("train_test_private")


def _check_labels(options: argparse.Namespace, table: Table) -> None:
    """A column of measurements has as many labels as values."""
    labels = len(set(table.target)) if options.model not in REGRESSIONS and not options.classes else 0
    if labels > _MOST_LABELS:
        raise InvalidInput("train_many_labels", target=options.target, labels=labels)


def _model(options: argparse.Namespace, scales: PublicScales) -> PrivateLinearModel:
    given = {name: getattr(options, name) for name in _SHARED}
    given["feature_norm"] = scales.norm if options.feature_norm is None else options.feature_norm
    given |= {"fit_intercept": not options.no_intercept, "random_state": options.seed}
    given["adjacency"] = Adjacency[options.adjacency.replace("-", "_").upper()]
    given |= {"preparation": None} if options.no_preparation else {}
    given |= {} if options.passes is None else {"passes": options.passes}
    match options.model:
        case "logistic":
            return PrivateLogisticRegression(classes=options.classes, **given)
        case "svc":
            return PrivateLinearSVC(classes=options.classes, **given)
    return PrivateLinearRegression(loss=options.model, target_bound=options.target_bound, **given)


def _targets(options: argparse.Namespace, table: Table) -> Any:
    return table.numbers if options.model in REGRESSIONS else list(table.target)


def _test_table(table: Table, options: argparse.Namespace) -> Table | None:
    if not options.test:
        return None
    test = read_table(options.test, options.target)
    if test.names != table.names:
        raise InvalidInput("train_test_columns", test=options.test, data=options.data)
    return test


def _say_if_one_class(
    model: PrivateLinearModel, scales: PublicScales, test: Table | None, options: argparse.Namespace
) -> None:
    public = None if test is None else scales.rows(test.features)
    said = warning_of_one_class(model, scales, public, options.test) if hasattr(model, "classes_") else None
    if said is not None:
        print(f"warning: {said}", file=sys.stderr)


def _content(
    model: PrivateLinearModel, table: Table, scales: PublicScales, options: argparse.Namespace
) -> dict[str, Any]:
    coefficients, intercept = scales.in_columns(model.coef_, model.intercept_)
    content: dict[str, Any] = {
        "model": options.model,
        "features": list(table.names),
        "coefficients": coefficients.tolist(),
        "intercept": intercept.tolist(),
        "private": model.private_,
    }
    if hasattr(model, "classes_"):
        content["classes"] = model.classes_.tolist()
    return content | {"report": model.report_.to_dict(), "certificate": model.report_.certificate}


def _text(model: PrivateLinearModel, content: dict[str, Any], options: argparse.Namespace) -> str:
    report = model.report_
    lines = [
        *map(str, report.caveats),
        worded("train_epsilon", report=report),
        worded("train_plan", plan=model.plan_, noise=model.noise_, share=100 * _share(report)),
    ]
    if options.test:
        name = "R²" if options.model in REGRESSIONS else "accuracy"
        lines.append(worded("train_score", name=name, test=options.test, score=content["score_on_test"]))
    if not options.write:
        lines.append(worded("train_unsaved"))
    return "\n".join(lines)


def _share(report: Report) -> float:
    """Of mu², what was spent before training."""
    mu = report.mu or float(shift_below(math.log(report.delta), report.epsilon))
    return (report.run.prior_mu / mu) ** 2
