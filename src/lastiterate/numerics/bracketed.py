"""Numbers that take long to compute, and that two quick bounds are often enough to compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Bracketed:
    """A number between `low` and `high`, computed when it is asked for, or when a comparison depends on it."""

    low: float
    high: float
    compute: Callable[[], float]

    @cached_property
    def value(self) -> float:
        return self.compute()

    def __lt__(self, other: Bracketed) -> bool:
        """Compare the values, and compute only what the bounds leave open: the other's first, then this one's."""
        if self.low >= other.high or self.high < other.low:
            return self.high < other.low
        if self.low >= other.value or self.high < other.value:
            return self.high < other.value
        return self.value < other.value

    def through(self, increasing: Callable[[float], float]) -> Bracketed:
        """Return what an increasing function makes of the number and of its bounds."""
        return Bracketed(increasing(self.low), increasing(self.high), lambda: increasing(self.value))


def exactly(value: float) -> Bracketed:
    """Return a number that is known already, between itself and itself."""
    return Bracketed(value, value, lambda: value)


def least(numbers: Iterable[Bracketed]) -> Bracketed:
    """Return the least of some numbers; of these, only those are computed that may be it."""
    by_bound = sorted(numbers, key=lambda one: one.low)

    def compute() -> float:
        found = math.inf
        for one in by_bound:
            if one.low > found:
                break
            found = min(found, one.value)
        return found

    return Bracketed(by_bound[0].low, min(one.high for one in by_bound), compute)


def place_of_least(numbers: Mapping[int, Bracketed]) -> int:
    """Return where the least of some numbers is, the first of equal ones."""
    high = min(one.high for one in numbers.values())
    may_be = [place for place, one in numbers.items() if not one.low > high]
    return may_be[0] if len(may_be) == 1 else min(may_be, key=lambda place: (numbers[place].value, place))
