"""In which entries two plain values differ, in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

_ABSENT = object()
_MOST_TOLD = 3
_LONGEST = 60

Difference = tuple[str, Any, Any]


def differences(one: Any, two: Any, path: str = "") -> Iterator[Difference]:
    """The dotted name of each entry, and what stands there; lists are entries as a whole."""
    if isinstance(one, dict) and isinstance(two, dict):
        for name in dict.fromkeys([*one, *two]):
            inside = f"{path}.{name}" if path else str(name)
            yield from differences(one.get(name, _ABSENT), two.get(name, _ABSENT), inside)
    elif one != two:
        yield path, one, two


def told(found: Iterator[Difference], first: str, second: str) -> str:
    """“steps is 400 in the certificate and 500 in run.toml”, of the first few; empty if there is none."""
    listed = list(islice(found, _MOST_TOLD + 1))
    said = [f"{path} is {_shown(one)} in {first} and {_shown(two)} in {second}" for path, one, two in listed]
    return "; ".join(said[:_MOST_TOLD]) + ("; and more" if len(said) > _MOST_TOLD else "")


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
