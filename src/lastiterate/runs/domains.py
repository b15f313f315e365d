"""Domains that every step projects on, and convex terms handled by their proximal maps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from lastiterate.errors import NON_NEGATIVE, POSITIVE, InvalidInput, checked_count, checked_number
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import length

# Domains.


_INSIDE = 1 - 2.0**-46  # no rounding leads out of the ball again


class Domain(ABC):
    """A convex set or the whole space, with its dimension if that is known. `kind` is its name in files."""

    kind: ClassVar[str]
    dimension: int | None = None

    @property
    @abstractmethod
    def diameter(self) -> float: ...

    @abstractmethod
    def projected(self, point: Floats) -> Floats:
        """Return the nearest point of the domain; balls and cubes are centred at 0."""

    @property
    def widest_interval(self) -> float:
        """Width of the domain along a line on which projection acts alone."""
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


# Proximal terms. The map comes after the noise and never moves two points apart.


class Prox(ABC):
    """A convex term g of the objective, handled by its proximal map; strong convexity m contracts it by 1/(1 + ηm).

    `kind` is its name in files.
    """

    kind: ClassVar[str]

    @property
    def strong_convexity(self) -> float:
        return 0.0

    @abstractmethod
    def value(self, x: Floats) -> float:
        """Return the value of the term at `x`."""

    @abstractmethod
    def mapped(self, x: Floats, step_size: float) -> Floats:
        """Return the proximal map: argmin of step_size·value(y) + ‖y − x‖²/2 over y."""

    def roundings(self, shape: tuple[int, ...]) -> float:
        """Rounding error of a step with this proximal map relative to one without."""
        return 1.0

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, one.name, checked_number(one.name, getattr(self, one.name), NON_NEGATIVE))


@dataclass(frozen=True)
class L1(Prox):
    """weight·‖x‖₁: soft thresholding."""

    weight: float
    kind: ClassVar[str] = "l1"

    def value(self, x: Floats) -> float:
        return self.weight * float(np.abs(x).sum())

    def mapped(self, x: Floats, step_size: float) -> Floats:
        return _soft(x, step_size * self.weight)


@dataclass(frozen=True)
class ElasticNet(Prox):
    """The term l1·‖x‖₁ + l2/2·‖x‖²."""

    l1: float
    l2: float
    kind: ClassVar[str] = "elastic_net"

    @property
    def strong_convexity(self) -> float:
        return self.l2

    def value(self, x: Floats) -> float:
        return self.l1 * float(np.abs(x).sum()) + self.l2 / 2 * float(np.square(x).sum())

    def mapped(self, x: Floats, step_size: float) -> Floats:
        return _soft(x, step_size * self.l1) / (1 + step_size * self.l2)


@dataclass(frozen=True)
class NuclearNorm(Prox):
    """weight·(sum of singular values): soft thresholding of the spectrum."""

    weight: float
    kind: ClassVar[str] = "nuclear_norm"

    def value(self, x: Floats) -> float:
        return self.weight * float(np.linalg.svd(np.atleast_2d(x), compute_uv=False).sum())

    def mapped(self, x: Floats, step_size: float) -> Floats:
        if x.ndim > 2:
            raise InvalidInput("not_a_matrix", axes=x.ndim)
        left, values, right = np.linalg.svd(np.atleast_2d(x), full_matrices=False)
        return np.asarray((left * _soft(values, step_size * self.weight)) @ right).reshape(x.shape)

    def roundings(self, shape: tuple[int, ...]) -> float:
        """Rounding error of a singular value decomposition, in steps: one for each row and column."""
        return 1.0 + sum(shape)


@dataclass(frozen=True)
class ConvexTerm(Prox):
    """Any other convex function, with its modulus of strong convexity."""

    modulus: float = 0.0
    kind: ClassVar[str] = "convex_term"

    @property
    def strong_convexity(self) -> float:
        return self.modulus

    def value(self, x: Floats) -> float:
        raise InvalidInput("prox_without_formula", field="prox", prox=self)

    def mapped(self, x: Floats, step_size: float) -> Floats:
        raise InvalidInput("no_proximal_map", field="prox", prox=self)


def _soft(values: Floats, threshold: float) -> Floats:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0))
