"""`lastiterate verify` and `audit`."""

from __future__ import annotations

import argparse
import json

from lastiterate.accounting.account import account
from lastiterate.accounting.certificate import verify
from lastiterate.algorithms.files import read_run, read_text
from lastiterate.auditing.audit import Audit, audit
from lastiterate.auditing.simulate import OPPOSITE, PUSHES, simulation
from lastiterate.auditing.trainer import Trainer, read_trainer
from lastiterate.cli.show import show
from lastiterate.errors import InvalidInput, LastIterateError

_REJECTED = 1
_CHOSEN = ("delta", "runs", "confidence", "workers", "seed")


def verify_command(options: argparse.Namespace) -> int:
    try:
        content = json.loads(read_text(options.certificate))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{options.certificate} is not JSON: {error}.") from error
    verdict = verify(content, read_run(options.run) if options.run else None)
    show(options, verdict.to_dict(), str(verdict))
    return 0 if verdict.accepted else _REJECTED


def _audited(trainer: Trainer, options: argparse.Namespace) -> Audit:
    """Whatever the trainer raises is told, with the name of its file."""
    chosen = {name: getattr(options, name) for name in _CHOSEN}
    try:
        return audit(trainer.train, trainer.data, trainer.neighbour, **chosen)
    except LastIterateError:
        raise
    except Exception as error:
        raise InvalidInput(f"{options.what} cannot be trained: {type(error).__name__}: {error}.") from error


def audit_command(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in _CHOSEN}
    if options.what.endswith(".py"):
        trainer = read_trainer(options.what)
        found, known = _audited(trainer, options), {}
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
    if options.plot:
        found.plot(options.plot)
        text += f"\nplot: {options.plot}"
    show(options, {**found.to_dict(), **known}, text)
    return 0
