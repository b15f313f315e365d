"""One thing that a training takes from outside, as a row of a table that is checked, documented and tested as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trusted:
    """`needed`: the code of what it has to be. `check` raises an error at a step where it is not.

    `assumed`: the codes of what the report states of it, where it applies, because nothing can check it.
    """

    name: str
    needed: str
    check: Callable[[Any], None] | None = None
    assumed: tuple[str, ...] = ()


def check_all(table: tuple[Trusted, ...], step: Any) -> None:
    """Check every entry that can be checked, in the order of the table."""
    for entry in table:
        if entry.check is not None:
            entry.check(step)
