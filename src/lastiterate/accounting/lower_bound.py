"""What no valid guarantee for a run can be below."""

from __future__ import annotations

from collections.abc import Iterable

from lastiterate.accounting.groups import at_their_places, checked_group, run_for
from lastiterate.accounting.releases import released
from lastiterate.auditing.lower import LowerBound, named_instance, worst_instance
from lastiterate.errors import INSIDE_UNIT, checked_number
from lastiterate.runs.run import Run, checked_run


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
