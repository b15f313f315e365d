"""The certificate of a forgetting: the run, the requests, the further steps, and schedules that the kernel replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lastiterate.accounting.certificate import (
    FORGETTING_FORMAT,
    claimed_epsilon,
    found_by,
    not_recomputed,
    not_replayed,
)
from lastiterate.accounting.forgetting import Requests
from lastiterate.accounting.forgetting_proofs import process_for, theorems_for
from lastiterate.accounting.forgetting_words import forgetting_promises, said_of
from lastiterate.accounting.releases import checked_releases
from lastiterate.accounting.verdict import HOW, Verdict, rejected
from lastiterate.algorithms.encode import run_from_dict, run_to_dict
from lastiterate.algorithms.run import Run
from lastiterate.digits import above
from lastiterate.errors import INSIDE_UNIT, InvalidInput, checked_count, checked_number
from lastiterate.theorems.evidence import Grade
from lastiterate.theorems.theorem import Guarantee

_MOST_REQUESTS = 100_000
_FLAGS = "adaptive", "separate"


@dataclass(frozen=True, repr=False)
class ForgettingVerdict(Verdict):
    """Whether a certificate proves that `removed` records are forgotten after `further` steps, of `steps` in all."""

    removed: int = 0
    further: int = 0

    def __str__(self) -> str:
        others = f" and those after {', '.join(map(str, self.releases))} steps" if self.releases else ""
        return (
            f"accepted: epsilon = {above(self.epsilon, 9)} at delta = {self.delta:g}, {self.adjacency}, "
            f"by {self.further} further steps after {self.steps - self.further}, the last "
            f"iterate{others} released; {HOW[self.grade]}"
        )


def forgetting_certificate(
    run: Run,
    guarantee: Guarantee,
    delta: float,
    requests: Requests,
    caveats: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The proof of what is claimed after the last of these requests."""
    process = process_for(guarantee.theorem, run, requests)
    found = found_by(process, guarantee, delta, said_of(run, requests))
    about: dict[str, Any] = {"removals": list(requests.removals), "steps": list(requests.steps)}
    about |= {name: True for name in _FLAGS if getattr(requests, name)}
    return {
        "format": FORGETTING_FORMAT,
        **found,
        "claim": {**found["claim"], **about},
        "assumptions": forgetting_promises(run, requests),
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
    requests, grade = _requests(claim), content["grade"]
    theorem = theorems_for(requests).get(content["theorem"])
    if theorem is None or grade not in HOW or (grade == Grade.REPLAYED.value and theorem.places is None):
        return rejected(f"{content['theorem']!s:.60} does not prove such a claim, or not by this grade")
    if len(requests.removals) != len(requests.steps):
        return rejected("it has not one number of steps for each request")
    if claim["adjacency"] != said_of(described, requests):
        return rejected(f"it must say: {said_of(described, requests)}")
    process = process_for(theorem, described, requests)
    if tuple(claim["releases"]) != process.releases:
        return rejected("its releases are not all before its last step")
    assumptions = forgetting_promises(described, requests)
    if content["assumptions"] != assumptions:
        return rejected("its assumptions are not those of its run")
    if failed := next(theorem.failing(process), None):
        return rejected(str(failed[1]))
    if reason := (not_replayed if grade == Grade.REPLAYED.value else not_recomputed)(theorem, process, content):
        return rejected(reason)
    return ForgettingVerdict(
        True,
        claimed_epsilon(claim),
        checked_number("delta", claim["delta"], INSIDE_UNIT),
        described.steps + sum(requests.steps),
        process.releases,
        assumptions=tuple(assumptions),
        grade=grade,
        adjacency=claim["adjacency"],
        removed=requests.records,
        further=sum(requests.steps),
    )


def _requests(claim: dict[str, Any]) -> Requests:
    removals, steps = _counts("removals", claim["removals"], 1), _counts("steps", claim["steps"], 0)
    return Requests(removals, steps, checked_releases(claim["releases"]), *(_flag(name, claim) for name in _FLAGS))


def _flag(name: str, claim: dict[str, Any]) -> bool:
    if claim.get(name, True) is not True:
        raise InvalidInput(f"{name} must be true, or be left out.")
    return name in claim


def _counts(name: str, given: Any, least: int) -> tuple[int, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_REQUESTS:
        raise InvalidInput(f"{name} must be a list with an entry for each request.")
    return tuple(checked_count(name, one, least=least) for one in given)
