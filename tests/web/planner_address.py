"""Where the planner of the tests is, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PORT, TOKEN = 8123, "a-token-that-nobody-guesses"
Ask = Callable[..., tuple[int, list[dict[str, Any]]]]
