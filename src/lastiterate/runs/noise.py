"""All conventions for where the noise enters, and for what the arithmetic of a machine adds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from lastiterate.errors import POSITIVE, Interval, checked_count, checked_number, must_be
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
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

# Conventions for the noise. Everything after sees its standard deviation on the iterate.


class Noise(ABC):
    """Fresh Gaussian noise on every coordinate at every step. `kind` is its name in files, `size` what scales it."""

    kind: ClassVar[str]
    size: ClassVar[str] = "std"

    @abstractmethod
    def on_iterate(self, step_sizes: Floats, divisor: float) -> Floats:
        """Return the standard deviation on the iterate, one per step; gradient sums are divided by `divisor`."""

    @abstractmethod
    def update(
        self, x: Floats, step: int, step_size: float, gradient_sum: Floats, divisor: float, normal: Floats
    ) -> Floats:
        """Make one step as written, with standard normal numbers; accounting and training are compared with it."""

    on_sum: ClassVar[bool] = False
    """Whether it is added to a sum of gradients, before that is divided."""

    of_a_potential: ClassVar[bool] = False
    """Whether the gradient of a single record is called that of a potential."""

    @property
    def implied_clip(self) -> PerStep | None:
        """The clip in whose units the noise is measured, if it is."""
        return None

    @property
    def described(self) -> str:
        given = (f"{one.name}={per_step_shown(getattr(self, one.name))}" for one in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def constant(self) -> bool:
        """Whether all steps have the same noise."""
        return all(isinstance(getattr(self, one.name), float) for one in fields(self))  # type: ignore[arg-type]

    def at(self, step: int) -> float:
        """Size of the noise at this step."""
        return at_step(getattr(self, self.size), step)

    def _size(self, steps: int) -> Floats:
        return spread(self.size, getattr(self, self.size), steps)

    def __post_init__(self) -> None:
        object.__setattr__(self, self.size, checked_per_step(self.size, getattr(self, self.size), POSITIVE))

    def scaled(self, factor: float) -> Any:
        """Return noise of the same kind, larger by this factor."""
        by = checked_number("factor", factor, POSITIVE)
        return replace(self, **{self.size: times(getattr(self, self.size), by)})  # type: ignore[type-var]

    def first(self, steps: int) -> Any:
        """Return the noise of the first `steps` steps."""
        count = checked_count("steps", steps)
        return self._changed(lambda _, value: first_steps(value, count))

    def continued(self, more: int) -> Any:
        """Return the noise of a run with `more` further steps, each like the last."""
        return self._changed(lambda _, value: continued(value, more))

    def over(self, steps: int, per_epoch: int) -> Any:
        """Return the noise of a run of `steps` steps, its schedules resolved to one number per step."""
        return self._changed(lambda name, value: over_run(name, value, steps, per_epoch))

    def _changed(self, change: Callable[[str, Any], Any]) -> Any:
        """Return noise of the same kind with `change` applied to every entry."""
        return replace(self, **{one.name: change(one.name, getattr(self, one.name)) for one in fields(self)})  # type: ignore[type-var, arg-type]


@names_arguments
@dataclass(frozen=True)
class OnIterate(Noise):
    """Gaussian noise added to the iterate: x ← φ(x) + N(0, std²)."""

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


# Rounding: how much more a record can move a sum, and how far iterates stray.


MOST_FACTOR = 1.001
_FACTORS = Interval(1.0, MOST_FACTOR, low_included=True, high_included=True)
_DISPLACEMENTS = Interval(0.0, 1e-3, low_included=True, high_included=True)


@dataclass(frozen=True)
class Arithmetic:
    """Floating-point rounding: a record changes a computed gradient sum by at most `factor` times its exact change.

    The iterates as they are computed, all of them together, differ from exact ones by a Gaussian mechanism with
    mu = `displacement`. (docs/numerics.md)
    """

    factor: float = 1.0
    displacement: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", checked_number("factor", self.factor, _FACTORS))
        object.__setattr__(self, "displacement", checked_number("displacement", self.displacement, _DISPLACEMENTS))

    def and_also(self, other: Arithmetic) -> Arithmetic:
        """Return the worse of two arithmetics, in each respect."""
        if not isinstance(other, Arithmetic):
            raise must_be("other", "a li.training.Arithmetic", type(other).__name__)
        return Arithmetic(max(self.factor, other.factor), max(self.displacement, other.displacement))

    def then(self, other: Arithmetic) -> Arithmetic:
        """Return the arithmetic of a training that continues another; squares of displacements add up."""
        strays = up(math.hypot(self.displacement, other.displacement))
        return Arithmetic(max(self.factor, other.factor), strays)


EXACT = Arithmetic()
STRAYING = 2.0**-19  # by how much the iterates of a training may stray, as mu
STRAYING_OF_NETWORKS = 2.0**-15  # the same with tensors of millions of parameters
UNBOUNDED = Arithmetic(1 + 2.0**-17, STRAYING)  # of gradients without a bound, which are held to it as they come
WIDEST = 2.0**10  # times the clip: what the terms of a record's gradient may add up to before they cancel
PLACES_AT_ONCE = 2**12  # terms that are added up in one product of matrices
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53


@dataclass(frozen=True)
class Sums:
    """How gradients are summed: blocks of `block` rows with rounding unit `unit`; blocks in double precision."""

    block: int
    unit: float

    def factor(self, batch: int, random: bool) -> float:
        """Factor by which rounding enlarges a record's move of a gradient sum, relative to twice the longest gradient.

        In a fixed batch a record touches its own block alone: `block` roundings, each at most a part `unit` of what the
        block's records can sum to. Random batches are compared with and without the record, and all blocks may differ.
        Clipping and scaling take a few more roundings of one record alone.
        """
        touched = batch if random else min(self.block, batch)
        additions = -(-batch // self.block)
        return 1 + 1.02 * (min(self.block, batch) * touched * self.unit + additions * batch * _DOUBLE) + 32 * self.unit


IN_SINGLE_PRECISION = Sums(64, _SINGLE)
IN_DOUBLE_PRECISION = Sums(1024, _DOUBLE)


def expected_arithmetic(batch: int, random: bool, linear: bool, bounded: bool, replaces: bool = True) -> Arithmetic:
    """Return the largest rounding that a training may have and still be accepted; `calibrate` leaves room for it.

    Rounding is as large whether the neighbour has another record or none, and moves half as far where it has none.
    """
    if not bounded:
        return UNBOUNDED
    sums = IN_SINGLE_PRECISION if linear and not random else IN_DOUBLE_PRECISION
    beyond = sums.factor(batch, random) - 1 + (0.0 if linear else lost_by_networks(batch))
    factor = 1 + beyond * (1 if replaces else 2)
    return Arithmetic(min(factor, MOST_FACTOR), STRAYING if linear else STRAYING_OF_NETWORKS)


def lost_by_networks(batch: int, processes: int = 1) -> float:
    """Return the rounding error of sums of a network's gradients, relative to the longest of them.

    A record's gradient may be a sum of terms that cancel: `PLACES_AT_ONCE` of them are added up at once, up to `WIDEST`
    times the clip in all. Records may be looked at one by one: an addition for each, and for each process.
    """
    return (PLACES_AT_ONCE + processes + 1.02 * batch) * WIDEST * batch * _DOUBLE
