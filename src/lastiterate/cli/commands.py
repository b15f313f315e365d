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
    Command("account", "the least provable epsilon of a run", "account run.toml --delta 1e-5"),
    Command("calibrate", "the noise or the steps that meet a target", "calibrate run.toml --epsilon 1"),
    Command(
        "plan", "batches, epochs, steps and noise that meet a target", "plan --records 50000 --features 20 --epsilon 2"
    ),
    Command("compare", "every theorem side by side", "compare run.toml --plot out/compare.png"),
    Command("serve", "a planner in the browser, for this machine alone", "serve run.toml --no-browser"),
    Command("select", "the price of releasing the best of many trials", "select run.toml --trials poisson --mean 10"),
    Command("budget", "a ledger of releases that a team shares", "budget team.sqlite --spend run.toml --what 'March'"),
    Command("forget", "the further steps that make a model forget", "forget run.toml --epsilon 1 --removals 3"),
    Command("verify", "replay a certificate", "verify certificate.json --run run.toml"),
    Command("audit", "train many times, bound epsilon from below", "audit run.toml --runs 2000 --delta 1e-5"),
    Command("train", "a private linear model from a CSV file", "train data.csv --target y --epsilon 1"),
    Command("theorems", "the catalogue", "theorems --json"),
    Command("errata", "errors of the papers, with fresh numbers", "errata --effect unsound"),
    Command("reproduce", "reproduce the figures and tables of the papers", "reproduce bok2024 fig-1"),
)
