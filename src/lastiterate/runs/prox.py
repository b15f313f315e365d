"""A convex term handled by its proximal map, after the noise. Such a map never moves two points apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from lastiterate.errors import NON_NEGATIVE, InvalidInput, checked_number
from lastiterate.numerics.arrays import Floats


class Prox(ABC):
    """With strong convexity m of the term, the map for step size η brings points together by 1/(1 + ηm).

    `kind` is its name in files.
    """

    kind: ClassVar[str]

    @property
    def strong_convexity(self) -> float:
        return 0.0

    @abstractmethod
    def value(self, x: Floats) -> float:
        """The term itself."""

    @abstractmethod
    def mapped(self, x: Floats, step_size: float) -> Floats:
        """argmin of step_size·value(y) + ‖y − x‖²/2."""

    def roundings(self, shape: tuple[int, ...]) -> float:
        """How much more a step is rounded than one without a proximal map."""
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
    """l1·‖x‖₁ + l2/2·‖x‖²."""

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
        """A decomposition takes as many as it has rows and columns."""
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
