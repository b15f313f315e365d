"""`lastiterate train`."""

from __future__ import annotations

import argparse

from lastiterate.cli.interrupt import ending_at_once
from lastiterate.cli.options import add_adjacency
from lastiterate.cli.show import show
from lastiterate.errors import Unavailable


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="a CSV file with a line of names, or a .parquet file; features are numbers")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    kinds = ("logistic", "svc", "huber", "ridge")
    parser.add_argument("--model", choices=kinds, default="logistic", help="default: logistic")
    parser.add_argument("--epsilon", type=float, required=True, help="of the released model")
    parser.add_argument("--delta", type=float, help="of the released model; from the number of records if not given")
    parser.add_argument("--feature-norm", type=float, metavar="NORM", help="rows that are longer are scaled down to it")
    parser.add_argument(
        "--bounds", nargs="+", default=(), metavar="COLUMN=LOW:HIGH", help="public ranges; * is every other column"
    )
    parser.add_argument(
        "--scale", nargs="+", default=(), metavar="COLUMN=SIZE", help="public sizes that columns are divided by"
    )
    parser.add_argument("--classes", nargs="+", metavar="LABEL", help="all labels there can be")
    parser.add_argument(
        "--target-bound", type=float, metavar="BOUND", help="of a regression: targets beyond it are cut"
    )
    parser.add_argument("--l2", type=float, help="chosen if not given, as are the next three")
    parser.add_argument("--batches", type=int, help="in an epoch")
    parser.add_argument("--epochs", type=int, help="passes over the data")
    parser.add_argument("--step-size", type=float, metavar="SIZE", help="of gradient descent")
    parser.add_argument("--passes", type=int, metavar="MOST", help="over the data, at most (default: 250)")
    add_adjacency(parser)
    parser.add_argument(
        "--no-preparation", action="store_true", help="do not centre and scale features under the same budget"
    )
    parser.add_argument("--no-intercept", action="store_true", help="no constant term")
    parser.add_argument("--seed", type=int, help="for tests: the model is then not private")
    parser.add_argument(
        "--test", metavar="FILE", help="a CSV or Parquet file of public records to measure the model on"
    )
    parser.add_argument("--write", metavar="FILE", help="write the model and its report, as JSON")


def answer(options: argparse.Namespace) -> int:
    """scikit-learn is loaded here only."""
    try:
        with ending_at_once():
            from lastiterate.estimators.command import train_table
    except ImportError as error:
        raise Unavailable(str(error)) from error
    show(options, *train_table(options))
    return 0
