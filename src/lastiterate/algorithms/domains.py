"""Where the iterates may go: the set that every step projects on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from lastiterate.errors import POSITIVE, checked_count, checked_number


class Domain(ABC):
    """A convex set, or everything; with the number of coordinates, where it is known."""

    dimension: int | None = None

    @property
    @abstractmethod
    def diameter(self) -> float: ...


@dataclass(frozen=True)
class Unbounded(Domain):
    """No projection. The number of parameters, if given, helps where only weight decay keeps the iterates together."""

    dimension: int | None = None

    def __post_init__(self) -> None:
        if self.dimension is not None:
            object.__setattr__(self, "dimension", checked_count("dimension", self.dimension))

    @property
    def diameter(self) -> float:
        return math.inf


@dataclass(frozen=True)
class Ball(Domain):
    """Every step ends with the projection on a ball of this radius, wherever its centre is."""

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checked_number("radius", self.radius, POSITIVE))

    @property
    def diameter(self) -> float:
        return 2 * self.radius


@dataclass(frozen=True)
class Box(Domain):
    """Every step ends with the projection on a cube with this side."""

    side: float
    dimension: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", checked_number("side", self.side, POSITIVE))
        object.__setattr__(self, "dimension", checked_count("dimension", self.dimension))

    @property
    def diameter(self) -> float:
        return math.nextafter(self.side * math.sqrt(self.dimension), math.inf)


@dataclass(frozen=True)
class ConvexSet(Domain):
    """Every step ends with the projection on some convex set whose diameter is known."""

    diameter: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "diameter", checked_number("diameter", self.diameter, POSITIVE))
