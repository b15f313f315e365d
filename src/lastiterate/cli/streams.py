"""Sentences on the standard error stream, and streams that are closed, full, or gone."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

BAD_INPUT, INTERRUPTED = 2, 130


def fail(sentence: str, code: int) -> int:
    """Write a sentence to the standard error stream and return the exit code."""
    with suppress(OSError, AttributeError):  # somebody may have closed the standard error stream as well
        sys.stderr.write(f"lastiterate: {sentence}\n")
        sys.stderr.flush()
    return code


def interrupted() -> int:
    return fail("interrupted.", INTERRUPTED)


def unwritten(error: OSError) -> int:
    return discard(fail(f"the output cannot be written: {error.strerror or error}.", BAD_INPUT))


def finish(code: int) -> int:
    """Flush the standard output and return the exit code; the device may be full, or the pipe closed."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        return discard(code)
    except OSError as error:
        return unwritten(error)
    return code


def discard(code: int) -> int:
    """Discard what could not be written, so that Python does not try again at exit, and return `code`."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
