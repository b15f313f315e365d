"""`lastiterate account`."""

from __future__ import annotations

import argparse

from lastiterate.accounting.account import account
from lastiterate.accounting.each import RecordReport, account_each
from lastiterate.accounting.report import Report
from lastiterate.algorithms.files import read_run
from lastiterate.cli.options import add_plot, add_releases, add_run
from lastiterate.cli.show import add, show


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--each", action="store_true", help="every record's own epsilon, by its batch")
    parser.add_argument("--certificate", metavar="FILE", help="write the proof, for `lastiterate verify`")
    add_releases(parser)
    add_plot(parser, "epsilon against steps")


def answer(options: argparse.Namespace) -> int:
    """The report comes first: what cannot be written afterwards does not lose it."""
    run = read_run(options.run)
    found: Report | RecordReport
    if options.each:
        found = account_each(run, options.delta, options.releases)
        content = {"delta": found.delta, "epsilons": found.batch_epsilons.tolist()}
    else:
        found = account(run, options.delta, options.releases)
        content = found.to_dict()
    show(options, content, "" if options.json else str(found))
    if options.certificate:
        found.save_certificate(options.certificate)
        checked_with = f"check it with: lastiterate verify {options.certificate}"
        add(options, f"\ncertificate: {options.certificate} ({checked_with})")
    if options.plot:
        found.plot(options.plot)
        add(options, f"plot: {options.plot}")
    return 0
