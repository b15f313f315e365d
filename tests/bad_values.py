"""Values that a public function must refuse, by the thousand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Draw = Callable[[random.Random], Any]


@dataclass(frozen=True)
class Bad:
    """Some special values, and any number of random ones."""

    specials: tuple[Any, ...]
    draw: Draw | None = None

    def values(self, count: int) -> list[Any]:
        source = random.Random(11)
        return [*self.specials, *(self.draw(source) for _ in range(count) if self.draw)]


def _below(limit: float) -> Draw:
    return lambda source: limit - 10 ** source.uniform(-12, 300)


def _outside(low: float, high: float) -> Draw:
    return lambda source: (
        (low - 1e-12 - 10 ** source.uniform(-9, 300)) if source.random() < 0.5 else high + 10 ** source.uniform(-9, 300)
    )


NOT_NUMBERS = (math.nan, None, "1", True, 1j, object(), {}, "x")
NOT_POSITIVE = Bad((*NOT_NUMBERS, 0, -0.0, math.inf, -math.inf, [1.0, 2.0]), _below(0.0))
NOT_AN_EPSILON = Bad((*NOT_NUMBERS, math.inf, -math.inf, -5e-324), _below(0.0))
NOT_A_DELTA = Bad((*NOT_NUMBERS, 0.0, 1.0, 1, math.inf), _outside(0.0, 1.0))
NOT_A_RATE = Bad((*NOT_NUMBERS, 0.0, math.inf, [0.1, 0.2]), _outside(0.0, 1.0))
NOT_AN_ERROR = Bad((*NOT_NUMBERS, math.inf), _outside(0.0, 1.0))
NOT_AN_ORDER = Bad((*NOT_NUMBERS, 1.0, math.inf, -math.inf), _below(1.0))
NOT_A_COUNT = Bad(
    (*NOT_NUMBERS, 0, -1, 1.5, math.inf, [1]), lambda source: source.randint(0, 10**9) + source.uniform(0.01, 0.99)
)
NOT_A_CHOICE = Bad((None, "POISSON", "replace", 1, 0.5, object()))
NOT_PROBABILITIES = Bad(([0.5, math.nan], [-0.1, 0.2], [2.0], "x", [[0.1]], [], None))
