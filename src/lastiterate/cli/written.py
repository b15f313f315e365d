"""Files beside an answer. The answer is printed first: what cannot be written is one sentence, and loses nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from lastiterate.cli.show import add
from lastiterate.cli.streams import BAD_INPUT, said
from lastiterate.errors import LastIterateError, worded


@dataclass(frozen=True)
class Extra:
    """A file to write, if somebody asked for it; then the text of the code `told` is said, with its path."""

    path: str | None
    write: Callable[[str], object]
    told: str


def written(options: argparse.Namespace, *extras: Extra) -> int:
    """0 if all could be written; else the exit code of bad input, when each of them was tried."""
    code, before = 0, "\n"
    for one in extras:
        if one.path:
            try:
                one.write(one.path)
            except LastIterateError as error:
                code = said(str(error), BAD_INPUT)
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
