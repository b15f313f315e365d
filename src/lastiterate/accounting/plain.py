"""Plain values as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


def finite(content: Any) -> Any:
    """JSON knows no infinity; null stands for it."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
