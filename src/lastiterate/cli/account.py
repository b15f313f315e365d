"""`lastiterate account`."""

from __future__ import annotations

import argparse

from lastiterate.accounting.account import account
from lastiterate.accounting.each import account_each
from lastiterate.algorithms.files import read_run
from lastiterate.cli.options import add_plot, add_releases, add_run
from lastiterate.cli.show import show
from lastiterate.errors import InvalidInput


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--each", action="store_true", help="every record's own epsilon, by its batch")
    parser.add_argument("--certificate", metavar="FILE", help="write the proof, for `lastiterate verify`")
    add_releases(parser)
    add_plot(parser, "epsilon against steps")


def answer(options: argparse.Namespace) -> int:
    run = read_run(options.run)
    if options.each:
        if options.certificate:
            raise InvalidInput("--each and --certificate do not go together. Leave one of them out.")
        records = account_each(run, options.delta, options.releases)
        if options.plot:
            records.plot(options.plot)
        show(options, {"delta": records.delta, "epsilons": records.batch_epsilons.tolist()}, str(records))
        return 0
    report = account(run, options.delta, options.releases)
    text = "" if options.json else str(report)
    if options.certificate:
        if report.certificate is None:
            name = report.best.theorem.name
            raise InvalidInput(
                f"{name}, the best guarantee here, is a formula, with nothing to replay. Drop --certificate."
            )
        report.save_certificate(options.certificate)
        text += f"\n\ncertificate: {options.certificate} (check it with: lastiterate verify {options.certificate})"
    if options.plot:
        report.plot(options.plot)
        text += f"\nplot: {options.plot}"
    show(options, report.to_dict(), text)
    return 0
