"""The command `lastiterate compare`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.cli.options import add_plot, add_releases, add_run
from lastiterate.cli.show import a_plot, show, written
from lastiterate.errors import worded
from lastiterate.report.text import refusals_by_kind
from lastiterate.runs.files import read_run
from lastiterate.theorems.catalogue import ALL


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_releases(parser)
    parser.add_argument("--all", action="store_true", help="list the reason for every theorem that does not apply")
    parser.add_argument("--papers", action="store_true", help="also the papers' theorems that account never needs")
    add_plot(parser, "epsilon of every theorem")


def answer(options: argparse.Namespace) -> int:
    theorems = ALL if options.papers else None
    report = account(read_run(options.run), options.delta, options.releases, theorems=theorems)
    lines = [*_applicable(report), "", *(_every_refusal(report) if options.all else _counted_refusals(report))]
    show(options, {name: report.to_dict()[name] for name in ("delta", "guarantees", "inapplicable")}, "\n".join(lines))
    return written(options, a_plot(options.plot, report.plot_comparison))


def _applicable(report: Report) -> Iterator[str]:
    """Yield the lines of the theorems that apply, least ε first, and of the lower bound."""
    yield f"epsilon at delta = {report.delta:g}, {report.unit}"
    yield from ("", f"{'epsilon':>12}  {'ratio to best':>13}  theorem")
    for guarantee, epsilon in zip(report.guarantees, report.epsilons, strict=True):
        ratio = f"{_times(epsilon, report.epsilon):.3g}x"
        yield f"{epsilon:12.6g}  {ratio:>13}  {guarantee.theorem.name}"
    lower = report.lower_bound
    if lower.epsilon > 0:
        yield f"{lower.epsilon:12.6g}  {'':>13}  " + worded("compared_lower_bound")


def _counted_refusals(report: Report) -> Iterator[str]:
    if not report.inapplicable:
        return
    near, covered = refusals_by_kind(report.inapplicable, report.run.process.update.plain)
    yield worded("compared_refusals", count=len(report.inapplicable), near=len(near), covered=covered)


def _every_refusal(report: Report) -> Iterator[str]:
    if report.inapplicable:
        yield f"{len(report.inapplicable)} theorems do not apply:"
    for one in report.inapplicable:
        yield f"  {one.theorem.name}: {one.because}."


def _times(epsilon: float, best: float) -> float:
    """Ratio of ε to the best one; 0/0 counts as 1, and anything else over 0 as infinite."""
    if epsilon == best:
        return 1.0
    return epsilon / best if best > 0 else math.inf
