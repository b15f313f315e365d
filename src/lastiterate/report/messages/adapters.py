"""The words of other libraries."""

from __future__ import annotations

from lastiterate.report.messages import Message

MESSAGES: dict[str, Message] = {}
