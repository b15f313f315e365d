"""Answers on the standard output, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def show(options: argparse.Namespace, content: dict[str, Any], text: str) -> None:
    print(printable(_as_json(content) if options.json else text))


def _as_json(content: dict[str, Any]) -> str:
    """Loaded here: to be asked for help takes nothing of this."""
    from lastiterate.accounting.plain import finite

    return json.dumps(finite(content), indent=2)


def add(options: argparse.Namespace, text: str) -> None:
    """A line after the answer; JSON is one document, and stays so."""
    if not options.json:
        print(printable(text))


def printable(text: str) -> str:
    """Letters that the terminal has not, or names of files that are no text, are written as escapes such as \\u03b5."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, errors="backslashreplace").decode(encoding)
