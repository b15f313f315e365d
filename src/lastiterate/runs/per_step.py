"""A number, or one number for each step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lastiterate.errors import Interval, InvalidInput, checked_array, checked_count, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.schedules import NamedSchedule, Scheduled

PerStep = float | tuple[float, ...]


def checked_per_step(name: str, value: Any, within: Interval) -> PerStep:
    """`value` as a float, or as a tuple of floats, each inside `within`. A schedule waits for its run, as it is."""
    if isinstance(value, NamedSchedule | Scheduled):
        return value  # type: ignore[return-value]
    array = checked_array(name, value, within)
    if array.ndim == 0:
        return float(array)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput("not_per_step", field=name, shape=array.shape)
    return tuple(array.tolist())


def over_run(name: str, value: Any, steps: int, per_epoch: int) -> Any:
    """Return `value` for a run of `steps` steps: a schedule becomes one number for each of them."""
    schedule = value.schedule if isinstance(value, Scheduled) else value
    if not isinstance(schedule, NamedSchedule):
        return value
    found = schedule.resolved(steps, per_epoch)
    if not min(found) > 0:
        raise must_be(name, "> 0 at every step", f"{min(found):g} from {schedule.described}")
    return found


def spread(name: str, value: PerStep, steps: int) -> Floats:
    """Return an array with one entry per step; a single number is stored once."""
    if isinstance(value, float):
        return np.broadcast_to(np.float64(value), steps)
    if len(value) != steps:
        raise InvalidInput("wrong_length", field=name, steps=steps, got=f"{len(value)}")
    return np.array(value)


def at_step(value: PerStep, step: int) -> float:
    """Return the entry of this step, counted from 0."""
    return float(value if isinstance(value, float) else value[step])


def first_steps(value: PerStep, steps: int) -> PerStep:
    """Return the first `steps` entries; a single number stands for any number of steps."""
    if isinstance(value, Scheduled):
        return value.first_steps(steps)
    return value if isinstance(value, float) else value[:steps]


def continued(value: PerStep, more: int) -> PerStep:
    """Return `value` for `more` further steps, each like the last; a single number stays as it is."""
    return value if isinstance(value, float) else (*value, *[value[-1]] * more)


def times(value: PerStep, factor: float) -> PerStep:
    if isinstance(value, NamedSchedule | Scheduled):
        return value.scaled(factor)
    return value * factor if isinstance(value, float) else tuple(factor * entry for entry in value)


def is_constant(values: Floats) -> bool:
    """Whether one number is stored for all steps."""
    return values.ndim == 0 or values.strides == (0,) or values.size == 1


def once_if_equal(values: Floats) -> Floats:
    """Return `values`, stored once if all entries are equal."""
    return np.broadcast_to(values[0], values.shape) if (values == values[0]).all() else values


def extremes(values: Floats) -> tuple[float, float]:
    """Return the least and the greatest entry; a number stored once for all steps is compared once."""
    entries = values.reshape(-1)[:1] if is_constant(values) else values
    return float(entries.min()), float(entries.max())


def each(function: Callable[..., Any], *values: Any) -> Floats:
    """function(*values), one entry per step; computed and stored once where none of the values changes."""
    arrays = [np.asarray(value, float) for value in values]
    if not all(is_constant(array) for array in arrays):
        return np.asarray(function(*arrays), float)
    once = function(*(array.reshape(-1)[:1] for array in arrays))
    return np.broadcast_to(np.asarray(once, float)[0], np.broadcast_shapes(*(array.shape for array in arrays)))


def per_step_shown(value: PerStep) -> str:
    """Describe a number per step for the middle of a sentence."""
    if isinstance(value, NamedSchedule | Scheduled):
        return (value.schedule if isinstance(value, Scheduled) else value).described
    return f"{value:g}" if isinstance(value, float) else f"from {min(value):g} to {max(value):g}"


# The length of a run, in steps or in passes over the data.


_MOST_STEPS = min(10**12, sys.maxsize // 8)  # on 32-bit platforms, what an array may have


@dataclass(frozen=True)
class Epochs:
    """A number of passes over the data."""

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", checked_count("epochs", self.count))


def epochs(count: int) -> Epochs:
    """A number of passes over the data, for the `steps` of a run. It is kept if the batches are changed."""
    return Epochs(count)


@dataclass(frozen=True)
class Length:
    """Length of a run in `steps`, and in `epochs` if it was described so; lengths of as many steps are equal."""

    steps: int
    epochs: Epochs | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"{self.steps} steps" if self.epochs is None else f"{self.epochs.count} epochs"

    def with_batches(self, per_epoch: int) -> Length:
        """Return the length for `per_epoch` batches an epoch: as many passes if described so, or as many steps."""
        return self if self.epochs is None else length_of(self.epochs, per_epoch)

    def cut(self, steps: int, per_epoch: int) -> Length:
        """Return the length of the first `steps` steps, in passes if it was described so and they are whole."""
        whole = self.epochs is not None and steps % per_epoch == 0
        return length_of(Epochs(steps // per_epoch) if whole else steps, per_epoch)


def length_of(steps: int | Epochs, per_epoch: int) -> Length:
    described = steps if isinstance(steps, Epochs) else None
    count = described.count * per_epoch if described else checked_count("steps", steps)
    if count > _MOST_STEPS:
        raise must_be("steps", f"at most {_MOST_STEPS:g}", shown(count))
    return Length(count, described)
