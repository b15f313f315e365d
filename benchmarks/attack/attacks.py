"""What an attack found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lastiterate as li


@dataclass(frozen=True)
class Shown:
    """A claim beside what an attack shows of it."""

    what: str
    claimed: str
    shown: str
    holds: bool


def refusal(call: Callable[[], Any]) -> str | None:
    """The sentence of a refusal; None if the call went through."""
    try:
        call()
    except li.errors.InvalidInput as error:
        return str(error)
    return None


def refused(what: str, call: Callable[[], Any], word: str) -> Shown:
    """A call that has to be refused, with this word in the sentence."""
    said = refusal(call)
    return Shown(what, "refused", "went through" if said is None else f"“{said[:34]}…”", bool(said and word in said))
