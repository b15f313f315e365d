"""How long a run is: a number of steps, or of passes over the data."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from lastiterate.errors import checked_count, must_be, shown

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
    """So many `steps`; `epochs`, where the run was described in passes. Runs of as many steps are as long."""

    steps: int
    epochs: Epochs | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"{self.steps} steps" if self.epochs is None else f"{self.epochs.count} epochs"

    def with_batches(self, per_epoch: int) -> Length:
        """With so many batches in an epoch: the same passes, or the same steps."""
        return self if self.epochs is None else length_of(self.epochs, per_epoch)

    def cut(self, steps: int, per_epoch: int) -> Length:
        """So many steps; in passes, if it was and they are whole."""
        whole = self.epochs is not None and steps % per_epoch == 0
        return length_of(Epochs(steps // per_epoch) if whole else steps, per_epoch)


def length_of(steps: int | Epochs, per_epoch: int) -> Length:
    described = steps if isinstance(steps, Epochs) else None
    count = described.count * per_epoch if described else checked_count("steps", steps)
    if count > _MOST_STEPS:
        raise must_be("steps", f"at most {_MOST_STEPS:g}", shown(count))
    return Length(count, described)
