"""Schedules by name: what a step size, a noise or a clip is at each step of a run, from a few numbers.

A run resolves them to one number per step, and remembers the name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from lastiterate.errors import NON_NEGATIVE, POSITIVE, InvalidInput, checked_count, checked_number, must_be, shown
from lastiterate.numerics.arrays import Floats

EPOCHS, STEPS = "epochs", "steps"
_MOST_STEPS = 10**7
# Of the sine, up to π/4: nothing but sums and products, so that a cosine has the same digits on every machine.
_SINE = tuple((-1) ** power / math.factorial(2 * power + 1) for power in range(8))


@dataclass(frozen=True, kw_only=True)
class NamedSchedule(ABC):
    """Schedule by name; it rises to its first value in `warmup` units, in equal steps, and spans `over` steps.

    Unless said otherwise it spans the run; the first steps of a run have the first numbers of its schedule.
    """

    kind: ClassVar[str]
    warmup: int = 0
    unit: str = EPOCHS
    over: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "warmup", checked_count("warmup", self.warmup, least=0))
        if self.unit not in (EPOCHS, STEPS):
            raise must_be("unit", f'"{EPOCHS}" or "{STEPS}"', shown(self.unit))
        if self.over is not None:
            object.__setattr__(self, "over", checked_count("over", self.over))

    @property
    @abstractmethod
    def first(self) -> float:
        """Value at the end of the warm-up."""

    @abstractmethod
    def _after(self, steps: Floats, span: int, unit: int) -> Floats:
        """Return values at these steps after the warm-up, `span` steps in all; a `unit` has this number of steps."""

    @abstractmethod
    def scaled(self, factor: float) -> NamedSchedule:
        """Return the schedule with every value multiplied by this factor."""

    def resolved(self, steps: int, per_epoch: int) -> Scheduled:
        """Return the schedule's numbers for each step of a run."""
        span, unit = self.over or steps, per_epoch if self.unit == EPOCHS else 1
        if steps > min(span, _MOST_STEPS):
            field = "over" if self.over else "steps"
            raise InvalidInput("schedule_too_short", field=field, most=_MOST_STEPS, steps=shown(steps), over=self.over)
        warm = self.warmup * unit
        if warm >= span:
            raise must_be("warmup", f"shorter than all {span} steps", f"{warm}")
        at = np.arange(steps, dtype=float)
        rising = self.first * (at + 1) / (warm + 1)
        values = np.where(at < warm, rising, self._after(np.maximum(at - warm, 0.0), span - warm, unit))
        return Scheduled(values.tolist(), self, per_epoch)

    @property
    def plain(self) -> dict[str, Any]:
        """The schedule as files hold it; values that are the default are left out."""
        given = sorted(fields(self), key=lambda one: bool(one.kw_only))  # what a schedule is about comes first
        told = {one.name: _listed(getattr(self, one.name)) for one in given if getattr(self, one.name) != one.default}
        return {"kind": self.kind, **told}

    @property
    def described(self) -> str:
        given = (f"{name}={value}" for name, value in self.plain.items() if name != "kind")
        return f"{self.kind}({', '.join(given)})"


@dataclass(frozen=True)
class _FromTo(NamedSchedule):
    """A schedule that goes from `start` to `end`, which the step after the last would have."""

    start: float
    end: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "start", checked_number("start", self.start, POSITIVE))
        object.__setattr__(self, "end", checked_number("end", self.end, NON_NEGATIVE))

    @property
    def first(self) -> float:
        return self.start

    def scaled(self, factor: float) -> NamedSchedule:
        return replace(self, start=self.start * factor, end=self.end * factor)

    def _after(self, steps: Floats, span: int, unit: int) -> Floats:
        left = self._left(steps / span)
        return self.start * left + self.end * (1 - left)

    @staticmethod
    @abstractmethod
    def _left(passed: Floats) -> Floats:
        """Return the share of the way from start to end that is left when `passed` of the schedule has passed."""


@dataclass(frozen=True)
class Cosine(_FromTo):
    """Half a wave of the cosine, as torch's CosineAnnealingLR(T_max=steps) that is stepped after every step."""

    kind: ClassVar[str] = "cosine"

    @staticmethod
    def _left(passed: Floats) -> Floats:
        early = passed <= 0.5
        square = np.square(_sine(np.pi / 2 * np.where(early, passed, 1 - passed)))
        return np.where(early, 1 - square, square)


