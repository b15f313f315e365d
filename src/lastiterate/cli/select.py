"""`lastiterate select`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.accounting.select import select
from lastiterate.algorithms.files import read_run
from lastiterate.cli.options import add_certificate, add_delta
from lastiterate.cli.show import show
from lastiterate.cli.written import a_certificate, written
from lastiterate.errors import InvalidInput
from lastiterate.privacy.trials import LAWS, Trials, trials_said


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="run", help="one trial, as .toml or .json; several files: settings drawn at random"
    )
    parser.add_argument(
        "--trials",
        choices=list(LAWS),
        default="geometric",
        help="the distribution of the number of trials (default: geometric)",
    )
    parser.add_argument("--mean", type=float, required=True, help="the mean number of trials")
    parser.add_argument(
        "--shape", type=float, help="with --trials negative-binomial, its shape: 1 is geometric, 0 logarithmic"
    )
    add_delta(parser)
    add_certificate(parser)


def answer(options: argparse.Namespace) -> int:
    trials = _trials(options)
    reports = [account(read_run(path), options.delta) for path in options.runs]
    found = select(reports, trials=trials)
    epsilon = float(found.epsilon(options.delta))
    show(options, _content(options, trials, reports, epsilon), _text(options, trials, reports, epsilon))
    return written(options, a_certificate(options.certificate, found.save_certificate))


def _trials(options: argparse.Namespace) -> Trials:
    given = {"mean": options.mean, **({} if options.shape is None else {"shape": options.shape})}
    if (options.trials == "negative-binomial") != ("shape" in given):
        raise InvalidInput(
            "shape must be given with --trials negative-binomial, and only with it. Give both --trials negative-binomial "
            "and --shape, or neither.",
            field="shape",
        )
    return LAWS[options.trials](**given)


def _content(options: argparse.Namespace, trials: Trials, reports: list[Report], epsilon: float) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "delta": options.delta,
        "adjacency": reports[0].protected,
        "trials": {"law": options.trials, "mean": trials.mean, "shape": getattr(trials, "shape", None)},
        "each": [
            {"run": path, "epsilon": report.epsilon, "theorem": report.best.theorem.name}
            for path, report in zip(options.runs, reports, strict=True)
        ],
    }


def _text(options: argparse.Namespace, trials: Trials, reports: list[Report], epsilon: float) -> str:
    lines = [
        f"epsilon = {epsilon:.6g} at delta = {options.delta:g} ({reports[0].protected}) for releasing only the best trial",
        f"number of trials: random and not released, drawn from a {trials_said(trials)}",
        *(
            f"one trial of {path}: epsilon = {report.epsilon:.6g}, by {report.best.theorem.name}"
            for path, report in zip(options.runs, reports, strict=True)
        ),
    ]
    return "\n".join(lines)
