"""The command `lastiterate audit`."""

from __future__ import annotations

import argparse

from lastiterate.accounting.account import account
from lastiterate.auditing.audit import Audit, Trainer, audit, read_trainer
from lastiterate.auditing.quadratic import OPPOSITE, PUSHES, simulation
from lastiterate.cli.options import ADJACENCIES, add_delta, add_plot
from lastiterate.cli.show import a_plot, show, written
from lastiterate.errors import InvalidInput, LastIterateError, worded
from lastiterate.runs.files import read_run

_CHOSEN = ("delta", "claimed", "runs", "confidence", "workers", "seed")
_MADE = ("replace-one", "add-or-remove-one")
_REFUTED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", help="a run (.toml or .json), or a .py file that defines train(data, seed), data and neighbour"
    )
    add_delta(parser)
    parser.add_argument(
        "--claimed",
        type=float,
        metavar="EPSILON",
        help="test this claimed epsilon; exit code 1 if the audit refutes it",
    )
    parser.add_argument(
        "--make-neighbour", choices=_MADE, help="derive the neighbouring data set from the data of a .py file"
    )
    parser.add_argument("--runs", type=int, default=1000, help="trainings on each of the two data sets (default: 1000)")
    parser.add_argument("--confidence", type=float, default=0.95, help="confidence of the lower bound (default: 0.95)")
    parser.add_argument("--workers", type=int, default=1, help="number of parallel processes (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed from which all trainings are seeded (default: 0)")
    add_plot(parser, "the scores on both data sets")


def answer(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in _CHOSEN}
    if options.what.endswith(".py"):
        made = options.make_neighbour
        trainer = read_trainer(options.what, ADJACENCIES[made] if made else None)
        found, known = _audited(trainer, options), {}
    elif options.make_neighbour:
        raise InvalidInput("neighbour_of_simulation", field="make_neighbour")
    else:
        run = read_run(options.what)
        found = audit(simulation(run).train, PUSHES, OPPOSITE, **chosen)
        report = account(run, options.delta)
        known = {"lower_bound": report.lower_bound.epsilon, "proved": report.epsilon}
    text = str(found)
    if known:
        text += "\n" + worded("audit_in_comparison", **known)
    show(options, {**found.to_dict(), **known}, text)
    code = written(options, a_plot(options.plot, found.plot))
    return _REFUTED if found.refuted else code


def _audited(trainer: Trainer, options: argparse.Namespace) -> Audit:
    """Run the audit; any exception of the trainer becomes one message that names its file."""
    chosen = {name: getattr(options, name) for name in _CHOSEN}
    try:
        return audit(trainer.train, trainer.data, trainer.neighbour, **chosen)
    except LastIterateError:
        raise
    except Exception as error:
        kind, reason = type(error).__name__, str(error)
        raise InvalidInput("trainer_file_failed", path=options.what, kind=kind, reason=reason) from error
