"""The words of runs, losses, batches, guarantees as curves, theorems and the kernel."""

from __future__ import annotations

from lastiterate.report.messages import Message

MESSAGES: dict[str, Message] = {}
