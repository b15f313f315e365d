"""What a forgetting means, and what its owner has to stand for, in plain words."""

from __future__ import annotations

from lastiterate.accounting.describe import promises
from lastiterate.algorithms.run import Run

_ASKED = (
    "Which records are removed, and when, was not decided by looking at models or at anything else that was computed with "
    "the noise of this run."
)
_GONE = (
    "From its request on a removed record is used by no step; whoever trains without it does so from the same start."
)


def compared(run: Run, removals: tuple[int, ...], steps: tuple[int, ...]) -> str:
    """Which two things nobody can tell apart."""
    count, more = sum(removals), sum(steps)
    which = "the removed record" if count == 1 else f"the {count} removed records"
    without = (
        f"other records in the place of {which}, the same ones that the further steps have"
        if run.adjacency.replaces
        else f"{which} contributing nothing: no gradient, the slots stay, and sums are divided by what they were"
    )
    return (
        f"Compared are the model after {run.steps} steps of training and {more} further ones, and the model of a run of "
        f"{run.steps + more} steps with the same start and settings, {without}."
    )


def forgetting_promises(
    run: Run, removals: tuple[int, ...], steps: tuple[int, ...], releases: tuple[int, ...]
) -> list[str]:
    """What no program can check. The first says what is compared, in place of what neighbours are."""
    whole = run.continued(sum(steps))
    kept = tuple(place for place in releases if place < whole.steps)
    return [compared(run, removals, steps), *promises(whole, kept)[1:], _GONE, _ASKED]


def said_of(run: Run, count: int) -> str:
    """In place of an adjacency, which it is not: nobody may take it for a guarantee of privacy."""
    records = "one record" if count == 1 else f"{count} records"
    return f"{records} forgotten ({'replaced by others' if run.adjacency.replaces else 'left out'})"
