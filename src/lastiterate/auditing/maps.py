"""What a step does to a position, before its noise: a function, or one of several by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lastiterate.numerics.arrays import Floats

Map = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Shifted:
    """base(x) + one of `shifts`, each with its probability, drawn anew at each step: a batch of random size."""

    base: Map
    shifts: Floats
    probabilities: Floats

    @property
    def count(self) -> int:
        return len(self.shifts)

    def __call__(self, x: Floats) -> Floats:
        """What is expected."""
        return self.base(x) + float(self.shifts @ self.probabilities)


def branches(step: Map, points: Floats) -> list[tuple[float, Floats]]:
    """Where the points may go, each with its probability."""
    if not isinstance(step, Shifted):
        return [(1.0, step(points))]
    places = step.base(points)
    chances = zip(step.probabilities.tolist(), step.shifts.tolist(), strict=True)
    return [(chance, places + shift) for chance, shift in chances]
