"""Numbers with few digits, rounded to the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def above(value: float, digits: int = 4) -> str:
    """Return the value with this many digits, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def below(value: float, digits: int = 4) -> str:
    """Return the value with this many digits, rounded down."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() + 1 - digits)
    return f"{float(exact.quantize(unit, rounding=direction)):.{digits}g}"
