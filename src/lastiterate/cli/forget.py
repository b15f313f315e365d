"""`lastiterate forget`."""

from __future__ import annotations

import argparse

from lastiterate.accounting.forget import forget
from lastiterate.algorithms.files import read_run
from lastiterate.cli.options import add_certificate, add_releases, add_run
from lastiterate.cli.show import show
from lastiterate.cli.written import a_certificate, written


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="the target")
    parser.add_argument(
        "--removals",
        type=int,
        nargs="+",
        default=(1,),
        metavar="COUNT",
        help="records that are removed at once; several numbers are requests, one after the other (default: 1)",
    )
    parser.add_argument("--most-steps", type=int, default=1_000_000, help="never more than these, for one request")
    add_certificate(parser)
    add_releases(parser)


def answer(options: argparse.Namespace) -> int:
    found = forget(
        read_run(options.run),
        epsilon=options.epsilon,
        delta=options.delta,
        removals=options.removals,
        releases=options.releases,
        most_steps=options.most_steps,
    )
    show(options, found.to_dict(), str(found))
    return written(options, a_certificate(options.certificate, found.save_certificate))
