"""A convex term handled by its proximal map, after the noise. Such a map never moves two points apart."""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.errors import NON_NEGATIVE, checked_number


class Prox:
    """With strong convexity m of the term, the map for step size η brings points together by 1/(1 + ηm)."""

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:  # type: ignore[attr-defined]
            object.__setattr__(self, name, checked_number(name, getattr(self, name), NON_NEGATIVE))


@dataclass(frozen=True)
class L1(Prox):
    """weight·‖x‖₁: soft thresholding."""

    weight: float


@dataclass(frozen=True)
class NuclearNorm(Prox):
    """weight·(sum of singular values): soft thresholding of the spectrum."""

    weight: float


@dataclass(frozen=True)
class ElasticNet(Prox):
    """l1·‖x‖₁ + l2/2·‖x‖²."""

    l1: float
    l2: float

    @property
    def strong_convexity(self) -> float:
        return self.l2


@dataclass(frozen=True)
class ConvexTerm(Prox):
    """Any other convex function, with its modulus of strong convexity."""

    modulus: float = 0.0

    @property
    def strong_convexity(self) -> float:
        return self.modulus
