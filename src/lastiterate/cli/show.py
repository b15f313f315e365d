"""Answers on the standard output, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any


def show(options: argparse.Namespace, content: dict[str, Any], text: str) -> None:
    print(printable(json.dumps(_finite(content), indent=2) if options.json else text))


def add(options: argparse.Namespace, text: str) -> None:
    """A line after the answer; JSON is one document, and stays so."""
    if not options.json:
        print(printable(text))


def printable(text: str) -> str:
    """Letters that the terminal has not, or names of files that are no text, are written as escapes such as \\u03b5."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, errors="backslashreplace").decode(encoding)


def _finite(content: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
