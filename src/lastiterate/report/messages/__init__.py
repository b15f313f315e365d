"""The words of errors, warnings, verdicts and what commands print: a text or a function for each code, a module for each
part of the library. A text is a format string over the values that come with the code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

Message = str | Callable[..., str]
PARTS = ("common", "accounting", "runs", "training", "torch", "adapters", "estimators", "commands")


def message(code: str, values: dict[str, Any]) -> str:
    """The text of a code with its values; a code that is not listed, such as the message of a theorem of one's own, is a
    text already.
    """
    made = messages().get(code)
    if made is None:
        return code
    return made(**values) if callable(made) else made.format(**values)


@cache
def messages() -> dict[str, Message]:
    """The texts of all codes; a code stands in one part only."""
    found: dict[str, Message] = {}
    for part in PARTS:
        added = import_module(f"lastiterate.report.messages.{part}").MESSAGES
        if twice := found.keys() & added.keys():
            raise KeyError(f"{', '.join(sorted(twice))}: listed in two parts")
        found.update(added)
    return found
