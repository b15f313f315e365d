"""A claim with everything that is needed to check it: the run, what it promises, and what a search has found.

A certificate is of one of two grades. *Replayed*: it holds the steps and schedules of payments, and the kernel goes through
them; `verify` adds that the steps are those of the run. *Recomputed*: `verify` evaluates the theorem it names again from the
run; of a theorem whose bound is the best of many, the one that the certificate names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from lastiterate.certificate.claims import at_their_places, checked_group, promises, released
from lastiterate.certificate.codec import read_claim, read_proof
from lastiterate.certificate.replay import CHOSEN, proof_of, statement
from lastiterate.certificate.verdict import Verdict, rejected, told_by
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    InvalidInput,
    LastIterateError,
    checked_count,
    checked_number,
    must_be,
)
from lastiterate.facts import Fact, fact_from_json, facts_from_json, facts_to_json
from lastiterate.kernel.check import Proved, check, proved
from lastiterate.kernel.steps import Refused
from lastiterate.numerics.ratio_sum import forget_drawn
from lastiterate.runs.files import run_from_dict, run_to_dict
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import ALL, checked_theorems, of_the_library, own_assumption
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
    """The certificate of a guarantee, as a dictionary that JSON can hold; for the records of one person, if named.

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
    """The grade, the claim, and what a search has found."""
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
    """ε by the theorem alone, whatever was asked before: what was drawn for other questions would serve this one as well."""
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
    """This ε, or one that is larger by as little as the kernel asks for: it rounds in ways of its own."""
    more = 10.0**-_DIGITS
    while not found.implies(epsilon, delta):
        epsilon, more = epsilon * (1 + more) + 1e-300, 2 * more
    return epsilon


def verify(
    certificate: dict[str, Any] | str, run: Run | None = None, theorems: Iterable[Theorem] | None = None
) -> Verdict:
    """Check a certificate (a dictionary, or its JSON), a trained model that holds one, or the HTML of a report.

    A report must agree with the certificate in it. With `run`, the certificate must also be about that run. A certificate by
    a theorem that is not part of the library needs `theorems`, such as [*li.theorems.CATALOGUE, MINE]; the verdict then
    assumes it.
    """
    return verified(certificate, run, "the run", checked_theorems(theorems))


