"""The command `lastiterate select`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.cli.options import add_certificate, add_delta
from lastiterate.cli.show import a_certificate, show, written
from lastiterate.cli.trials import add_trials, trials_in
from lastiterate.curves.selected import checked_trials
from lastiterate.curves.trials import Trials, trials_to_dict
from lastiterate.errors import worded
from lastiterate.runs.files import read_run
from lastiterate.selection.select import select


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="run", help="one trial, as .toml or .json; several files: settings drawn at random"
    )
    add_trials(parser, required=True)
    add_delta(parser)
    add_certificate(parser)


def answer(options: argparse.Namespace) -> int:
    trials = checked_trials(trials_in(options))
    reports = [account(read_run(path), options.delta) for path in options.runs]
    found = select(reports, trials=trials)
    epsilon = float(found.epsilon(options.delta))
    show(options, _content(options, trials, reports, epsilon), _text(options, trials, reports, epsilon))
    return written(options, a_certificate(options.certificate, found.save_certificate))


def _content(options: argparse.Namespace, trials: Trials, reports: list[Report], epsilon: float) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "delta": options.delta,
        "unit": reports[0].unit.to_dict(),
        "trials": {"law": options.trials, "mean": trials.mean, "shape": getattr(trials, "shape", None)},
        "each": [
            {"run": path, "epsilon": report.epsilon, "theorem": report.best.theorem.name}
            for path, report in zip(options.runs, reports, strict=True)
        ],
    }


def _text(options: argparse.Namespace, trials: Trials, reports: list[Report], epsilon: float) -> str:
    lines = [worded("selected", epsilon=epsilon, delta=options.delta, unit=reports[0].unit, **trials_to_dict(trials))]
    for path, report in zip(options.runs, reports, strict=True):
        lines += [worded("selected_trial", path=path, epsilon=report.epsilon, theorem=report.best.theorem.name)]
    return "\n".join(lines)
