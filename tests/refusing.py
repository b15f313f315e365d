"""Commands that are refused, by what their errors say as data."""

from __future__ import annotations

import pytest

from lastiterate.cli import main
from lastiterate.cli.parser import parsed
from lastiterate.errors import LastIterateError


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> LastIterateError:
    """The error of a command; `main` prints its sentence and nothing else, in one line, and its exit code is 2."""
    options = parsed(arguments)
    with pytest.raises(LastIterateError) as caught:
        options.answer(options)
    capsys.readouterr()
    code = main(arguments)
    assert (code, *capsys.readouterr()) == (2, "", f"lastiterate: {caught.value}\n")
    return caught.value
