"""What an event is composed of: each part with how often it happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dp_accounting as dp

from lastiterate.adapters.dp_accounting.refusals import UnsupportedEvent
from lastiterate.errors import InvalidInput, checked_count

Parts = list[tuple[Any, int]]


def parts_of(event: Any, count: int = 1) -> Iterator[tuple[Any, int]]:
    """The events inside that compose nothing, in order; those that do nothing are left out."""
    match event:
        case dp.NoOpDpEvent():
            return
        case dp.ComposedDpEvent():
            for one in event.events:
                yield from parts_of(one, count)
        case dp.SelfComposedDpEvent():
            yield from parts_of(event.event, count * _times(event))
        case _:
            yield event, count


def _times(event: Any) -> int:
    try:
        return checked_count("count", event.count)
    except InvalidInput as error:
        raise UnsupportedEvent("dp_event_wrong", event=event, error=error) from error


def counted(parts: Parts) -> Parts:
    """Equal parts together."""
    found: Parts = []
    for event, count in parts:
        at = next((place for place, (known, _) in enumerate(found) if _equal(known, event)), None)
        if at is None:
            found.append((event, count))
        else:
            found[at] = event, found[at][1] + count
    return found


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays among the fields; parts that are not recognised as equal cost time alone
        return False
