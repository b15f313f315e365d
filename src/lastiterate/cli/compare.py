"""`lastiterate compare`."""

from __future__ import annotations

import argparse
import math

from lastiterate.accounting.account import account
from lastiterate.algorithms.files import read_run
from lastiterate.cli.options import add_plot, add_releases, add_run
from lastiterate.cli.show import show
from lastiterate.cli.written import a_plot, written


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_releases(parser)
    add_plot(parser, "epsilon of every theorem")


def answer(options: argparse.Namespace) -> int:
    report = account(read_run(options.run), options.delta, options.releases)
    lines = [f"epsilon at delta = {report.delta:g}, {report.protected}", ""]
    for guarantee, epsilon in zip(report.guarantees, report.epsilons, strict=True):
        lines.append(f"{epsilon:12.6g}  {_times(epsilon, report.epsilon):8.3g}x  {guarantee.theorem.name}")
    lines += [f"{'-':>12}  {'':>9}  {one.theorem.name}: {'; '.join(one.reasons)}" for one in report.inapplicable]
    show(options, {name: report.to_dict()[name] for name in ("delta", "guarantees", "inapplicable")}, "\n".join(lines))
    return written(options, a_plot(options.plot, report.plot_comparison))


def _times(epsilon: float, best: float) -> float:
    """How many times the best; 0 is once 0, and anything else is infinitely more."""
    if epsilon == best:
        return 1.0
    return epsilon / best if best > 0 else math.inf
