"""What a theorem returns: the guarantee, what it covers, and what a certificate needs to check it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from lastiterate.curves.minimum import Ladder
from lastiterate.curves.notion import Notion, with_caveats
from lastiterate.display import summary
from lastiterate.errors import Unavailable
from lastiterate.facts import Fact
from lastiterate.numerics.rounding import up
from lastiterate.shift.prepay import Segment
from lastiterate.shift.schedule import Schedule


class About(Enum):
    """What a guarantee is about."""

    EVERY_ITERATE = "every iterate"  # it holds whatever is released on the way: a composition
    LAST_ITERATE = "the last iterate"  # and those that the process names
    EACH_RECORD = "each record's own place"


class Grade(Enum):
    """How a certificate is checked."""

    REPLAYED = "replayed"  # the kernel goes through its schedules
    RECOMPUTED = "recomputed"  # the theorem is evaluated again


class NoFiniteBound(Unavailable):
    """Every assumption holds, and still nothing finite is found."""


@dataclass(frozen=True)
class Path:
    """A schedule that may prepay, as the kernel takes it."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Prepaying:
    """What paths that prepay assume: so many different pushes, an exception of probability `slack`, no larger payment."""

    functions: int
    slack: float
    largest: float


@dataclass(frozen=True)
class Stretch:
    """Between two releases: the schedule and the μ it certifies; no schedule where the record is absent."""

    mu: float
    schedule: Schedule | Path | None


@dataclass(frozen=True)
class RecordSchedules:
    """Schedules for a record whose turn is at this place: its stretches, and how likely that place is."""

    place: int
    weight: float
    stretches: tuple[Stretch, ...]

    @property
    def mu(self) -> float:
        """μ of everything released, together."""
        return together(self.stretches)


@dataclass(frozen=True)
class PairSchedules:
    """Schedules for a record at the first of two places, and its neighbour at the second."""

    places: tuple[int, int]
    stretches: tuple[Stretch, ...]

    @property
    def mu(self) -> float:
        """μ of everything released, together."""
        return together(self.stretches)


def together(stretches: tuple[Stretch, ...]) -> float:
    """Return μ of all stretches together, rounded up."""
    return up(math.hypot(*(stretch.mu for stretch in stretches)), operations=5)


@dataclass(frozen=True, eq=False)
class Evidence:
    """A proved notion. `ladder`: the guarantees of which it is the best. `schedules`: the proof for each position.

    `at_delta`: the best evidence for one log δ, if that depends on δ.
    `pairs`: if the position is hidden, the proof for a record and its neighbour at different positions.
    """

    notion: Notion
    ladder: Ladder | None = None
    schedules: tuple[RecordSchedules, ...] = ()
    pairs: tuple[PairSchedules, ...] = ()
    about: About = About.LAST_ITERATE
    prepaying: Prepaying | None = None
    at_delta: Callable[[float], Evidence] | None = None
    _proved: Evidence | None = None

    def __repr__(self) -> str:
        return summary(self, repr(self.notion), f"about {self.about.value}", self.grade.value)

    @property
    def grade(self) -> Grade:
        return Grade.REPLAYED if self.schedules or self.at_delta else Grade.RECOMPUTED

    def for_delta(self, delta: float) -> Evidence:
        """Return the evidence that proves it best for this δ."""
        return self if self.at_delta is None else self.at_delta(math.log(delta))

    def after(self, mu: float) -> Evidence:
        """Return the evidence together with what was released before, which is mu-GDP."""
        if mu == 0:
            return self
        at_delta, ladder = self.at_delta, None if self.ladder is None else self.ladder._after(mu)
        return replace(
            self,
            notion=self.notion.after(mu) if ladder is None or self.notion is not self.ladder else ladder,
            ladder=ladder,
            at_delta=None if at_delta is None else lambda log_delta: at_delta(log_delta).after(mu),
        )

    def with_caveats(self, caveats: tuple[Fact, ...]) -> Evidence:
        """The evidence about an execution with these defects: its curves are marked with them."""
        if not caveats:
            return self
        at_delta = self.at_delta
        return replace(
            self,
            notion=with_caveats(self.notion, caveats),
            ladder=None,
            at_delta=None if at_delta is None else lambda log_delta: at_delta(log_delta).with_caveats(caveats),
            _proved=self,
        )

    @property
    def _without_caveats(self) -> Evidence:
        """What the theorem proves of the run, for numbers and for certificates that state the caveats."""
        return self if self._proved is None else self._proved
