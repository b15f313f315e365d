"""Options that several commands have."""

from __future__ import annotations

import argparse

from lastiterate.privacy.adjacency import Adjacency

ADJACENCIES = {one.name.lower().replace("_", "-"): one for one in Adjacency}


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run, as .toml or .json")
    add_delta(parser)


def add_delta(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delta", type=float, default=1e-5, help="the delta of the guarantee (default: 1e-5)")


def add_adjacency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--adjacency",
        choices=list(ADJACENCIES),
        default="replace-one",
        help="what is protected: that a record is another one (the default), that it contributes nothing, that it is there",
    )


def add_releases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--releases", type=int, nargs="+", default=(), metavar="STEP", help="checkpoints released as well"
    )


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--plot", metavar="FILE", help=f"draw {what}")
