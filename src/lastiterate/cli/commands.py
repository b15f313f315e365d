"""The commands, each in a module of its name: `add_options(parser)` says what may be typed, `answer(options)` does it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True)
class Command:
    """`what` it does, and an `example` of it, for the help."""

    name: str
    what: str
    example: str

    def module(self) -> ModuleType:
        """Loaded when the command was typed, and not before: most commands load numpy and scipy."""
        return import_module(f"lastiterate.cli.{self.name}")


COMMANDS = (
    Command("account", "Compute the smallest provable epsilon of a training run", "account run.toml --delta 1e-5"),
    Command(
        "calibrate",
        "Find the noise, steps, batch size or step size that meets a target epsilon",
        "calibrate run.toml --epsilon 1",
    ),
    Command(
        "plan",
        "Suggest batches, epochs, step size and noise for a target epsilon",
        "plan --records 50000 --features 20 --epsilon 2",
    ),
    Command("compare", "List the epsilon of every theorem for one run", "compare run.toml --plot out/compare.png"),
    Command("serve", "Open the planner in a browser, on this machine only", "serve run.toml --no-browser"),
    Command("select", "Account for releasing the best of several trials", "select run.toml --trials poisson --mean 10"),
    Command(
        "budget",
        "Track one privacy budget over all releases of a team",
        "budget team.sqlite --spend run.toml --what 'March'",
    ),
    Command(
        "forget",
        "Compute how many further steps make a model forget removed records",
        "forget run.toml --epsilon 1 --removals 3",
    ),
    Command("verify", "Check a certificate or a report", "verify certificate.json --run run.toml"),
    Command(
        "audit", "Measure a lower bound on epsilon by training many times", "audit run.toml --runs 2000 --delta 1e-5"
    ),
    Command("train", "Train a private linear model on a CSV or Parquet file", "train data.csv --target y --epsilon 1"),
    Command("theorems", "List all theorems and what each one needs", "theorems --json"),
    Command("errata", "List errors in the papers, with recomputed numbers", "errata --effect unsound"),
    Command("reproduce", "Reproduce the figures and tables of the papers", "reproduce bok2024 fig-1"),
    Command("completion", "Print a script that completes commands and options on Tab", "completion bash"),
)
