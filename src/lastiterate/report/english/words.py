"""Registers of sentences, one function for each code, and small words that sentences share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Sentence = Callable[..., str]
SENTENCES: dict[str, Sentence] = {}
SHORT: dict[str, Sentence] = {}
_SHOWN = 6  # numbers of a list; the rest is "…"


def says(code: str, in_short: str = "") -> Callable[[Sentence], Sentence]:
    """Register the function that makes the sentences of a code."""

    def register(made: Sentence) -> Sentence:
        SENTENCES[code] = made
        if in_short:
            SHORT[code] = lambda **values: in_short.format(**values)
        return made

    return register


def always(code: str, text: str, in_short: str = "") -> None:
    """Register a code whose sentence is always the same."""
    says(code, in_short)(lambda: text)


def listed(values: Iterable[Any]) -> str:
    """Return the first few values, separated by commas."""
    given = [str(one) for one in values]
    return f"{', '.join(given[:_SHOWN])}{', …' if len(given) > _SHOWN else ''}"


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: “1 step”, “3 steps”."""
    return f"{count} {one if count == 1 else several or one + 's'}"
