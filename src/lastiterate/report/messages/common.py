"""Words that every part of the library may need."""

from __future__ import annotations

from lastiterate.report.messages import Message


def _must_be(field: str, allowed: str, got: str, advice: str = "", called: str = "") -> str:
    return f"{called or field} must be {allowed}. Got {got}.{' ' if advice else ''}{advice}"


MESSAGES: dict[str, Message] = {
    "must_be": _must_be,
}
