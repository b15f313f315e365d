"""The commands, each in a module of its name: `add_options(parser)` says what may be typed, `answer(options)` does it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True)
class Command:
    """A command: `help` says what it does, and `usage` is an example."""

    name: str
    help: str
    usage: str

    def module(self) -> ModuleType:
        """Import the module of the command, only when it was typed, since most load numpy and scipy."""
        return import_module(f"lastiterate.cli.{self.name}")


COMMANDS = (
    Command(
        "account", help="Compute the smallest provable epsilon of a training run", usage="account run.toml --delta 1e-5"
    ),
    Command(
        "calibrate",
        help="Find the noise, steps, batch size or step size that meets a target epsilon",
        usage="calibrate run.toml --epsilon 1",
    ),
    Command(
        "plan",
        help="Suggest batches, epochs, step size and noise for a target epsilon",
        usage="plan --records 50000 --features 20 --epsilon 2",
    ),
    Command(
        "compare", help="List the epsilon of every theorem for one run", usage="compare run.toml --plot out/compare.png"
    ),
    Command("serve", help="Open the planner in a browser, on this machine only", usage="serve run.toml --no-browser"),
    Command(
        "select",
        help="Account for releasing the best of several trials",
        usage="select run.toml --trials poisson --mean 10",
    ),
    Command(
        "budget",
        help="Track one privacy budget over all releases of a team",
        usage="budget team.sqlite --spend run.toml --what 'March'",
    ),
    Command(
        "forget",
        help="Compute how many further steps make a model forget removed records",
        usage="forget run.toml --epsilon 1 --removals 3",
    ),
    Command("verify", help="Check a certificate or a report", usage="verify certificate.json --run run.toml"),
    Command(
        "audit",
        help="Measure a lower bound on epsilon by training many times",
        usage="audit run.toml --runs 2000 --delta 1e-5",
    ),
    Command(
        "train",
        help="Train a private linear model on a CSV or Parquet file",
        usage="train data.csv --target y --epsilon 1",
    ),
    Command("theorems", help="List all theorems and what each one needs", usage="theorems --json"),
    Command("errata", help="List errors in the papers, with recomputed numbers", usage="errata --effect unsound"),
    Command("reproduce", help="Reproduce the figures and tables of the papers", usage="reproduce bok2024 fig-1"),
    Command("completion", help="Print a script that completes commands and options on Tab", usage="completion bash"),
)
