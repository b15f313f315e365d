"""Where the noise enters. Conventions end here: everything after sees its standard deviation on the iterate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from lastiterate.errors import POSITIVE, checked_count, checked_number
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.named import names_arguments
from lastiterate.runs.per_step import (
    PerStep,
    at_step,
    checked_per_step,
    continued,
    each,
    first_steps,
    over_run,
    per_step_shown,
    spread,
    times,
)


class Noise(ABC):
    """Fresh Gaussian noise on every coordinate at every step. `kind` is its name in files, `size` what scales it."""

    kind: ClassVar[str]
    size: ClassVar[str] = "std"

    @abstractmethod
    def on_iterate(self, step_sizes: Floats, divisor: float) -> Floats:
        """The standard deviation on the iterate, one per step; gradient sums are divided by `divisor`."""

    @abstractmethod
    def update(
        self, x: Floats, step: int, step_size: float, gradient_sum: Floats, divisor: float, normal: Floats
    ) -> Floats:
        """One step as it is written, with standard normal numbers: what accounting and training are compared with."""

    on_sum: ClassVar[bool] = False
    """Whether it is added to a sum of gradients, before that is divided."""

    of_a_potential: ClassVar[bool] = False
    """Whether the gradient of a single record is called that of a potential."""

    @property
    def implied_clip(self) -> PerStep | None:
        """Where the noise is measured in units of a clip, that clip."""
        return None

    @property
    def described(self) -> str:
        given = (f"{one.name}={per_step_shown(getattr(self, one.name))}" for one in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def constant(self) -> bool:
        """Whether all steps have the same."""
        return all(isinstance(getattr(self, one.name), float) for one in fields(self))  # type: ignore[arg-type]

    def at(self, step: int) -> float:
        """Its size at this step."""
        return at_step(getattr(self, self.size), step)

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
        count = checked_count("steps", steps)
        return self._changed(lambda _, value: first_steps(value, count))

    def continued(self, more: int) -> Any:
        """The noise of so many steps more, each like the last."""
        return self._changed(lambda _, value: continued(value, more))

    def over(self, steps: int, per_epoch: int) -> Any:
        """The same in a run of so many steps, its schedules resolved."""
        return self._changed(lambda name, value: over_run(name, value, steps, per_epoch))

    def _changed(self, change: Callable[[str, Any], Any]) -> Any:
        """Whatever may be one number or one per step."""
        return replace(self, **{one.name: change(one.name, getattr(self, one.name)) for one in fields(self)})  # type: ignore[type-var, arg-type]


@names_arguments
@dataclass(frozen=True)
class OnIterate(Noise):
    """x ← φ(x) + N(0, std²)."""

    std: PerStep
    kind: ClassVar[str] = "on_iterate"

    def on_iterate(self, step_sizes: Floats, divisor: float) -> Floats:
        return self._size(len(step_sizes))

    def update(
        self, x: Floats, step: int, step_size: float, gradient_sum: Floats, divisor: float, normal: Floats
    ) -> Floats:
        return x - step_size * (gradient_sum / divisor) + self.at(step) * normal


@names_arguments
@dataclass(frozen=True)
class OnMeanGradient(Noise):
    """x ← x − step_size·(mean gradient + N(0, std²))."""

    std: PerStep
    kind: ClassVar[str] = "on_mean_gradient"

    def on_iterate(self, step_sizes: Floats, divisor: float) -> Floats:
        return each(np.multiply, step_sizes, self._size(len(step_sizes)))

    def update(
        self, x: Floats, step: int, step_size: float, gradient_sum: Floats, divisor: float, normal: Floats
    ) -> Floats:
        return x - step_size * (gradient_sum / divisor + self.at(step) * normal)


@names_arguments
@dataclass(frozen=True)
class OnGradientSum(Noise):
    """x ← x − (step_size/batch_size)·(Σ gradients clipped at `clip` + N(0, multiplier²·clip²)), as in DP-SGD libraries."""

    multiplier: PerStep
    clip: PerStep
    kind: ClassVar[str] = "on_gradient_sum"
    size: ClassVar[str] = "multiplier"
    on_sum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "clip", checked_per_step("clip", self.clip, POSITIVE))

    @property
    def implied_clip(self) -> PerStep:
        return self.clip

    def on_iterate(self, step_sizes: Floats, divisor: float) -> Floats:
        clips = spread("clip", self.clip, len(step_sizes))
        return each(lambda eta, z, c: eta * z * c / divisor, step_sizes, self._size(len(step_sizes)), clips)

    def update(
        self, x: Floats, step: int, step_size: float, gradient_sum: Floats, divisor: float, normal: Floats
    ) -> Floats:
        return x - step_size / divisor * (gradient_sum + self.at(step) * at_step(self.clip, step) * normal)


@names_arguments
@dataclass(frozen=True)
class Langevin(Noise):
    """x ← x − step_size·mean gradient + √(2·step_size)·N(0, std²)."""

    std: PerStep
    kind: ClassVar[str] = "langevin"
    of_a_potential: ClassVar[bool] = True

    def on_iterate(self, step_sizes: Floats, divisor: float) -> Floats:
        return each(lambda eta, std: np.sqrt(2 * eta) * std, step_sizes, self._size(len(step_sizes)))

    def update(
        self, x: Floats, step: int, step_size: float, gradient_sum: Floats, divisor: float, normal: Floats
    ) -> Floats:
        return x - step_size * (gradient_sum / divisor) + (2 * step_size) ** 0.5 * self.at(step) * normal
