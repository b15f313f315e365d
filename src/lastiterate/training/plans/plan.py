"""What is chosen, and what the user has fixed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lastiterate.display import card, lines, summary
from lastiterate.errors import worded

MOST_PASSES = 250


class Way(Enum):
    """How records come to the steps, and what is paid for."""

    FULL = "full_batches"
    PASSES = "hidden_passes"
    SAMPLED = "random_batches"

    def __str__(self) -> str:
        return worded("plan_way", way=self.value)

    @property
    def called(self) -> str:
        """In a table."""
        return _CALLED[self.name]


_CALLED = {"FULL": "full batches, momentum", "PASSES": "hidden passes", "SAMPLED": "random batches, momentum"}


@dataclass(frozen=True)
class Wishes:
    """What the user has fixed; None is left to choose. `passes` over the data are not exceeded."""

    batches: int | None = None
    epochs: int | None = None
    step_size: float | None = None
    l2: float | None = None
    passes: int = MOST_PASSES

    @property
    def most_epochs(self) -> int:
        return self.passes if self.epochs is None else self.epochs


@dataclass(frozen=True)
class Plan:
    """`batches` in each of so many `epochs`. What is released is the mean of the last `averaged` iterates.

    `noise`: on the mean gradient, about what the budget will ask for. `error`: the loss beyond the best that is expected on
    the problem that stands for the data; `others`: that of the best plan of every other way.
    """

    way: Way
    batches: int
    epochs: int
    step_size: float
    l2: float
    momentum: float
    averaged: int
    noise: float
    error: float
    others: tuple[tuple[Way, float], ...] = ()

    @property
    def steps(self) -> int:
        return self.batches * self.epochs

    def __repr__(self) -> str:
        return summary(
            self, self.way.called, self.length, f"step size {self.step_size:.3g}", f"expected error {self.error:.2g}"
        )

    def _repr_html_(self) -> str:
        return card(lines([str(self)]))

    def __str__(self) -> str:
        settings = {"length": self.length, "step_size": self.step_size, "l2": self.l2}
        return worded("plan_settings", way=self.way, **settings, why=self.why)

    @property
    def length(self) -> str:
        """In words."""
        return f"{self.epochs} epochs of {self.batches} batches" if self.batches > 1 else f"{self.epochs} steps"

    @property
    def why(self) -> str:
        """In one sentence."""
        if not self.others:
            return worded("plan_only_way")
        return worded("plan_compared", error=self.error, others=self.others)
