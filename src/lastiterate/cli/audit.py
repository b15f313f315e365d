"""`lastiterate audit`."""

from __future__ import annotations

import argparse

from lastiterate.accounting.account import account
from lastiterate.algorithms.files import read_run
from lastiterate.auditing.audit import Audit, audit
from lastiterate.auditing.simulate import OPPOSITE, PUSHES, simulation
from lastiterate.auditing.trainer import Trainer, read_trainer
from lastiterate.cli.options import ADJACENCIES, add_delta, add_plot
from lastiterate.cli.show import show
from lastiterate.cli.written import a_plot, written
from lastiterate.errors import InvalidInput, LastIterateError

_CHOSEN = ("delta", "claimed", "runs", "confidence", "workers", "seed")
_MADE = ("replace-one", "add-or-remove-one")
_REFUTED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", help="a run (.toml, .json), or a .py file that defines train(data, seed), data and neighbour"
    )
    add_delta(parser)
    parser.add_argument(
        "--claimed", type=float, metavar="EPSILON", help="a claim to refute; exit code 1 if it is refuted"
    )
    parser.add_argument(
        "--make-neighbour", choices=_MADE, help="make the neighbour from the data of a .py file, in this sense"
    )
    parser.add_argument("--runs", type=int, default=1000, help="on each of the two data sets (default: 1000)")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the bound (default: 0.95)")
    parser.add_argument("--workers", type=int, default=1, help="processes to spread the runs over (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="from which the seeds of all runs are made (default: 0)")
    add_plot(parser, "the scores on both data sets")


def answer(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in _CHOSEN}
    if options.what.endswith(".py"):
        made = options.make_neighbour
        trainer = read_trainer(options.what, ADJACENCIES[made] if made else None)
        found, known = _audited(trainer, options), {}
    elif options.make_neighbour:
        raise InvalidInput("--make-neighbour is for the data of a .py file; the two data sets of a run are simulated.")
    else:
        run = read_run(options.what)
        found = audit(simulation(run).train, PUSHES, OPPOSITE, **chosen)
        report = account(run, options.delta)
        known = {"lower_bound": report.sandwich.lower.epsilon, "proved": report.epsilon}
    text = str(found)
    if known:
        text += (
            f"\nan exact instance costs {known['lower_bound']:.4g}, and no more than {known['proved']:.4g} is proved"
        )
    show(options, {**found.to_dict(), **known}, text)
    code = written(options, a_plot(options.plot, found.plot))
    return _REFUTED if found.refuted else code


def _audited(trainer: Trainer, options: argparse.Namespace) -> Audit:
    """Whatever the trainer raises is told, with the name of its file."""
    chosen = {name: getattr(options, name) for name in _CHOSEN}
    try:
        return audit(trainer.train, trainer.data, trainer.neighbour, **chosen)
    except LastIterateError:
        raise
    except Exception as error:
        raise InvalidInput(f"{options.what} cannot be trained: {type(error).__name__}: {error}.") from error
