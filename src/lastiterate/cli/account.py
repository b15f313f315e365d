"""The command `lastiterate account`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from lastiterate.accounting.account import RecordReport, account, account_each
from lastiterate.accounting.report import Report
from lastiterate.cli.options import (
    add_certificate,
    add_data_key,
    add_plot,
    add_releases,
    add_report,
    add_run,
    stated_in,
)
from lastiterate.cli.show import a_certificate, a_plot, a_report, show, written
from lastiterate.errors import InvalidInput
from lastiterate.runs.files import read_run


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--each", action="store_true", help="print epsilon for the records of each batch")
    add_certificate(parser)
    add_report(parser)
    parser.add_argument("--model", metavar="FILE", help="released model; its digest is written into the --report")
    parser.add_argument(
        "--data", metavar="FILE", help="training data; their digest, keyed by --data-key, is written into the --report"
    )
    add_data_key(parser)
    add_releases(parser)
    groups = parser.add_mutually_exclusive_group()
    groups.add_argument(
        "--group", type=int, metavar="K", help="account for a user with up to K records, anywhere in the data"
    )
    groups.add_argument(
        "--group-records",
        type=int,
        nargs="+",
        default=(),
        metavar="I",
        help="account for the user who owns the records at these positions, counted from 0",
    )
    add_plot(parser, "epsilon against steps")


def answer(options: argparse.Namespace) -> int:
    """Print the account, before anything that may fail to be written beside it."""
    run = read_run(options.run)
    found: Report | RecordReport
    if options.each and (options.group is not None or options.group_records):
        raise InvalidInput("each_of_group", field="each")
    if options.group is not None:
        run = replace(run, user_records=options.group)
    if options.each:
        found = account_each(run, options.delta, options.releases)
        content = {"delta": found.delta, "epsilons": found.batch_epsilons.tolist()}
    else:
        found = account(run, options.delta, options.releases, options.group_records)
        content = found.to_dict()
    show(options, content, "" if options.json else str(found))
    return written(
        options,
        a_certificate(options.certificate, found.save_certificate),
        a_report(options.report, lambda path: found.save(path, **_about(options))),
        a_plot(options.plot, found.plot),
    )


def _about(options: argparse.Namespace) -> dict[str, Any]:
    """Files and statements about its surroundings that go into the report."""
    return {name: getattr(options, name) for name in ("model", "data", "data_key")} | {"stated": stated_in(options)}
