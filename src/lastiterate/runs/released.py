"""What is released of the iterates: the last of them, or an average."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from lastiterate.errors import Interval, checked_count, checked_number
from lastiterate.runs.optimizers import LinearFilter

_INSIDE = Interval(0.0, 1.0, low_included=False, high_included=False)


class Released(ABC):
    """What is released at the end and at checkpoints. `kind` is its name in files."""

    kind: ClassVar[str]

    @property
    def called(self) -> str:
        """What it is, for the middle of a sentence."""
        from lastiterate.report.english import released

        return released(self.kind, self.parameter)

    @property
    def parameter(self) -> float | None:
        """The number that says more of it than its kind, if there is one."""
        return None

    @property
    def plain(self) -> bool:
        """Whether it is the last iterate."""
        return False

    @abstractmethod
    def filtered(self, linear: LinearFilter) -> LinearFilter:
        """The filter of what is released, once averaging has begun."""

    def begins(self, steps: int) -> int:
        """After so many steps."""
        return 0

    @property
    def slots(self) -> int:
        """How many arrays an average takes: itself, and what its sum has rounded off."""
        return 2

    def weight(self, step: int, steps: int) -> float:
        """How far the average moves towards the iterate of this step, counted from 0, of so many."""
        return 1.0


@dataclass(frozen=True)
class Last(Released):
    """The last iterate."""

    kind: ClassVar[str] = "last"

    @property
    def plain(self) -> bool:
        return True

    @property
    def slots(self) -> int:
        return 0

    def filtered(self, linear: LinearFilter) -> LinearFilter:
        return linear


@dataclass(frozen=True)
class EMA(Released):
    """y ← decay·y + (1 − decay)·x after every step, from y = the start; y is released, and no x."""

    decay: float
    kind: ClassVar[str] = "ema"

    def __post_init__(self) -> None:
        object.__setattr__(self, "decay", checked_number("decay", self.decay, _INSIDE))

    @property
    def parameter(self) -> float | None:
        return self.decay

    def filtered(self, linear: LinearFilter) -> LinearFilter:
        return linear.averaged(self.decay)

    def weight(self, step: int, steps: int) -> float:
        return 1 - self.decay


@dataclass(frozen=True)
class Average(Released):
    """Release the mean of the `last` iterates, of all by default, and no iterate itself."""

    last: int | None = None
    kind: ClassVar[str] = "average"

    def __post_init__(self) -> None:
        if self.last is not None:
            object.__setattr__(self, "last", checked_count("last", self.last))

    @property
    def parameter(self) -> float | None:
        return self.last

    def filtered(self, linear: LinearFilter) -> LinearFilter:
        return linear.averaged(1.0)

    def begins(self, steps: int) -> int:
        return 0 if self.last is None else max(steps - self.last, 0)

    def weight(self, step: int, steps: int) -> float:
        """Of a mean that grows: 1, 1/2, 1/3, …; before, the mean is the iterate."""
        return 1 / max(step + 1 - self.begins(steps), 1)


LAST = Last()
AVERAGE = Average
