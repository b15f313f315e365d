"""The words of accounts, calibration, budgets, selections, forgetting, certificates and the planner."""

from __future__ import annotations

from lastiterate.report.messages import Message

MESSAGES: dict[str, Message] = {}
