"""A process that computes what the page asks for: questions are lines that come in, parts of answers are lines that go out.

It ends when nobody is left to listen, and gives up a question when it hears `stop`. `python -m lastiterate.web.worker`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from json import dumps, loads
from queue import SimpleQueue
from threading import Event, Thread
from typing import IO, Any

from lastiterate.certificate.replay import json_safe
from lastiterate.errors import LastIterateError, worded
from lastiterate.progress import heard
from lastiterate.web.answers import answered

END, READY, STOP = {"end": True}, {"ready": True}, b"stop\n"
_PATIENCE = 0.2  # seconds before progress is told
_BETWEEN = 0.1  # seconds between two reports of it
_FIRST = {  # so that the first question of a reader does not wait for what is loaded when it is needed
    "ask": "account",
    "delta": 1e-5,
    "run": {
        "loss": {"kind": "logistic", "feature_norm": 1.0, "l2": 0.1},
        "batches": {"kind": "cyclic", "records": 40, "batch_size": 10},
        "step_size": 0.5,
        "noise": {"kind": "on_mean_gradient", "std": 1.0},
        "steps": 8,
    },
}


class GivenUp(BaseException):
    """Raised when nobody waits for the answer any more; no handler of errors catches it."""


def main() -> None:
    """Answer questions from the standard input; ignore Ctrl-C and keep the library's prints apart."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    questions: SimpleQueue[bytes] = SimpleQueue()
    stopped = Event()
    Thread(target=_listen, args=(sys.stdin.buffer, questions, stopped), daemon=True).start()
    work(dumps(_FIRST), lambda _: None, stopped)
    _write(out, READY)
    while True:
        question = questions.get()
        stopped.clear()
        work(question, lambda part: _write(out, part), stopped)
        _write(out, END)


def _listen(lines: IO[bytes], questions: SimpleQueue[bytes], stopped: Event) -> None:
    """Receive questions and stop requests while an answer is computed; exit when the parent closes the pipe."""
    for line in lines:
        stopped.set() if line == STOP else questions.put(line)
    os._exit(0)


def work(question: str | bytes, say: Callable[[dict[str, Any]], None], stopped: Event) -> None:
    """Write every part of the answer, or one sentence on why there is none."""
    try:
        with heard(_Progress(say, stopped)):
            for part in answered(loads(question)):
                say(part)
                _check(stopped)
    except GivenUp:
        pass
    except LastIterateError as error:
        say({"error": str(error), "field": error.field})
    except MemoryError:
        say({"error": worded("memory_exhausted"), "field": "steps"})
    except Exception as error:
        print(f"lastiterate serve: {type(error).__name__}: {error}", file=sys.stderr)
        say({"error": worded("planner_failed"), "broken": True})


class _Progress:
    """Listener that reports progress now and then, and ends the computation if it is to stop."""

    def __init__(self, say: Callable[[dict[str, Any]], None], stopped: Event) -> None:
        self.say, self.stopped, self.last = say, stopped, time.monotonic() + _PATIENCE - _BETWEEN

    def __call__(self, what: str, done: int, total: int) -> None:
        _check(self.stopped)
        now = time.monotonic()
        if now - self.last >= _BETWEEN:
            self.last = now
            self.say({"progress": done / total if total else None, "what": what})


def _check(stopped: Event) -> None:
    if stopped.is_set():
        raise GivenUp


def _write(out: IO[str], part: dict[str, Any]) -> None:
    out.write(f"{dumps(json_safe(part))}\n")


if __name__ == "__main__":
    main()
