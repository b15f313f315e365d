"""Handling of Ctrl-C while modules are loaded."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lastiterate.cli.streams import interrupted


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process at once on Ctrl-C, with one sentence and without an exception.

    An exception in the middle of an import of numpy or scipy is printed, or turned into another one, by their own code; and
    nothing has to be put in order yet while modules are loaded. Whoever handles Ctrl-C in another way goes on doing so.
    """
    try:
        ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        before = signal.signal(signal.SIGINT, _leave) if ours else None
    except ValueError:  # not the main thread, which alone hears of it
        ours = False
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(interrupted())
