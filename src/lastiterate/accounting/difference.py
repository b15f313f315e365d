"""In which entries two plain values differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

_FIRST = 4  # one more than are told

Difference = tuple[str, Any, Any]


class _Absent:
    """Stands where one of them has nothing."""

    def __str__(self) -> str:
        return "not given"


_ABSENT = _Absent()


def differences(one: Any, two: Any, path: str = "") -> tuple[Difference, ...]:
    """The dotted name of each entry, and what stands there, of the first few; lists are entries as a whole."""
    return tuple(islice(_differences(one, two, path), _FIRST))


def _differences(one: Any, two: Any, path: str) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(two, dict):
        for name in dict.fromkeys([*one, *two]):
            inside = f"{path}.{name}" if path else str(name)
            yield from _differences(one.get(name, _ABSENT), two.get(name, _ABSENT), inside)
    elif one != two:
        yield path, one, two
