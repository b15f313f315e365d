"""Where the noise enters. Conventions end here: everything after sees its standard deviation on the iterate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lastiterate.algorithms.per_step import PerStep, checked_per_step, each, first_steps, spread, times
from lastiterate.errors import POSITIVE, checked_number
from lastiterate.numerics.arrays import Floats


class Noise(ABC):
    """Fresh Gaussian noise on every coordinate at every step."""

    size: ClassVar[str] = "std"

    @abstractmethod
    def on_iterate(self, step_sizes: Floats, batch_size: float) -> Floats:
        """The standard deviation on the iterate, one per step."""

    def _size(self, steps: int) -> Floats:
        return spread(self.size, getattr(self, self.size), steps)

    def __post_init__(self) -> None:
        object.__setattr__(self, self.size, checked_per_step(self.size, getattr(self, self.size), POSITIVE))

    def scaled(self, factor: float) -> Any:
        """The same kind of noise, larger by this factor."""
        by = checked_number("factor", factor, POSITIVE)
        return replace(self, **{self.size: times(getattr(self, self.size), by)})  # type: ignore[type-var]

    def first(self, steps: int) -> Any:
        """The noise of the first so many steps."""
        return replace(self, **{self.size: first_steps(getattr(self, self.size), steps)})  # type: ignore[type-var]


@dataclass(frozen=True)
class OnIterate(Noise):
    """x ← φ(x) + N(0, std²)."""

    std: PerStep

    def on_iterate(self, step_sizes: Floats, batch_size: float) -> Floats:
        return self._size(len(step_sizes))


@dataclass(frozen=True)
class OnMeanGradient(Noise):
    """x ← x − step_size·(mean gradient + N(0, std²))."""

    std: PerStep

    def on_iterate(self, step_sizes: Floats, batch_size: float) -> Floats:
        return each(np.multiply, step_sizes, self._size(len(step_sizes)))


@dataclass(frozen=True)
class OnGradientSum(Noise):
    """x ← x − (step_size/batch_size)·(Σ gradients clipped at `clip` + N(0, multiplier²·clip²)), as DP-SGD libraries do."""

    multiplier: PerStep
    clip: PerStep
    size: ClassVar[str] = "multiplier"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "clip", checked_per_step("clip", self.clip, POSITIVE))

    def on_iterate(self, step_sizes: Floats, batch_size: float) -> Floats:
        clips = spread("clip", self.clip, len(step_sizes))
        return each(lambda eta, z, c: eta * z * c / batch_size, step_sizes, self._size(len(step_sizes)), clips)

    def first(self, steps: int) -> OnGradientSum:
        return OnGradientSum(first_steps(self.multiplier, steps), first_steps(self.clip, steps))


@dataclass(frozen=True)
class Langevin(Noise):
    """x ← x − step_size·mean gradient + √(2·step_size)·N(0, std²)."""

    std: PerStep

    def on_iterate(self, step_sizes: Floats, batch_size: float) -> Floats:
        return each(lambda eta, std: np.sqrt(2 * eta) * std, step_sizes, self._size(len(step_sizes)))
