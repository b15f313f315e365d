"""Progress of long computations."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("progress listener", default=None)
_PATIENCE = 2.0  # seconds before a bar appears
_WIDTH = 40
_REDRAWN = 0.2  # seconds between two drawings of a bar


def tracked(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield the items and tell a listener how many are done; an inner loop repeats what the outer one said."""
    listener = _listener.get()
    if listener is None or len(items) < 2:
        yield from items
        return
    done = 0

    def said_again(*_: object) -> None:
        listener(what, done, len(items))

    token = _listener.set(said_again)
    try:
        for done, item in enumerate(items):  # noqa: B007
            said_again()
            yield item
        listener(what, len(items), len(items))
    finally:
        _listener.reset(token)


@contextmanager
def as_one(what: str) -> Iterator[None]:
    """Report whatever is tracked inside as one search of unknown length, 0 of 0."""
    listener = _listener.get()
    if listener is None:
        yield
        return

    def said(*_: object) -> None:
        listener(what, 0, 0)

    token = _listener.set(said)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def progress_bar() -> Iterator[None]:
    """Draw a bar on the standard error stream for whatever takes longer than two seconds, if somebody can see it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    bar = _Bar()
    try:
        with heard(bar):
            yield
    finally:
        bar.clear()


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Report whatever is tracked meanwhile to this listener; an exception of it ends the work."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class _Bar:
    def __init__(self) -> None:
        self.start = time.monotonic()
        self.drawn = False
        self.last = self.start

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.start < _PATIENCE or (self.drawn and now - self.last < _REDRAWN):
            return
        self.last = now
        sys.stderr.write(f"\r{what} {_drawn(done, total)}{now - self.start:.0f} s ")
        sys.stderr.flush()
        self.drawn = True

    def clear(self) -> None:
        if self.drawn:
            sys.stderr.write("\r" + " " * 120 + "\r")


def _drawn(done: int, total: int) -> str:
    """Return the progress bar, or nothing if the total is not known."""
    if not total:
        return ""
    filled = _WIDTH * done // total
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {100 * done // total:3d}%, "
