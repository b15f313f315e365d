"""`lastiterate train`: from a CSV file to a private linear model, written as JSON."""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.accounting.report import Report
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import POSITIVE, InvalidInput, checked_number, worded
from lastiterate.estimators import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.regressors import REGRESSIONS
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.report.english import warning
from lastiterate.runs.files import read_text
from lastiterate.training.parquet import parquet

_MOST_LABELS = 100  # that are taken for classes without being told
_SHARED = ("epsilon", "delta", "feature_norm", "l2", "batches", "epochs", "step_size")


def train_table(options: argparse.Namespace) -> tuple[dict[str, Any], str, Report]:
    """Train a model on a table; return it as JSON and text, with its report, and print warnings to standard error."""
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
    """Raise an error for a column with so many labels that it looks like measurements."""
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
    """Share of mu² that was spent before training."""
    mu = report.mu or float(shift_below(math.log(report.delta), report.epsilon))
    return (report.run.prior_mu / mu) ** 2


# Tables: CSV files with a header, or Parquet files; one column is the target, all others are numbers.


_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Table:
    """A table of named features, with the target as it is written."""

    names: tuple[str, ...]
    features: Floats
    target: tuple[str, ...]

    @property
    def numbers(self) -> Floats:
        """Return the target as numbers."""
        found = np.array([_number(cell) for cell in self.target])
        if not np.isfinite(found).all():
            wrong = self.target[int(np.argmin(np.isfinite(found)))]
            raise InvalidInput("table_target", got=f"{wrong!r}")
        return found


def read_table(path: str, target: str) -> Table:
    """Read a table from a .csv or .parquet file; the columns other than `target` become features."""
    return _read_parquet(path, target) if path.lower().endswith(".parquet") else _read_csv(path, target)


def _read_parquet(path: str, target: str) -> Table:
    reader = parquet()
    try:
        content = reader.read_table(path)
    except (OSError, ValueError) as error:
        raise InvalidInput("table_not_parquet", path=path, error=error) from error
    header = list(content.column_names)
    _check_header(path, header, target)
    if not content.num_rows:
        raise InvalidInput("table_empty", path=path, header=False)
    names = tuple(name for name in header if name != target)
    features = [_column(path, name, content.column(name).to_pylist()) for name in names]
    labels = content.column(target).to_pylist()
    if None in labels:
        raise InvalidInput("table_gap", path=path, record=labels.index(None) + 1, column=target)
    return Table(names, np.stack(features, axis=1), tuple(str(one).strip() for one in labels))


def _column(path: str, name: str, values: list[Any]) -> Floats:
    """Return a column as numbers, with true and false as 1 and 0."""
    for place, one in enumerate(values):
        if not isinstance(one, int | float) or not abs(one) < _LARGEST:
            raise InvalidInput("table_cell", path=path, unit="record", at=place + 1, column=name, got=f"{one!r:.60}")
    return np.array(values, float)


def _read_csv(path: str, target: str) -> Table:
    lines = csv.reader(io.StringIO(read_text(path)), strict=True)
    try:
        rows = [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]
    except csv.Error as error:
        raise InvalidInput("table_not_csv", path=path, line=lines.line_num, error=error) from error
    if len(rows) < 2:
        raise InvalidInput("table_empty", path=path, header=True)
    header = rows[0][1]
    _check_header(path, header, target)
    place = header.index(target)
    features = [_numbers(path, line, header, row, place) for line, row in rows[1:]]
    names = tuple(header[:place] + header[place + 1 :])
    return Table(names, np.array(features, float), tuple(row[place] for _, row in rows[1:]))


def _check_header(path: str, header: list[str], target: str) -> None:
    if target not in header:
        raise InvalidInput("table_no_target", path=path, target=target, columns=header)
    twice = [name for name in header if not name or header.count(name) > 1]
    if twice:
        raise InvalidInput("table_name_twice", path=path, got=f"{twice[0]!r}")
    if len(header) < 2:
        raise InvalidInput("table_no_feature", path=path, got=f"{header}")


def _numbers(path: str, line: int, header: list[str], row: list[str], place: int) -> list[float]:
    if len(row) != len(header):
        raise InvalidInput("table_row", path=path, line=line, columns=len(header), got=f"{len(row)}")
    found = []
    for column, cell in enumerate(row):
        number = _number(cell)
        if column != place and not abs(number) < _LARGEST:
            raise InvalidInput(
                "table_cell", path=path, unit="line", at=line, column=header[column], got=f"{cell!r:.60}"
            )
        found.append(number)
    return found[:place] + found[place + 1 :]


