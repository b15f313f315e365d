"""The certificate of a plan to forget: the run, the requests, the further steps, and schedules that the kernel replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lastiterate.certificate.certificate import (
    FORGETTING_FORMAT,
    GRADES,
    claimed_epsilon,
    found_by,
    other_assumptions,
    unproved,
)
from lastiterate.certificate.claims import checked_releases
from lastiterate.certificate.verdict import Request, Verdict, rejected
from lastiterate.errors import INSIDE_UNIT, InvalidInput, checked_count, checked_number, worded
from lastiterate.facts import Fact, fact_from_json, facts_from_json, facts_to_json
from lastiterate.forgetting.proofs import forgetting_promises, forgetting_unit, process_for, theorems_for
from lastiterate.forgetting.requests import Requests
from lastiterate.runs.files import run_from_dict, run_to_dict
from lastiterate.runs.run import Run
from lastiterate.theorems.evidence import Grade
from lastiterate.theorems.theorem import Guarantee

_MOST_REQUESTS = 100_000
_FLAGS = "adaptive", "separate"


@dataclass(frozen=True, repr=False)
class ForgettingVerdict(Verdict):
    """The verdict on a plan: that `removed` records are forgotten after `further` steps, of `steps` in all."""

    removed: int = 0
    further: int = 0

    def __str__(self) -> str:
        return worded("accepted_forgetting", **self._named("steps", "further", "releases", "grade"))


def forgetting_certificate(
    run: Run,
    guarantee: Guarantee,
    delta: float,
    requests: Requests,
    caveats: tuple[Fact, ...] = (),
) -> dict[str, Any]:
    """Return the certificate of what is claimed after the last of these requests."""
    process = process_for(guarantee.theorem, run, requests)
    found = found_by(process, guarantee, delta, forgetting_unit(run, requests))
    about: dict[str, Any] = {"removals": list(requests.removals), "steps": list(requests.steps)}
    about |= {name: True for name in _FLAGS if getattr(requests, name)}
    return {
        "format": FORGETTING_FORMAT,
        **found,
        "claim": {**found["claim"], **about},
        "assumptions": facts_to_json(forgetting_promises(run, requests)),
        "caveats": facts_to_json(caveats),
        "run": run_to_dict(run),
    }


def check_forgetting_certificate(content: dict[str, Any], question: Request) -> Verdict:
    """Check the certificate of a plan to forget: the run and the requests make the steps, and a theorem proves the claim."""
    claim, described = content["claim"], run_from_dict(content["run"])
    if caveats := facts_from_json(content["caveats"]):
        return rejected(caveats[0])
    if question.run is not None and described != question.run:
        return rejected("another_run")
    counts = _counts("removals", claim["removals"], 1), _counts("steps", claim["steps"], 0)
    requests = Requests(*counts, checked_releases(claim["releases"]), *(_flag(name, claim) for name in _FLAGS))
    grade = content["grade"]
    theorem = theorems_for(requests).get(content["theorem"])
    if theorem is None or grade not in GRADES or (grade == Grade.REPLAYED.value and theorem.places is None):
        return rejected("theorem_not_for_claim", theorem=content["theorem"])
    if len(requests.removals) != len(requests.steps):
        return rejected("steps_not_per_request")
    if fact_from_json(claim["unit"]) != (unit := forgetting_unit(described, requests)):
        return rejected("other_unit", unit=unit)
    process = process_for(theorem, described, requests)
    if tuple(claim["releases"]) != process.releases:
        return rejected("releases_after_end")
    assumptions = facts_from_json(content["assumptions"])
    if otherwise := other_assumptions(assumptions, forgetting_promises(described, requests)):
        return otherwise
    if otherwise := unproved(theorem, process, content):
        return otherwise
    return ForgettingVerdict(
        True,
        claimed_epsilon(claim),
        checked_number("delta", claim["delta"], INSIDE_UNIT),
        described.steps + sum(requests.steps),
        process.releases,
        assumptions=assumptions,
        grade=grade,
        unit=unit,
        removed=requests.records,
        further=sum(requests.steps),
    )


def _flag(name: str, claim: dict[str, Any]) -> bool:
    if claim.get(name, True) is not True:
        raise InvalidInput("flag_not_true", field=name)
    return name in claim


def _counts(name: str, given: Any, least: int) -> tuple[int, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_REQUESTS:
        raise InvalidInput("not_per_request", field=name)
    return tuple(checked_count(name, one, least=least) for one in given)