def verified(
    certificate: dict[str, Any] | str, run: Run | None, called: str, theorems: tuple[Theorem, ...] = ALL
) -> Verdict:
    """The same, with a name for the run."""
    kind = "report page" if isinstance(certificate, str) and is_page(certificate) else "certificate"
    try:
        if kind == "report page":
            return _checked_page(str(certificate), run, called)
        content = json.loads(certificate) if isinstance(certificate, str) else certificate
        return checked(content, run, called, theorems)
    except Refused as error:
        return rejected(str(error))
    except KeyError as error:
        return rejected("entry_missing", kind=kind, entry=error.args[0])
    except (LastIterateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        return rejected("unreadable", kind=kind, because=told_by(error))
    except (RecursionError, MemoryError):
        return rejected("too_deep", kind=kind)


def is_page(text: str) -> bool:
    """Whether it is HTML, as a report is, and no JSON."""
    return text.lstrip("\ufeff \r\n\t").startswith("<")


def _checked_page(text: str, run: Run | None, called: str) -> Verdict:
    """Loaded here: a page is made of certificates, which are verified by this very module."""
    from lastiterate.report.page import checked_page

    return checked_page(text, run, called)


def checked(
    content: dict[str, Any],
    run: Run | None = None,
    called: str = "the run",
    theorems: tuple[Theorem, ...] = ALL,
) -> Verdict:
    """The verdict, or an exception that says what is missing or cannot be read."""
    if "format" not in content and "certificate" in content:  # a trained model, as `lastiterate train` writes it
        if otherwise := misreported(content.get("report"), content["certificate"]):
            return otherwise
        content = content["certificate"]
    if content["format"] == BUDGET_FORMAT:
        return _checked_budget(content, run)
    if content["format"] == FORGETTING_FORMAT:
        return _checked_forgetting(content, run)
    if content["format"] == SELECTION_FORMAT:
        return _checked_selection(content, run, called)
    if content["format"] != FORMAT:
        return rejected("certificate_format", format=FORMAT)
    claim, grade = content["claim"], content["grade"]
    if grade not in GRADES:
        return rejected("grade_unknown", grades=GRADES)
    if caveats := facts_from_json(content["caveats"]):
        return rejected(caveats[0])
    described = run_from_dict(content["run"])
    if run is not None and described != run:
        return rejected("another_run", differences=differences(content["run"], run_to_dict(run)), called=called)
    members = _members(content, described)
    unit = described.adjacency.unit(described.user_records, members)
    if fact_from_json(claim["unit"]) != unit:
        return rejected("other_neighbours", unit=unit)
    process = at_their_places(released(described.process, claim["releases"]), members)
    assumptions = facts_from_json(content["assumptions"])
    if otherwise := other_assumptions(assumptions, promises(described, process.releases, members)):
        return otherwise
    given = {one.name: one for one in theorems} | _THEOREMS
    if content["theorem"] not in given:
        return rejected("theorem_unknown", theorem=content["theorem"])
    theorem = given[content["theorem"]]
    if own := theorem.name not in _THEOREMS:
        assumptions = tuple(dict.fromkeys([*assumptions, own_assumption(theorem)]))
    # Whether an average may be taken, or a run gone through, is the theorem's business, not the claimant's.
    if failed := next(theorem.failing(process), None):
        return rejected(failed[1])
    if unproved := (not_replayed if grade == Grade.REPLAYED.value else not_recomputed)(theorem, process, content):
        return unproved
    delta = checked_number("delta", claim["delta"], INSIDE_UNIT)
    said = unit, "" if described.released.plain else described.released.called, theorem.name if own else ""
    return Verdict(True, claimed_epsilon(claim), delta, len(process), process.releases, None, assumptions, grade, *said)


def _members(content: dict[str, Any], run: Run) -> tuple[int, ...]:
    """The records of the person whom it is for, where they are named: as many as the run says."""
    unit = dict(fact_from_json(content["claim"]["unit"]).values)
    members = checked_group(run, unit["records"])  # type: ignore[arg-type]
    if members and len(members) != run.user_records:
        raise InvalidInput("group_size", field="group", user_records=run.user_records, got=f"{len(members)}")
    return members


def other_assumptions(stated: tuple[Fact, ...], needed: tuple[Fact, ...], of: str = "run") -> Verdict | None:
    """Which assumption is missing or is another one; None if all are stated, in their order, and perhaps more.

    To assume more is to claim less. Who stands for an assumption is the statement of whoever wrote the certificate.
    """
    for place, one in enumerate(needed):
        if place >= len(stated) or stated[place].stated != one:
            return rejected("other_assumptions", of=of, number=place + 1, needed=one)
    return None


def proved_by(certificate: dict[str, Any]) -> Notion:
    """The whole curve that is behind an accepted certificate, where its claim is one point of it."""
    claim = certificate["claim"]
    described = run_from_dict(certificate["run"])
    if claim["mu"] is not None:
        return GaussianDP(claim["mu"], described.adjacency)
    process = at_their_places(released(described.process, claim["releases"]), _members(certificate, described))
    return _THEOREMS[certificate["theorem"]].notion(process)


def _checked_budget(content: dict[str, Any], run: Run | None) -> Verdict:
    """Loaded here: entries of a budget have certificates of their own, which are verified by this very module."""
    from lastiterate.budget.certificate import verify_budget

    return verify_budget(content) if run is None else rejected("budget_not_run")


def _checked_forgetting(content: dict[str, Any], run: Run | None) -> Verdict:
    """Loaded here: it is built on this module."""
    from lastiterate.forgetting.certificate import verify_forgetting

    return verify_forgetting(content, run)


def _checked_selection(content: dict[str, Any], run: Run | None, called: str) -> Verdict:
    """Loaded here: its settings have certificates of their own, which are verified by this very module."""
    from lastiterate.selection.certificate import verify_selection

    return verify_selection(content, run, called)


def claimed_epsilon(claim: dict[str, Any]) -> float:
    """JSON knows no infinity; null stands for it."""
    return math.inf if claim["epsilon"] is None else checked_number("epsilon", claim["epsilon"], NON_NEGATIVE)


def not_replayed(theorem: Theorem, process: Process, content: dict[str, Any]) -> Verdict | None:
    """Why the schedules do not prove the claim for this process."""
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


def not_recomputed(theorem: Theorem, process: Process, content: dict[str, Any]) -> Verdict | None:
    """Why the theorem does not say what is claimed."""
    claim = content["claim"]
    if claim["mu"] is not None:
        return rejected("mu_not_replayed")
    rung = _checked_rung(content["rung"], process) if "rung" in content else None
    epsilon, claimed = recomputed(theorem, process, rung, claim["delta"]), claimed_epsilon(claim)
    return None if epsilon <= claimed else rejected("claims_too_much", claimed=claimed, proved=epsilon)


def _checked_rung(value: Any, process: Process) -> int:
    rung = checked_count("rung", value)
    if rung > len(process):
        raise must_be("rung", f"at most steps = {len(process)}", f"{rung}")
    return rung


def rounded_up(value: float) -> float:
    """To twelve digits: other machines may differ in the last bits."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float(f"{value + unit:.{_DIGITS}g}")


# Whether the report beside a certificate, as in the JSON of a trained model, agrees with it.


_NEAR = 1e-6  # of ε: curves that were drawn for other questions are as sharp as that
_OF_THE_CLAIM = ("delta", "unit", "releases")
_OF_THE_CERTIFICATE = ("theorem", "assumptions", "caveats", "run")


def misreported(report: Any, certificate: dict[str, Any]) -> Verdict | None:
    """Which entries differ; nothing if none does, or if there is no report."""
    if report is None:
        return None
    claim = certificate["claim"]
    if not math.isclose(_finite(report["epsilon"]), _finite(claim["epsilon"]), rel_tol=_NEAR):
        return rejected("report_epsilon_differs", reported=report["epsilon"], certified=claim["epsilon"])
    said = {name: report[name] for name in (*_OF_THE_CLAIM, *_OF_THE_CERTIFICATE)}
    meant = {name: claim[name] for name in _OF_THE_CLAIM} | {name: certificate[name] for name in _OF_THE_CERTIFICATE}
    found = differences(said, meant)
    return rejected("report_differs", differences=found) if found else None


def _finite(epsilon: float | None) -> float:
    """A certificate says null for infinity."""
    return math.inf if epsilon is None else float(epsilon)


# In which entries two plain values differ.


_FIRST = 4  # one more than are told

Difference = tuple[str, Any, Any]


class _Absent:
    """Stands where one of them has nothing."""

    def __str__(self) -> str:
        return "not given"


_ABSENT = _Absent()


def differences(one: Any, two: Any, path: str = "") -> tuple[Difference, ...]:
    """The dotted name of each entry, and what stands there, of the first few; lists are entries as a whole."""
    return tuple(islice(_differences(one, two, path), _FIRST))


def _differences(one: Any, two: Any, path: str) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(two, dict):
        for name in dict.fromkeys([*one, *two]):
            inside = f"{path}.{name}" if path else str(name)
            yield from _differences(one.get(name, _ABSENT), two.get(name, _ABSENT), inside)
    elif one != two:
        yield path, one, two
