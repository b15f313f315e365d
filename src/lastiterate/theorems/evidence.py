"""What a theorem returns: what it proves, of what, and what a certificate has to hold so that it can be found again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from lastiterate.errors import Unavailable
from lastiterate.numerics.rounding import up
from lastiterate.privacy.ladder import Ladder
from lastiterate.privacy.notion import Notion
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
class Stretch:
    """Between two releases: the schedule and the μ it certifies; no schedule where the record is absent."""

    mu: float
    schedule: Schedule | None


@dataclass(frozen=True)
class RecordSchedules:
    """For a record whose turn is at this place: its stretches, and how likely that place is."""

    place: int
    weight: float
    stretches: tuple[Stretch, ...]

    @property
    def mu(self) -> float:
        """Everything released, together."""
        return together(self.stretches)


@dataclass(frozen=True)
class PairSchedules:
    """For a record at the first of two places, and its neighbour at the second."""

    places: tuple[int, int]
    stretches: tuple[Stretch, ...]

    @property
    def mu(self) -> float:
        """Everything released, together."""
        return together(self.stretches)


def together(stretches: tuple[Stretch, ...]) -> float:
    """μ of all of them, rounded up."""
    return up(math.hypot(*(stretch.mu for stretch in stretches)), operations=5)


@dataclass(frozen=True, eq=False)
class Evidence:
    """A proved notion. `ladder`: the guarantees of which it is the best. `schedules`: what proves it, place by place.

    `pairs`: where the place is hidden, for a record and its neighbour at different places.
    """

    notion: Notion
    ladder: Ladder | None = None
    schedules: tuple[RecordSchedules, ...] = ()
    pairs: tuple[PairSchedules, ...] = ()
    about: About = About.LAST_ITERATE

    @property
    def grade(self) -> Grade:
        return Grade.REPLAYED if self.schedules else Grade.RECOMPUTED
