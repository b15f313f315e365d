"""The certificate of a run: the claim, the run, what it promises and what a search has found; and the check of it.

A certificate is of one of two grades. *Replayed*: it holds the steps and schedules of payments, and the kernel goes through
them; `verify` adds that the steps are those of the run. *Recomputed*: `verify` evaluates the theorem it names again from the
run; of a theorem whose bound is the best of many, the one that the certificate names.
"""

from __future__ import annotations

import math
from typing import Any

from lastiterate.certificate.claims import at_their_places, checked_group, promises, released
from lastiterate.certificate.codec import read_claim, read_proof
from lastiterate.certificate.replay import CHOSEN, proof_of, statement
from lastiterate.certificate.verdict import Request, Verdict, differences, rejected
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    InvalidInput,
    checked_count,
    checked_number,
    must_be,
)
from lastiterate.facts import Fact, fact_from_json, facts_from_json, facts_to_json
from lastiterate.kernel.check import Proved, check, proved
from lastiterate.numerics.ratio_sum import forget_drawn
from lastiterate.runs.files import run_from_dict, run_to_dict
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import ALL, of_the_library, own_assumption
from lastiterate.theorems.evidence import Grade
from lastiterate.theorems.theorem import Guarantee, Theorem

FORMAT = "lastiterate certificate 1"
BUDGET_FORMAT = "lastiterate budget certificate 1"
FORGETTING_FORMAT = "lastiterate forgetting certificate 1"
SELECTION_FORMAT = "lastiterate selection certificate 1"
GRADES = tuple(one.value for one in Grade)
_DIGITS = 12
_THEOREMS = {theorem.name: theorem for theorem in ALL}


def certificate_of(
    run: Run,
    process: Process,
    guarantee: Guarantee,
    delta: float,
    caveats: tuple[Fact, ...] = (),
    assumptions: tuple[Fact, ...] | None = None,
    members: tuple[int, ...] = (),
) -> dict[str, Any]:
    """Return the certificate of a guarantee as a JSON-ready dictionary; for the records of one person, if named.

    `assumptions`: those of the run, with who stands for each, and those of its execution after them.
    """
    return {
        "format": FORMAT,
        **found_by(process, guarantee, delta, run.adjacency.unit(run.user_records, members)),
        "assumptions": facts_to_json(promises(run, process.releases, members) if assumptions is None else assumptions),
        "caveats": facts_to_json(caveats),
        "run": run_to_dict(run),
    }


def found_by(process: Process, guarantee: Guarantee, delta: float, unit: Fact) -> dict[str, Any]:
    """Return the grade, the theorem, the claim, and what a search has found: schedules, or the best rung."""
    whole, process = process, guarantee.theorem.seen(process)
    theorem, least = guarantee.theorem, guarantee.epsilon(delta)
    evidence = guarantee.evidence._without_caveats.for_delta(delta)
    epsilon = rounded_up(least)
    replayed = theorem.places is not None and bool(evidence.schedules) and of_the_library(theorem)
    grade = evidence.grade if of_the_library(theorem) else Grade.RECOMPUTED  # by those who have the theorem
    named = {"grade": grade.value, "theorem": theorem.name}
    if replayed and theorem.places is not None:
        proof = proof_of(process, theorem.places(process), evidence, least)
        found = proved(read_proof(proof))
        mu = None if found.averaged or found.slack else rounded_up(max(found.mus))
        return {**named, "claim": _claim(unit, process, _admitted(found, epsilon, delta), delta, mu), "proof": proof}
    searched = evidence.ladder if theorem.rung is not None else None
    rung = {} if searched is None else {"rung": searched.best_rung(math.log(delta))}
    again = recomputed(theorem, whole, rung.get("rung"), delta)
    return {**named, "claim": _claim(unit, process, rounded_up(max(least, again)), delta, None), **rung}


def recomputed(theorem: Theorem, process: Process, rung: int | None, delta: float) -> float:
    """Compute ε by the theorem alone, as a fresh start would: grids drawn for earlier questions are forgotten first."""
    forget_drawn()
    return float(theorem.rebuilt(process, rung).epsilon(delta))


def _claim(unit: Fact, process: Process, epsilon: float, delta: float, mu: float | None) -> dict[str, Any]:
    return {
        "unit": unit.to_dict(),
        "delta": delta,
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "mu": mu,
        "releases": list(process.releases),
    }


def _admitted(found: Proved, epsilon: float, delta: float) -> float:
    """Return ε, or the next larger one that the kernel accepts, which rounds in ways of its own."""
    more = 10.0**-_DIGITS
    while not found.implies(epsilon, delta):
        epsilon, more = epsilon * (1 + more) + 1e-300, 2 * more
    return epsilon


