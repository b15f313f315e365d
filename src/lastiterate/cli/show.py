"""Answers on the standard output, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lastiterate.cli.streams import BAD_INPUT, fail


def show(options: argparse.Namespace, content: dict[str, Any], text: str) -> None:
    print(printable(_as_json(content) if options.json else text))


def _as_json(content: dict[str, Any]) -> str:
    """Return an answer as JSON; what this needs is loaded only here."""
    from lastiterate.certificate.replay import json_safe

    return json.dumps(json_safe(content), indent=2)


def add(options: argparse.Namespace, text: str) -> None:
    """Print a line after the answer, unless that is JSON, which stays one document."""
    if not options.json:
        print(printable(text))


def printable(text: str) -> str:
    """Letters that the terminal has not, or names of files that are no text, are written as escapes such as \\u03b5."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, errors="backslashreplace").decode(encoding)


# Files beside an answer, which is printed first, so that a failed write loses nothing else.


@dataclass(frozen=True)
class Extra:
    """A file to write if it was asked for, and the code of the text that then says so."""

    path: str | None
    write: Callable[[str], object]
    told: str


def written(options: argparse.Namespace, *extras: Extra) -> int:
    """Write all files, and return 0, or the exit code of bad input if one could not be written."""
    from lastiterate.errors import LastIterateError, worded  # which loads numpy: help needs none

    code, before = 0, "\n"
    for one in extras:
        if one.path:
            try:
                one.write(one.path)
            except LastIterateError as error:
                code = fail(str(error), BAD_INPUT)
            else:
                add(options, f"{before}{worded(one.told, path=one.path)}")
                before = ""
    return code


def a_certificate(path: str | None, write: Callable[[str], object]) -> Extra:
    return Extra(path, write, "written_certificate")


def a_report(path: str | None, write: Callable[[str], object]) -> Extra:
    return Extra(path, write, "written_report")


def a_plot(path: str | None, write: Callable[[str], object]) -> Extra:
    return Extra(path, write, "written_plot")
