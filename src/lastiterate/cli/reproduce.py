"""The command `lastiterate reproduce`."""

from __future__ import annotations

import argparse

from lastiterate.cli.interrupt import ending_at_once
from lastiterate.cli.show import show
from lastiterate.reproduction import TITLES


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", choices=[*TITLES, "all"], help="a paper, or all of them")
    parser.add_argument(
        "exhibits",
        metavar="EXHIBIT",
        nargs="*",
        help="its figures and tables, such as fig-1 table-3 (default: all)",
    )
    parser.add_argument("--out", metavar="DIR", default="out/papers", help="output folder (default: out/papers)")
    parser.add_argument("--quick", action="store_true", help="coarser grids and fewer repetitions; at most two minutes")
    parser.add_argument("--fresh", action="store_true", help="recompute results that already exist")
    parser.add_argument(
        "--mnist",
        metavar="DIR",
        help="folder with the four MNIST files, for Tables 2, 5 and 6 of Bok2024 (default: $LASTITERATE_DATA/mnist)",
    )
    parser.add_argument("--workers", type=int, help="number of parallel processes (default: one per core)")


def answer(options: argparse.Namespace) -> int:
    """Print the exhibits, which are loaded only here."""
    with ending_at_once():
        from lastiterate.reproduction.command import reproduced
    show(options, *reproduced(options))
    return 0
