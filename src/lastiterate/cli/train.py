"""The command `lastiterate train`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from lastiterate.certificate.replay import json_safe
from lastiterate.cli.interrupt import ending_at_once
from lastiterate.cli.options import (
    add_adjacency,
    add_certificate,
    add_chosen_settings,
    add_data_key,
    add_report,
    stated_in,
)
from lastiterate.cli.show import Extra, a_certificate, a_report, printable, show, written
from lastiterate.errors import Unavailable
from lastiterate.runs.files import write_text


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="CSV file with a header line, or .parquet file; features must be numbers")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column to predict")
    kinds = ("logistic", "svc", "huber", "ridge")
    parser.add_argument("--model", choices=kinds, default="logistic", help="model to train (default: logistic)")
    parser.add_argument("--epsilon", type=float, required=True, help="epsilon of the released model")
    parser.add_argument("--delta", type=float, help="delta of the released model (default: from the number of records)")
    parser.add_argument(
        "--feature-norm", type=float, metavar="NORM", help="scale longer feature rows down to this norm"
    )
    parser.add_argument(
        "--bounds",
        nargs="+",
        default=(),
        metavar="COLUMN=LOW:HIGH",
        help="public range of a column; * stands for every other column",
    )
    parser.add_argument(
        "--scale", nargs="+", default=(), metavar="COLUMN=SIZE", help="divide a column by this public number"
    )
    parser.add_argument("--classes", nargs="+", metavar="LABEL", help="all possible labels")
    parser.add_argument(
        "--target-bound", type=float, metavar="BOUND", help="regression: clip targets to [-BOUND, BOUND]"
    )
    add_chosen_settings(parser)
    parser.add_argument(
        "--passes", type=int, metavar="MOST", help="largest number of passes over the data (default: 250)"
    )
    add_adjacency(parser)
    parser.add_argument(
        "--no-preparation", action="store_true", help="do not spend budget on centring and scaling features"
    )
    parser.add_argument("--no-intercept", action="store_true", help="train without a constant term")
    parser.add_argument("--seed", type=int, help="seed, for tests only: a seeded model is NOT private")
    parser.add_argument("--test", metavar="FILE", help="CSV or Parquet file of public records to test the model on")
    parser.add_argument("--write", metavar="FILE", help="write the model and its report, as JSON")
    add_certificate(parser)
    add_report(parser)
    add_data_key(parser)


def answer(options: argparse.Namespace) -> int:
    """Train a model on a table; scikit-learn is loaded only here."""
    try:
        with ending_at_once():
            from lastiterate.estimators.command import train_table
    except ImportError as error:
        raise Unavailable("command_not_loaded", reason=str(error)) from error
    content, text, report = train_table(options)
    show(options, content, text)
    lost = _model_written(options, content)
    model = options.write if not lost else None
    return max(
        lost,
        written(
            options,
            a_certificate(options.certificate, report.save_certificate),
            a_report(options.report, lambda path: report.save(path, **_about(options, model))),
        ),
    )


def _model_written(options: argparse.Namespace, content: dict[str, Any]) -> int:
    """Write the model, or print it if that fails: its budget is spent, so it must not be lost."""
    text = json.dumps(json_safe(content), indent=2) + "\n"
    code = written(options, Extra(options.write, lambda path: write_text(path, text), "written_model"))
    if code and not options.json:
        print(printable(text), end="")
    return code


def _about(options: argparse.Namespace, model: str | None) -> dict[str, Any]:
    """Files and statements about its surroundings that go into the report."""
    data = {"data": options.data, "data_key": options.data_key} if options.data_key else {}
    return {"model": model, "stated": stated_in(options), **data}
