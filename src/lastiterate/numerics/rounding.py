"""Rounding to a stated side, in one place.

In double precision an operation is off by at most half an ulp, a part 2⁻⁵³ of its result. `up` and `down` move a number by a
part 2⁻⁵² for each of `operations`: twice what these can have lost, which leaves room for the rounding of the move itself.
"""

from __future__ import annotations

import math
from typing import TypeVar

from lastiterate.numerics.arrays import Floats

Number = TypeVar("Number", float, Floats)

ULP = 2.0**-52
AGAIN = 1e-8  # of an ε: whoever computes it again, on any machine, finds no more
FORMULA = 4504
"""1e-12: dozens of operations and functions of scipy, each off by a few ulps, where sums may cancel two digits."""


def up(value: Number, operations: int = FORMULA, by: float | None = None) -> Number:
    """At least what the value would be, computed exactly; for numbers that are not negative.

    `by`: instead, the part of the value by which a method (a quadrature, a search) may be off.
    """
    return value * (1 + (operations * ULP if by is None else by))


def down(value: Number, operations: int = FORMULA, by: float | None = None) -> Number:
    """At most what the value would be, computed exactly; for numbers that are not negative."""
    return value * (1 - (operations * ULP if by is None else by))


# Sums of powers.


def geometric_sum(ratio: float, terms: int) -> float:
    """1 + ratio + ratio² + … with so many terms."""
    if ratio == 1:
        return float(terms)
    if ratio <= 0:
        return (1 - ratio**terms) / (1 - ratio)
    return math.expm1(terms * math.log(ratio)) / (ratio - 1)
