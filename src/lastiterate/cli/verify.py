"""`lastiterate verify`."""

from __future__ import annotations

import argparse
import json

from lastiterate.accounting.certificate import verify
from lastiterate.algorithms.files import read_run, read_text
from lastiterate.cli.show import show
from lastiterate.errors import InvalidInput

_REJECTED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("certificate", help="a file that `account --certificate` wrote")
    parser.add_argument("--run", metavar="FILE", help="it must be about this run")


def answer(options: argparse.Namespace) -> int:
    try:
        content = json.loads(read_text(options.certificate))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{options.certificate} is not JSON: {error}.") from error
    verdict = verify(content, read_run(options.run) if options.run else None)
    show(options, verdict.to_dict(), str(verdict))
    return 0 if verdict.accepted else _REJECTED
