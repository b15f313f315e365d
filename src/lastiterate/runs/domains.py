"""Where the iterates may go: the set that every step projects on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lastiterate.errors import POSITIVE, InvalidInput, checked_count, checked_number
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import length

_INSIDE = 1 - 2.0**-46  # no rounding leads out of the ball again


class Domain(ABC):
    """A convex set, or everything; with the number of coordinates, where it is known. `kind` is its name in files."""

    kind: ClassVar[str]
    dimension: int | None = None

    @property
    @abstractmethod
    def diameter(self) -> float: ...

    @abstractmethod
    def projected(self, point: Floats) -> Floats:
        """The nearest point of the domain; balls and cubes are around 0."""

    @property
    def widest_interval(self) -> float:
        """How wide the domain is along a line on which projection acts alone."""
        return self.diameter

    @property
    def described(self) -> str:
        return f"of diameter {self.diameter:g}" if math.isfinite(self.diameter) else "unbounded"


@dataclass(frozen=True)
class Unbounded(Domain):
    """No projection. `dimension`: the number of parameters, which some theorems on weight decay need."""

    dimension: int | None = None
    kind: ClassVar[str] = "unbounded"

    def __post_init__(self) -> None:
        if self.dimension is not None:
            object.__setattr__(self, "dimension", checked_count("dimension", self.dimension))

    @property
    def diameter(self) -> float:
        return math.inf

    def projected(self, point: Floats) -> Floats:
        return point


@dataclass(frozen=True)
class Ball(Domain):
    """Every step ends with the projection onto a ball of this radius. Its centre does not matter for privacy."""

    radius: float
    kind: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checked_number("radius", self.radius, POSITIVE))

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    def projected(self, point: Floats) -> Floats:
        far, most = length(point), self.radius * _INSIDE
        return point if far <= most else point * (most / far)


@dataclass(frozen=True)
class Box(Domain):
    """Every step ends with the projection onto a cube with this side."""

    side: float
    dimension: int
    kind: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", checked_number("side", self.side, POSITIVE))
        object.__setattr__(self, "dimension", checked_count("dimension", self.dimension))

    @property
    def diameter(self) -> float:
        return math.nextafter(self.side * math.sqrt(self.dimension), math.inf)

    @property
    def widest_interval(self) -> float:
        return self.side

    def projected(self, point: Floats) -> Floats:
        return np.clip(point, -self.side / 2, self.side / 2)


@dataclass(frozen=True)
class ConvexSet(Domain):
    """Every step ends with the projection onto a convex set of this diameter."""

    diameter: float = math.inf
    kind: ClassVar[str] = "convex_set"

    def __post_init__(self) -> None:
        object.__setattr__(self, "diameter", checked_number("diameter", self.diameter, POSITIVE))

    def projected(self, point: Floats) -> Floats:
        raise InvalidInput("no_projection", field="domain", domain=self)
