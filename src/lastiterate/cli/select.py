"""`lastiterate select`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.algorithms.files import read_run
from lastiterate.cli.options import add_delta
from lastiterate.cli.show import show
from lastiterate.errors import InvalidInput
from lastiterate.privacy.select import select
from lastiterate.privacy.trials import Geometric, Logarithmic, NegativeBinomial, PoissonTrials, Trials

_LAWS = {
    "geometric": Geometric,
    "poisson": PoissonTrials,
    "logarithmic": Logarithmic,
    "negative-binomial": NegativeBinomial,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="run", help="one trial, as .toml or .json; several: drawn at random")
    parser.add_argument(
        "--trials", choices=list(_LAWS), default="geometric", help="the law of their number (default: geometric)"
    )
    parser.add_argument("--mean", type=float, required=True, help="how many there are on average")
    parser.add_argument("--shape", type=float, help="of a negative binomial number: 1 is geometric, 0 logarithmic")
    add_delta(parser)


def answer(options: argparse.Namespace) -> int:
    trials = _trials(options)
    reports = [account(read_run(path), options.delta) for path in options.runs]
    epsilon = float(select(reports, trials=trials).epsilon(options.delta))
    show(options, _content(options, trials, reports, epsilon), _text(options, reports, epsilon))
    return 0


def _trials(options: argparse.Namespace) -> Trials:
    given = {"mean": options.mean, **({} if options.shape is None else {"shape": options.shape})}
    if (options.trials == "negative-binomial") != ("shape" in given):
        raise InvalidInput(
            "shape is a setting of a negative binomial number of trials, which needs it. Give --trials negative-binomial "
            "and --shape together.",
            field="shape",
        )
    trials: Trials = _LAWS[options.trials](**given)
    return trials


def _content(options: argparse.Namespace, trials: Trials, reports: list[Report], epsilon: float) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "delta": options.delta,
        "adjacency": reports[0].run.adjacency.said,
        "trials": {"law": options.trials, "mean": trials.mean, "shape": getattr(trials, "shape", None)},
        "each": [
            {"run": path, "epsilon": report.epsilon, "theorem": report.best.theorem.name}
            for path, report in zip(options.runs, reports, strict=True)
        ],
    }


def _text(options: argparse.Namespace, reports: list[Report], epsilon: float) -> str:
    lines = [
        f"epsilon = {epsilon:.6g} at delta = {options.delta:g} ({reports[0].protected}) for the best of a "
        f"{options.trials} number of trials, {options.mean:g} on average; the number and the other trials are not released",
        *(
            f"one trial of {path}: epsilon = {report.epsilon:.6g}, by {report.best.theorem.name}"
            for path, report in zip(options.runs, reports, strict=True)
        ),
    ]
    return "\n".join(lines)
