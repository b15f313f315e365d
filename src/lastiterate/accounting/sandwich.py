"""The lower bound of a run next to its upper bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lastiterate.accounting.groups import at_their_places, checked_group, run_for
from lastiterate.accounting.releases import released
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.auditing.lower import LowerBound, named_instance, worst_instance
from lastiterate.digits import above, below
from lastiterate.display import summary
from lastiterate.errors import INSIDE_UNIT, checked_number, worded


def lower_bound(run: Run, delta: float, releases: Iterable[int] = (), group: Iterable[int] = ()) -> LowerBound:
    """A lower bound on ε at `delta`: no valid guarantee for this run can be smaller.

    It is the ε of the worst instance found among those that the run's assumptions allow: any loss with the stated
    smoothness, convexity and gradient bounds, any data, any first iterate. `releases`: the steps after which a checkpoint is
    released as well. `group`: the records of one person, all of which may differ.
    """
    target, members = checked_number("delta", delta, INSIDE_UNIT), checked_group(checked_run(run), group)
    return lower_bound_for(run_for(run, members), target, releases, members)


def lower_bound_for(run: Run, delta: float, releases: Iterable[int], members: tuple[int, ...]) -> LowerBound:
    """The same for a run that knows how many records these are."""
    process = at_their_places(released(run.process, releases), members)
    if process.members:
        return named_instance(run, delta, process.releases, process.members)
    return worst_instance(run, delta, process.releases)


@dataclass(frozen=True)
class Sandwich:
    """lower.epsilon ≤ the true ε ≤ upper."""

    lower: LowerBound
    upper: float

    @property
    def ratio(self) -> float:
        """upper/lower: 1 if the bound is exact, ∞ if no lower bound is known."""
        if self.upper == 0:
            return 1.0
        return self.upper / self.lower.epsilon if self.lower.epsilon > 0 else math.inf

    def __repr__(self) -> str:
        return summary(
            self, f"lower={below(self.lower.epsilon)}", f"upper={above(self.upper)}", str(self.lower.instance)
        )

    def __str__(self) -> str:
        values = {"lower": self.lower.epsilon, "upper": self.upper, "instance": self.lower.instance}
        return worded("sandwich", **values, ratio=self.ratio)
