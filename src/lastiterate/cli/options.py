"""What may be typed."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from typing import Any, NoReturn

from lastiterate.cli.accounting import account_command, calibrate_command, compare_command
from lastiterate.cli.catalogue import errata_command, theorems_command
from lastiterate.cli.checking import audit_command, verify_command
from lastiterate.cli.reproduction import add_reproduction_options, reproduce_command
from lastiterate.cli.show import printable
from lastiterate.cli.training import add_training_options, train_command
from lastiterate.errors import one_line
from lastiterate.reproduction.errata import Effect


class Parser(argparse.ArgumentParser):
    """What cannot be understood is answered by one sentence, without the usage of every option."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{one_line(f'lastiterate: {message}. Try: {self.prog} --help.')}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse keeps it to itself if the help cannot be written."""
        if (stream := file or sys.stderr) is not None:
            stream.write(printable(message))


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="lastiterate",
        description="Differential privacy when only the last iterate is released.",
        epilog="example: lastiterate account examples/mnist.toml --delta 1e-5",
    )
    parser.add_argument("--version", action="version", version=f"lastiterate {version('lastiterate')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    one = _command(
        commands, "account", account_command, "the least provable epsilon of a run", "account run.toml --delta 1e-5"
    )
    _add_run(one)
    one.add_argument("--each", action="store_true", help="every record's own epsilon, by its batch")
    one.add_argument("--certificate", metavar="FILE", help="write the proof, for `lastiterate verify`")
    _add_releases(one)
    _add_plot(one, "epsilon against steps")
    one = _command(
        commands,
        "calibrate",
        calibrate_command,
        "the noise or the steps that meet a target",
        "calibrate run.toml --epsilon 1",
    )
    _add_run(one)
    one.add_argument("--epsilon", type=float, required=True, help="the target")
    one.add_argument("--free", choices=("noise", "steps"), default="noise", help="what may change (default: noise)")
    one.add_argument("--most-steps", type=int, default=1_000_000, help="with --free steps, never more than these")
    one.add_argument("--write", metavar="FILE", help="write the run that meets it, as .toml or .json")
    _add_releases(one)
    one = _command(
        commands, "compare", compare_command, "every theorem side by side", "compare run.toml --plot out/compare.png"
    )
    _add_run(one)
    _add_releases(one)
    _add_plot(one, "epsilon of every theorem")
    one = _command(commands, "verify", verify_command, "replay a certificate", "verify certificate.json --run run.toml")
    one.add_argument("certificate", help="a file that `account --certificate` wrote")
    one.add_argument("--run", metavar="FILE", help="it must be about this run")
    one = _command(
        commands,
        "audit",
        audit_command,
        "train many times, bound epsilon from below",
        "audit run.toml --runs 2000 --delta 1e-5",
    )
    one.add_argument(
        "what", help="a run (.toml, .json), or a .py file that defines train(data, seed), data and neighbour"
    )
    one.add_argument("--delta", type=float, default=1e-5, help="the delta of the guarantee (default: 1e-5)")
    one.add_argument("--runs", type=int, default=1000, help="on each of the two data sets (default: 1000)")
    one.add_argument("--confidence", type=float, default=0.95, help="of the bound (default: 0.95)")
    one.add_argument("--workers", type=int, default=1, help="processes to spread the runs over (default: 1)")
    one.add_argument("--seed", type=int, default=0, help="from which the seeds of all runs are made (default: 0)")
    _add_plot(one, "the scores on both data sets")
    one = _command(
        commands,
        "train",
        train_command,
        "a private linear model from a CSV file",
        "train data.csv --target y --epsilon 1",
    )
    add_training_options(one)
    _command(commands, "theorems", theorems_command, "the catalogue", "theorems --json")
    one = _command(
        commands, "errata", errata_command, "errors of the papers, with fresh numbers", "errata --effect unsound"
    )
    one.add_argument("--full", action="store_true", help="with the formulas, what the numbers are, and the tests")
    one.add_argument("--effect", choices=[effect.value for effect in Effect], help="only those with this effect")
    what = "every figure and table of the papers, made again"
    add_reproduction_options(_command(commands, "reproduce", reproduce_command, what, "reproduce bok2024 --quick"))
    return parser


def _command(commands: Any, name: str, function: Any, what: str, example: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=f"{what}.", epilog=f"example: lastiterate {example}")
    parser.set_defaults(command=function)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run, as .toml or .json")
    parser.add_argument("--delta", type=float, default=1e-5, help="the delta of the guarantee (default: 1e-5)")


def _add_releases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--releases", type=int, nargs="+", default=(), metavar="STEP", help="checkpoints released as well"
    )


def _add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--plot", metavar="FILE", help=f"draw {what}")
