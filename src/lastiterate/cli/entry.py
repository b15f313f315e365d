"""Run the command that was typed; exit codes: 0, 1 for a rejected certificate or refuted claim, 2 for bad input, 130.

Nothing that takes long is imported before `main` is called, so that Ctrl-C is answered from the first moment on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lastiterate.cli.interrupt import ending_at_once
from lastiterate.cli.streams import BAD_INPUT, discard, fail, finish, interrupted, unwritten

TYPE_CHECKING = False  # as `typing` has it, which takes long to import
if TYPE_CHECKING:
    from argparse import Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0, 1 if a certificate is rejected or a claim refuted, 2 with one sentence on bad input."""
    try:
        return finish(_written(sys.argv[1:] if arguments is None else arguments))
    except SystemExit as end:  # of --help, --version and options that are not understood
        raise SystemExit(finish(int(end.code or 0))) from None
    except KeyboardInterrupt:
        return interrupted()


def _written(arguments: Sequence[str]) -> int:
    try:
        return _answered(_parsed(arguments))
    except MemoryError:
        from lastiterate.errors import worded

        return fail(worded("not_enough_memory"), BAD_INPUT)
    except BrokenPipeError:
        return discard(0)
    except OSError as error:
        return unwritten(error)


def _parsed(arguments: Sequence[str]) -> Namespace:
    """Parse the arguments, which loads the module of the command."""
    with ending_at_once():
        from lastiterate.cli.parser import parsed

        return parsed(arguments)


def _answered(options: Namespace) -> int:
    from lastiterate.errors import LastIterateError
    from lastiterate.progress import progress_bar

    try:
        with progress_bar():
            return int(options.answer(options))
    except LastIterateError as error:
        return fail(str(error), BAD_INPUT)
