"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.curves.adjacency import Adjacency

ADJACENCIES = {one.name.lower().replace("_", "-"): one for one in Adjacency}


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="file that describes the run (.toml or .json)")
    add_delta(parser)


def add_delta(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delta", type=float, default=1e-5, help="delta of the guarantee (default: 1e-5)")


def add_adjacency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--adjacency",
        choices=list(ADJACENCIES),
        default="replace-one",
        help="how neighbouring data sets differ: one record is replaced (default), contributes nothing, "
        "or is added or removed",
    )


def add_user_records(parser: argparse.ArgumentParser, default: int | None = None) -> None:
    parser.add_argument(
        "--user-records",
        type=int,
        default=default,
        metavar="COUNT",
        help="protect users who have up to this many records each (default: 1)",
    )


def add_chosen_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options for settings that a plan otherwise chooses from public numbers."""
    parser.add_argument("--l2", type=float, help="strength of L2 regularisation (default: chosen)")
    parser.add_argument("--batches", type=int, help="batches per epoch (default: chosen)")
    parser.add_argument("--epochs", type=int, help="passes over the data (default: chosen)")
    parser.add_argument(
        "--step-size", type=float, metavar="SIZE", help="step size of gradient descent (default: chosen)"
    )


def add_releases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--releases",
        type=int,
        nargs="+",
        default=(),
        metavar="STEP",
        help="also release the iterates after these steps",
    )


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--plot", metavar="FILE", help=f"plot {what}")


def add_certificate(parser: argparse.ArgumentParser, of: str = "the proof") -> None:
    parser.add_argument("--certificate", metavar="FILE", help=f"write {of}, to check with `lastiterate verify`")


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", metavar="FILE", help="write a report to sign (.html), or its content as .json or .txt"
    )
    parser.add_argument(
        "--stated", metavar="FILE", help="with --report, your own entries for its privacy label (.toml or .json)"
    )


def add_data_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-key",
        metavar="FILE",
        help="with --report, secret key for the digest of the data; created if the file does not exist",
    )


def stated_in(options: argparse.Namespace) -> Any:
    """Return the owner's statements, read from the file when the report is written; None without a file."""
    from lastiterate.runs.files import read_plain

    return read_plain(options.stated) if options.stated else None