@dataclass(frozen=True)
class Straight(_FromTo):
    """A straight line, as torch's LinearLR(total_iters=steps) that is stepped after every step."""

    kind: ClassVar[str] = "linear"

    @staticmethod
    def _left(passed: Floats) -> Floats:
        return 1 - passed


@dataclass(frozen=True)
class Stepwise(NamedSchedule):
    """`start`, and from each milestone on its own value, as torch's MultiStepLR; counted from the beginning of the run."""

    start: float
    milestones: tuple[tuple[int, float], ...] = ()
    kind: ClassVar[str] = "multistep"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "start", checked_number("start", self.start, POSITIVE))
        object.__setattr__(self, "milestones", _checked_milestones(self.milestones))

    @property
    def first(self) -> float:
        return self.start

    def scaled(self, factor: float) -> NamedSchedule:
        changed = tuple((at, value * factor) for at, value in self.milestones)
        return replace(self, start=self.start * factor, milestones=changed)

    def _after(self, steps: Floats, span: int, unit: int) -> Floats:
        begun = steps + self.warmup * unit
        values = np.full(len(steps), self.start)
        for at, value in self.milestones:
            values[begun >= at * unit] = value
        return values


class Scheduled(tuple[float, ...]):
    """The numbers of a schedule, one for each step, and the schedule itself."""

    schedule: NamedSchedule
    per_epoch: int

    def __new__(cls, values: Iterable[float], schedule: NamedSchedule, per_epoch: int) -> Scheduled:
        made = super().__new__(cls, values)
        made.schedule, made.per_epoch = schedule, per_epoch
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Scheduled, (tuple(self), self.schedule, self.per_epoch)

    def first_steps(self, steps: int) -> Scheduled:
        """Return the numbers of the first `steps` steps; the schedule spans as many steps as before."""
        over = replace(self.schedule, over=self.schedule.over or len(self))
        return self if steps == len(self) else over.resolved(steps, self.per_epoch)

    def scaled(self, factor: float) -> Scheduled:
        return self.schedule.scaled(factor).resolved(len(self), self.per_epoch)


def cosine(
    start: float, end: float = 0.0, *, warmup: int = 0, unit: str = EPOCHS, over: int | None = None
) -> NamedSchedule:
    """Schedule from `start` to `end` along half a wave of the cosine, one number for each step of the run.

    During the first `warmup` epochs (or steps: unit="steps") it rises to `start` in equal steps.
    """
    return Cosine(start, end, warmup=warmup, unit=unit, over=over)


def linear(
    start: float, end: float = 0.0, *, warmup: int = 0, unit: str = EPOCHS, over: int | None = None
) -> NamedSchedule:
    """Schedule from `start` to `end` along a line, one number for each step of the run; `warmup` as for `li.cosine`."""
    return Straight(start, end, warmup=warmup, unit=unit, over=over)


def multistep(
    start: float,
    milestones: Mapping[int, float] | Iterable[tuple[int, float]],
    *,
    warmup: int = 0,
    unit: str = EPOCHS,
    over: int | None = None,
) -> NamedSchedule:
    """`start`, and from each milestone on another value: li.multistep(0.1, {30: 0.01, 60: 0.001}), counted in epochs.

    With unit="steps" milestones, and the warm-up as for `li.cosine`, are counted in steps.
    """
    return Stepwise(start, milestones, warmup=warmup, unit=unit, over=over)  # type: ignore[arg-type]


def _checked_milestones(given: Any) -> tuple[tuple[int, float], ...]:
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, list | tuple) or not all(isinstance(one, list | tuple) and len(one) == 2 for one in pairs):
        raise must_be(
            "milestones", "such as {30: 0.01, 60: 0.001}, or [[30, 0.01], [60, 0.001]]", f"{shown(given):.60}"
        )
    found = tuple(
        (checked_count("milestones", at), checked_number("milestones", value, POSITIVE)) for at, value in pairs
    )
    if list(found) != sorted(dict(found).items()):
        raise must_be("milestones", "in order", f"{shown(given):.60}")
    return found


def _sine(angles: Floats) -> Floats:
    square, found = np.square(angles), np.zeros_like(angles)
    for coefficient in reversed(_SINE):
        found = found * square + coefficient
    return np.asarray(found * angles)


def _listed(value: Any) -> Any:
    return [_listed(one) for one in value] if isinstance(value, tuple) else value
