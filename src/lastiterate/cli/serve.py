"""The command `lastiterate serve`."""

from __future__ import annotations

import argparse
import sys

from lastiterate.cli.interrupt import ending_at_once
from lastiterate.cli.options import add_delta
from lastiterate.cli.show import show
from lastiterate.errors import Unavailable, worded
from lastiterate.runs.files import read_run


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="run to start from (.toml or .json)")
    add_delta(parser)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes any free port (default: 0)")
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")


def answer(options: argparse.Namespace) -> int:
    """Serve the planner; starlette and uvicorn are loaded only here."""
    try:
        with ending_at_once():
            from lastiterate.web.serve import planner
    except ImportError as error:
        raise Unavailable("command_not_loaded", reason=str(error)) from error
    run = read_run(options.run) if options.run else None
    page = planner(run, options.delta, options.port)
    show(options, {"address": page.address}, worded("planner_address", address=page.address))
    sys.stdout.flush()
    page.serve(browser=not options.no_browser)
    return 0