def _number(cell: str) -> float:
    try:
        return float(cell) if "_" not in cell else math.nan
    except ValueError:
        return math.nan


# Classifiers with one answer for everything, recognised from public or released numbers alone.


_ROWS = 1000


def warning_of_one_class(
    model: PrivateLinearModel, scales: PublicScales, public: Floats | None, where: str
) -> str | None:
    """Return a warning if the model has one answer for all `public` rows, or for random rows instead."""
    rows = _drawn(model, scales) if public is None else public
    answers = set(np.asarray(model.predict(rows)).tolist())
    if len(answers) > 1 or len(rows) < 2:
        return None
    test = None if public is None else where
    return worded("train_one_class", answer=answers.pop(), test=test, rows=_ROWS, bounded=bool(scales.bounded.all()))


def _drawn(model: PrivateLinearModel, scales: PublicScales) -> Floats:
    """Draw rows within public bounds, or around the released centre as far as its scale."""
    source, width = np.random.default_rng(0), len(scales.half)
    if scales.bounded.all():
        return source.uniform(-1.0, 1.0, (_ROWS, width))
    learnt = model.preparation_
    return np.asarray(learnt.center + learnt.scale * source.normal(size=(_ROWS, width)) / np.sqrt(width))


# Public ranges of columns, which bring raw numbers to like scales.


_ALL_OTHERS = "*"
_EXAMPLES = {"--bounds": "age=17:90", "--scale": "age=50"}
_Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class PublicScales:
    """Public scales: a column x is trained on as (x − middle)/half; `bounded` ones are cut to [−1, 1]."""

    middle: Floats
    half: Floats
    bounded: Floats

    @property
    def norm(self) -> float | None:
        """Upper bound on the norm of rows if every column is bounded, otherwise None."""
        return math.sqrt(len(self.half)) if self.bounded.all() else None

    def rows(self, features: Floats) -> Floats:
        """Return the rows in the model's units, without cutting them."""
        return np.asarray((features - self.middle) / self.half)

    def cut_rows(self, features: Floats) -> Floats:
        """Return the rows in the model's units, cut to their bounds as they are for training."""
        rows = self.rows(features)
        return np.where(self.bounded, np.clip(rows, -1.0, 1.0), rows)

    def in_columns(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return the model's coefficients and intercept for the columns as they are in the file."""
        raw = coefficients / self.half
        return raw, intercept - raw @ self.middle


def public_scales(names: Sequence[str], bounds: Sequence[str], scales: Sequence[str]) -> PublicScales:
    """Parse scales such as age=17:90 and income=1e5; a column `*` stands for all that are not named."""
    ranges = {name: _bounds(name, text) for name, text in _named("--bounds", bounds, names)}
    sizes = {name: _scale(name, text) for name, text in _named("--scale", scales, names)}
    for name in ranges.keys() & sizes.keys():
        raise InvalidInput("train_scaled_twice", column=name)
    given = {**{name: (0.0, size) for name, size in sizes.items()}, **ranges}
    found = [given.get(name, given.get(_ALL_OTHERS, (0.0, 1.0))) for name in names]
    bounded = [name in ranges or (name not in sizes and _ALL_OTHERS in ranges) for name in names]
    middle, half = np.array(found).T
    return PublicScales(middle, half, np.array(bounded))


def _named(option: str, texts: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for text in texts:
        name, is_there, value = text.rpartition("=")
        if not is_there:
            raise InvalidInput("train_scale_form", option=option, example=_EXAMPLES[option], got=f"{text!r:.60}")
        if name not in (*names, _ALL_OTHERS):
            raise InvalidInput("train_scale_column", option=option, column=name, columns=names)
        found.append((name, value))
    return found


def _bounds(name: str, text: str) -> _Range:
    low, is_there, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = (math.nan, math.nan)
    if not is_there or not -1e100 < ends[0] < ends[1] < 1e100:
        raise InvalidInput("train_bounds_form", column=name, got=f"{text!r:.60}")
    return (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2


def _scale(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput("train_scale_number", column=name, got=f"{text!r:.60}") from None
    return checked_number(f"--scale of {name}", number, POSITIVE)
