"""The certificate of a forgetting: the run, the requests, the further steps, and schedules that the kernel replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lastiterate.accounting.certificate import (
    FORGETTING_FORMAT,
    Verdict,
    claimed_epsilon,
    found_by,
    not_replayed,
    rejected,
)
from lastiterate.accounting.forgetting import checked_forgetting_releases, forgetting_process
from lastiterate.accounting.forgetting_words import forgetting_promises, said_of
from lastiterate.algorithms.encode import run_from_dict, run_to_dict
from lastiterate.algorithms.process import Process
from lastiterate.algorithms.run import Run
from lastiterate.errors import INSIDE_UNIT, InvalidInput, checked_count, checked_number
from lastiterate.theorems.evidence import Grade
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee

_MOST_REQUESTS = 100_000


@dataclass(frozen=True)
class ForgettingVerdict(Verdict):
    """Of a forgetting: so many records are `removed`, and so many of the steps are `further` ones."""

    removed: int = 0
    further: int = 0

    def __str__(self) -> str:
        others = f" and those after {', '.join(map(str, self.releases))} steps" if self.releases else ""
        return (
            f"accepted: epsilon = {self.epsilon:.9g} at delta = {self.delta:g}, {self.adjacency} in {self.further} further "
            f"steps of {self.steps}, the last iterate{others} released; replayed by the kernel"
        )


def forgetting_certificate(
    run: Run,
    process: Process,
    guarantee: Guarantee,
    delta: float,
    requests: tuple[tuple[int, ...], tuple[int, ...]],
    caveats: tuple[str, ...] = (),
) -> dict[str, Any]:
    """`requests`: how many records each removes, and how many steps follow it."""
    removals, steps = requests
    found = found_by(process, guarantee, delta, said_of(run, sum(removals)))
    about = {"removals": list(removals), "steps": list(steps)}
    return {
        "format": FORGETTING_FORMAT,
        **found,
        "claim": {**found["claim"], **about},
        "assumptions": forgetting_promises(run, removals, steps, process.releases),
        "caveats": list(caveats),
        "run": run_to_dict(run),
    }


def verify_forgetting(content: dict[str, Any], run: Run | None) -> Verdict:
    """The run and the requests make the steps; the kernel replays the schedules."""
    claim, described = content["claim"], run_from_dict(content["run"])
    if content["caveats"]:
        return rejected(str(content["caveats"][0]))
    if run is not None and described != run:
        return rejected("it is about another run")
    if content["grade"] != Grade.REPLAYED.value or content["theorem"] != SHIFT_ENGINE.name:
        return rejected(f"a forgetting has to be replayed, by {SHIFT_ENGINE.name}")
    removals, steps = _counts(claim["removals"], 1), _counts(claim["steps"], 0)
    if len(removals) != len(steps):
        return rejected("it has not one number of steps for each request")
    if claim["adjacency"] != said_of(described, sum(removals)):
        return rejected(f"it must say: {said_of(described, sum(removals))}")
    releases = checked_forgetting_releases(described, claim["releases"])
    process = forgetting_process(described, removals, steps, releases)
    assumptions = forgetting_promises(described, removals, steps, releases)
    if content["assumptions"] != assumptions:
        return rejected("its assumptions are not those of its run")
    if failed := next(SHIFT_ENGINE.failing(process), None):
        return rejected(failed[1])
    if reason := not_replayed(SHIFT_ENGINE, process, content):
        return rejected(reason)
    return ForgettingVerdict(
        True,
        claimed_epsilon(claim),
        checked_number("delta", claim["delta"], INSIDE_UNIT),
        len(process),
        process.releases,
        assumptions=tuple(assumptions),
        grade=Grade.REPLAYED.value,
        adjacency=claim["adjacency"],
        removed=sum(removals),
        further=sum(steps),
    )


def _counts(given: Any, least: int) -> tuple[int, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_REQUESTS:
        raise InvalidInput("removals and steps must be lists with an entry for each request.")
    return tuple(checked_count("removals", one, least=least) for one in given)