def check_run_certificate(content: dict[str, Any], question: Request) -> Verdict:
    """Check the certificate of a run: the steps are those of the run, and its theorem proves the claim."""
    claim, grade = content["claim"], content["grade"]
    if grade not in GRADES:
        return rejected("grade_unknown", grades=GRADES)
    if caveats := facts_from_json(content["caveats"]):
        return rejected(caveats[0])
    described = run_from_dict(content["run"])
    if question.run is not None and described != question.run:
        differing = differences(content["run"], run_to_dict(question.run))
        return rejected("another_run", differences=differing, called=question.called)
    members = _members(content, described)
    unit = described.adjacency.unit(described.user_records, members)
    if fact_from_json(claim["unit"]) != unit:
        return rejected("other_neighbours", unit=unit)
    process = at_their_places(released(described.process, claim["releases"]), members)
    assumptions = facts_from_json(content["assumptions"])
    if otherwise := other_assumptions(assumptions, promises(described, process.releases, members)):
        return otherwise
    given = {one.name: one for one in question.theorems} | _THEOREMS
    if content["theorem"] not in given:
        return rejected("theorem_unknown", theorem=content["theorem"])
    theorem = given[content["theorem"]]
    if own := theorem.name not in _THEOREMS:
        assumptions = tuple(dict.fromkeys([*assumptions, own_assumption(theorem)]))
    if otherwise := unproved(theorem, process, content):
        return otherwise
    delta = checked_number("delta", claim["delta"], INSIDE_UNIT)
    said = unit, "" if described.released.plain else described.released.called, theorem.name if own else ""
    return Verdict(True, claimed_epsilon(claim), delta, len(process), process.releases, None, assumptions, grade, *said)


def _members(content: dict[str, Any], run: Run) -> tuple[int, ...]:
    """Return the records of the person whom the certificate names, if it does: as many as the run says."""
    unit = dict(fact_from_json(content["claim"]["unit"]).values)
    members = checked_group(run, unit["records"])  # type: ignore[arg-type]
    if members and len(members) != run.user_records:
        raise InvalidInput("group_size", field="group", user_records=run.user_records, got=f"{len(members)}")
    return members


def other_assumptions(stated: tuple[Fact, ...], needed: tuple[Fact, ...], of: str = "run") -> Verdict | None:
    """Reject a list of assumptions that lacks a needed one, or states another in its place; more may follow.

    To assume more is to claim less. Who stands for an assumption is the statement of whoever wrote the certificate.
    """
    for place, one in enumerate(needed):
        if place >= len(stated) or stated[place].stated != one:
            return rejected("other_assumptions", of=of, number=place + 1, needed=one)
    return None


def proved_by(certificate: dict[str, Any]) -> Notion:
    """Return the whole curve that is behind an accepted certificate, of which its claim is one point."""
    claim = certificate["claim"]
    described = run_from_dict(certificate["run"])
    if claim["mu"] is not None:
        return GaussianDP(claim["mu"], described.adjacency)
    process = at_their_places(released(described.process, claim["releases"]), _members(certificate, described))
    return _THEOREMS[certificate["theorem"]].notion(process)


def claimed_epsilon(claim: dict[str, Any]) -> float:
    """Return the ε of a claim; null stands for infinity, which JSON does not know."""
    return math.inf if claim["epsilon"] is None else checked_number("epsilon", claim["epsilon"], NON_NEGATIVE)


def unproved(theorem: Theorem, process: Process, content: dict[str, Any]) -> Verdict | None:
    """Reject a claim that the theorem does not prove for this process, by the grade of its certificate.

    Whether an average may be taken, or a run gone through, is the theorem's business, not the claimant's.
    """
    if failed := next(theorem.failing(process), None):
        return rejected(failed[1])
    return (_not_replayed if content["grade"] == Grade.REPLAYED.value else _not_recomputed)(theorem, process, content)


def _not_replayed(theorem: Theorem, process: Process, content: dict[str, Any]) -> Verdict | None:
    """Reject schedules that are not about this process; the kernel raises `Refused` if they do not prove the claim."""
    process = theorem.seen(process)
    if theorem.places is None or process.group > 1:
        return rejected("nothing_to_replay", theorem=theorem.name)
    stated = statement(process, theorem.places(process), theorem.functions)
    if ("prepaid" in content["proof"]) != ("prepaid" in stated):
        return rejected("prepayment_differs")
    for name, value in stated.items():
        given = content["proof"][name]
        if name == "prepaid":
            given = {fact: entry for fact, entry in given.items() if fact not in CHOSEN}
        if given != value:
            return rejected("proof_differs", entry=name, differences=differences(given, value, name))
    check(read_proof(content["proof"]), read_claim(content["claim"]))
    return None


def _not_recomputed(theorem: Theorem, process: Process, content: dict[str, Any]) -> Verdict | None:
    """Reject a claim that is smaller than what the theorem says of this process, computed again."""
    claim = content["claim"]
    if claim["mu"] is not None:
        return rejected("mu_not_replayed")
    rung = checked_count("rung", content["rung"]) if "rung" in content else None
    if rung is not None and rung > len(process):
        raise must_be("rung", f"at most steps = {len(process)}", f"{rung}")
    epsilon, claimed = recomputed(theorem, process, rung, claim["delta"]), claimed_epsilon(claim)
    return None if epsilon <= claimed else rejected("claims_too_much", claimed=claimed, proved=epsilon)


def rounded_up(value: float) -> float:
    """Round up to twelve digits, because other machines may differ in the last bits."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float(f"{value + unit:.{_DIGITS}g}")
