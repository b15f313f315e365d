"""Values that take long to make, each made once, when a test first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeVar

T = TypeVar("T")


class WhenAsked(Mapping[str, T]):
    """By their names. Collecting the tests, which every worker of a parallel run does, makes none of them."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = {name: cache(make) for name, make in makers.items()}

    def __getitem__(self, name: str) -> T:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
