"""From what was typed to an exit code: 0, 1 if a certificate is rejected, 2 with one sentence, 130 if interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

_BAD_INPUT, _INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all is well, 1 if a certificate is rejected, 2 with one sentence on bad input."""
    try:
        return _finished(_answered(arguments))
    except SystemExit as end:  # of --help, --version and options that are not understood
        raise SystemExit(_finished(int(end.code or 0))) from None
    except KeyboardInterrupt:
        return _said("interrupted.", _INTERRUPTED)


def _answered(arguments: Sequence[str] | None) -> int:
    """The commands are imported here, so that Ctrl-C meanwhile is answered as at any other time."""
    from lastiterate.cli.options import parser
    from lastiterate.errors import LastIterateError
    from lastiterate.progress import progress_bar

    try:
        options = parser().parse_args(arguments)
        with progress_bar():
            return int(options.command(options))
    except LastIterateError as error:
        return _said(str(error), _BAD_INPUT)
    except MemoryError:
        return _said("there is not enough memory for this. Ask for fewer steps or records.", _BAD_INPUT)
    except BrokenPipeError:
        return _dropped(0)
    except OSError as error:
        return _dropped(_said(f"the answer cannot be written: {error.strerror or error}.", _BAD_INPUT))


def _finished(code: int) -> int:
    """What is still in a buffer may not fit on the device."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        return _dropped(code)
    except OSError as error:
        return _dropped(_said(f"the answer cannot be written: {error.strerror or error}.", _BAD_INPUT))
    return code


def _said(sentence: str, code: int) -> int:
    with suppress(OSError, AttributeError):  # somebody may have closed the standard error stream as well
        sys.stderr.write(f"lastiterate: {sentence}\n")
        sys.stderr.flush()
    return code


def _dropped(code: int) -> int:
    """What could not be written is forgotten: Python would try once more at its end, and complain."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
