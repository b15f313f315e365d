"""The command `lastiterate budget`."""

from __future__ import annotations

import argparse

from lastiterate.budget.budget import Budget
from lastiterate.budget.entries import adjacency_named
from lastiterate.cli.options import add_certificate, add_releases, add_user_records
from lastiterate.cli.show import a_certificate, show, written
from lastiterate.errors import InvalidInput, worded
from lastiterate.runs.files import read_run

_TERMS = ("epsilon", "delta", "adjacency", "dataset", "reserve", "user_records")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="SQLite file that records all releases")
    parser.add_argument("--create", action="store_true", help="create the file, with --epsilon and --delta")
    parser.add_argument("--epsilon", type=float, help="total epsilon allowed for all releases")
    parser.add_argument("--delta", type=float, help="delta of the whole budget")
    parser.add_argument("--adjacency", help="replace-one (default), zero-out or add-or-remove-one")
    parser.add_argument("--dataset", metavar="NAME", help="name of the data set that the budget protects")
    parser.add_argument(
        "--reserve",
        type=float,
        help="share of delta kept for releases whose guarantee has a delta > 0 at every epsilon (default: 0.1)",
    )
    add_user_records(parser)
    parser.add_argument(
        "--decided-beforehand", action="store_true", help="declare that no release is chosen by looking at earlier ones"
    )
    parser.add_argument("--spend", metavar="RUN", help="record this run (.toml or .json) if it fits into the budget")
    parser.add_argument("--would", metavar="RUN", help="print the total epsilon with this run, without recording it")
    parser.add_argument(
        "--what", metavar="TEXT", default="", help="one line that describes the release; required with --spend"
    )
    parser.add_argument("--who", metavar="NAME", default="", help="with --spend, name of the person who releases")
    add_certificate(parser, "the proof of the total epsilon")
    add_releases(parser)


def answer(options: argparse.Namespace) -> int:
    """Answer about a budget; a release that exceeds it is bad input, with one sentence and exit code 2."""
    budget = _created(options) if options.create else _opened(options)
    more: dict[str, float] = {}
    said: list[str] = []
    if options.spend:
        if not options.what:
            raise InvalidInput("spend_without_what", field="what")
        entry = budget.spend(read_run(options.spend), options.what, who=options.who, releases=options.releases)
        more, said = {"recorded": entry.number}, [worded("recorded_as", number=entry.number, what=entry.what)]
    elif options.would:
        spent = budget.would(read_run(options.would), releases=options.releases)
        more, said = {"would": spent}, [worded("would_spend", run=options.would, epsilon=spent, budget=budget.epsilon)]
    show(options, {**budget.to_dict(), **more}, "" if options.json else "\n\n".join([*said, str(budget)]))
    return written(options, a_certificate(options.certificate, budget.save_certificate))


def _opened(options: argparse.Namespace) -> Budget:
    for name in _TERMS:
        if getattr(options, name) is not None:
            raise InvalidInput("option_fixed_at_creation", field=name)
    return Budget.open(options.file)


def _created(options: argparse.Namespace) -> Budget:
    given = {name: value for name in _TERMS if (value := getattr(options, name)) is not None}
    for name in ("epsilon", "delta"):
        if name not in given:
            raise InvalidInput("creation_incomplete", field=name)
    if "adjacency" in given:
        given["adjacency"] = adjacency_named(given["adjacency"])
    return Budget(**given, file=options.file, adaptive=not options.decided_beforehand)
