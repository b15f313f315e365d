"""The command `lastiterate forget`."""

from __future__ import annotations

import argparse

from lastiterate.cli.options import add_certificate, add_releases, add_run
from lastiterate.cli.show import a_certificate, show, written
from lastiterate.forgetting.forget import forget
from lastiterate.runs.files import read_run


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="the target for the removed records")
    parser.add_argument(
        "--removals",
        type=int,
        nargs="+",
        default=(1,),
        metavar="COUNT",
        help="how many records are removed; several numbers are requests, one after the other (default: 1)",
    )
    parser.add_argument(
        "--most-steps", type=int, default=1_000_000, help="the most further steps for one request (default: 1000000)"
    )
    parser.add_argument("--release-each", action="store_true", help="the model after each request is released as well")
    parser.add_argument(
        "--adaptive", action="store_true", help="requests may depend on all earlier models; needs a bounded domain"
    )
    add_certificate(parser)
    add_releases(parser)


def answer(options: argparse.Namespace) -> int:
    found = forget(
        read_run(options.run),
        epsilon=options.epsilon,
        delta=options.delta,
        removals=options.removals,
        releases=options.releases,
        release_each=options.release_each,
        adaptive=options.adaptive,
        most_steps=options.most_steps,
    )
    show(options, found.to_dict(), str(found))
    return written(options, a_certificate(options.certificate, found.save_certificate))
