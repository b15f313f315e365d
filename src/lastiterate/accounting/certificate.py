"""A claim with everything that is needed to check it: the run, the process, and what a search has found.

`verify` rebuilds the process from the run, and compares the claim with what it finds itself: it prices schedules with the
trusted `certify`; of a theorem whose bound is the best of many, it rebuilds the one that the certificate names.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lastiterate.accounting.describe import promises
from lastiterate.accounting.releases import released
from lastiterate.accounting.sequences import packed, unpacked
from lastiterate.algorithms.encode import run_from_dict, run_to_dict
from lastiterate.algorithms.per_step import is_constant
from lastiterate.algorithms.process import Process
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput, LastIterateError, checked_count
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.displaced import as_computed
from lastiterate.privacy.notion import Notion
from lastiterate.shift.certify import certify
from lastiterate.shift.schedule import payments
from lastiterate.shift.steps import Counts, Schedule, Steps
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.places import places_of
from lastiterate.theorems.proof import Part, Proof, RecordProof
from lastiterate.theorems.shift_engine import RANDOM_ORDER, SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee

FORMAT = "lastiterate certificate 2"
_ADJACENCY = "replace one record"
_DIGITS = 12
_BY_RUNG = {theorem.name: theorem for theorem in CATALOGUE if theorem.rung is not None}
_PROCESS_FIELDS = ("sensitivity", "noise", "lipschitz", "drift", "retain", "sampled")


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate proves its claim: what is claimed, of which releases, under which assumptions; or why not."""

    accepted: bool
    epsilon: float = math.inf
    delta: float = 1.0
    steps: int = 0
    releases: tuple[int, ...] = ()
    reason: str = ""
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.accepted:
            return f"rejected: {self.reason}"
        others = f" and those after {', '.join(map(str, self.releases))} steps" if self.releases else " alone"
        return (
            f"accepted: epsilon = {self.epsilon:.9g} at delta = {self.delta:g}, {_ADJACENCY}, "
            f"the last of {self.steps} iterates{others} released"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON could hold it."""
        lists = {"releases": list(self.releases), "assumptions": list(self.assumptions)}
        return {**asdict(self), "adjacency": _ADJACENCY, **lists}


def _rejected(reason: str) -> Verdict:
    return Verdict(False, reason=reason)


def certificate_of(
    run: Run, process: Process, guarantee: Guarantee, delta: float, caveats: tuple[str, ...] = ()
) -> dict[str, Any] | None:
    """The certificate of a guarantee, as a dictionary that JSON can hold; None if nothing in it can be replayed."""
    if guarantee.proof is not None:
        order = "averaged" if guarantee.proof.averaged else "worst"
        found: dict[str, Any] = {"schedules": [_record_to_dict(record) for record in guarantee.proof.records]}
    elif guarantee.ladder is not None:
        order = "worst"
        found = {"theorem": guarantee.theorem.name, "rung": guarantee.ladder.best_rung(math.log(delta))}
    else:
        return None
    return {
        "format": FORMAT,
        "claim": {
            "adjacency": _ADJACENCY,
            "delta": delta,
            "epsilon": _rounded_up(guarantee.epsilon(delta)),
            "releases": list(process.releases),
            "order": order,
        },
        "assumptions": promises(run, process.releases),
        "caveats": list(caveats),
        "run": run_to_dict(run),
        "process": {
            "steps": len(process),
            "diameter": process.diameter if math.isfinite(process.diameter) else None,
            **{name: packed(getattr(process, name), process.batches.per_epoch) for name in _PROCESS_FIELDS},
        },
        **found,
    }


def verify(certificate: dict[str, Any] | str | None, run: Run | None = None) -> Verdict:
    """Replay a certificate (a dictionary, or its JSON). With `run`, it must also be about that very run."""
    if certificate is None:
        return _rejected("there is no certificate: the best guarantee is a formula, with nothing to replay")
    try:
        content = json.loads(certificate) if isinstance(certificate, str) else certificate
        return _checked(content, run)
    except KeyError as error:
        return _rejected(f"it is no certificate: {error.args[0]} is missing")
    except (LastIterateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        return _rejected(f"it is no certificate: {error}")
    except (RecursionError, MemoryError):
        return _rejected("it is no certificate: it is too large or too deep")


def _checked(content: dict[str, Any], run: Run | None) -> Verdict:
    claim = content["claim"]
    if content["format"] != FORMAT or claim["adjacency"] != _ADJACENCY or claim["order"] not in ("averaged", "worst"):
        return _rejected(f"it is not a {FORMAT} for {_ADJACENCY}")
    if content["caveats"]:
        return _rejected(str(content["caveats"][0]))
    described = run_from_dict(content["run"])
    if run is not None and described != run:
        return _rejected("it is about another run")
    process = released(described.process, claim["releases"])
    if different := _difference(process, content["process"]):
        return _rejected(f"its {different} is not that of its run")
    assumptions = promises(described, process.releases)
    if content["assumptions"] != assumptions:
        return _rejected("its assumptions are not those of its run")
    averaged = claim["order"] == "averaged"
    theorem = _BY_RUNG[content["theorem"]] if "rung" in content else RANDOM_ORDER if averaged else SHIFT_ENGINE
    # Whether an average may be taken, or a run gone through, is the theorem's business, not the claimant's.
    if failed := theorem.failures(process):
        return _rejected(failed[0][1])
    if theorem.rung is not None:
        notion = theorem.rung(process, _checked_rung(content["rung"], process))
    else:
        notion = _replayed(process, averaged, content["schedules"])
    delta, claimed = float(claim["delta"]), float(claim["epsilon"])
    epsilon = float(as_computed(notion, process.displacement).epsilon(delta))
    if not epsilon <= claimed:
        return _rejected(f"it claims epsilon = {claimed:.12g}, but proves {epsilon:.12g}")
    return Verdict(True, claimed, delta, len(process), process.releases, assumptions=tuple(assumptions))


def _checked_rung(value: Any, process: Process) -> int:
    rung = checked_count("rung", value)
    if rung > len(process):
        raise InvalidInput(f"rung must be at most steps = {len(process)}. Got {rung}.")
    return rung


def _difference(process: Process, content: dict[str, Any]) -> str | None:
    diameter = math.inf if content["diameter"] is None else float(content["diameter"])
    if checked_count("steps", content["steps"]) != len(process):
        return "number of steps"
    if diameter != process.diameter:
        return "diameter"
    for name in _PROCESS_FIELDS:
        if not _same(unpacked(content[name], len(process)), getattr(process, name)):
            return name
    return None


def _same(one: Floats, two: Floats) -> bool:
    if is_constant(one) and is_constant(two):
        return float(one[0]) == float(two[0])
    return np.array_equal(one, two)


def _replayed(process: Process, averaged: bool, schedules: list[dict[str, Any]]) -> Notion:
    """The notion that these schedules prove: every place has to be there, the checker knows which."""
    places = places_of(process, averaged)
    given = {checked_count("place", entry["place"], least=-1): entry["parts"] for entry in schedules}
    records = []
    for place, weight in places.wanted.items():
        if place not in given:
            raise InvalidInput(f"there is no schedule for place {place}.")
        stretches = places.stretches(place)
        if len(given[place]) != len(stretches):
            raise InvalidInput(f"place {place} must have {len(stretches)} schedules. Got {len(given[place])}.")
        parts = [Part(_price(steps, entry), None) for steps, entry in zip(stretches, given[place], strict=True)]
        records.append(RecordProof(place, weight, tuple(parts)))
    return Proof(tuple(records), averaged).notion


def _price(steps: Steps | None, entry: dict[str, Any] | None) -> float:
    if steps is None:
        return 0.0
    schedule = _schedule_from_dict(entry, len(steps)) if entry else None
    if schedule is None:
        raise InvalidInput("a schedule is missing.")
    return certify(steps, schedule.start, payments(steps, schedule))


def _record_to_dict(record: RecordProof) -> dict[str, Any]:
    return {"place": record.place, "parts": [_schedule_to_dict(part.schedule) for part in record.parts]}


def _schedule_to_dict(schedule: Schedule | None) -> dict[str, Any] | None:
    if schedule is None:
        return None
    return {"start": schedule.start, "lengths": packed(schedule.lengths), "levels": packed(schedule.levels)}


def _schedule_from_dict(entry: dict[str, Any], steps: int) -> Schedule:
    start = checked_count("start", entry["start"], least=0)
    lengths = _whole(unpacked(entry["lengths"], most=steps))
    if not 0 <= start < steps or (lengths < 1).any() or lengths.sum(dtype=np.int64) != steps - start:
        raise InvalidInput(f"the lengths of a schedule must sum to {steps - start}. Got {lengths.sum()}.")
    levels = unpacked(entry["levels"], len(lengths))
    if not (np.isfinite(levels) & (levels >= 0)).all():
        raise InvalidInput("the levels of a schedule must be finite and >= 0.")
    return Schedule(start, lengths, levels)


def _whole(values: Floats) -> Counts:
    if not (np.isfinite(values) & (values == np.floor(values))).all():
        raise InvalidInput("the lengths of a schedule must be integers.")
    return values.astype(np.intp)


def _rounded_up(value: float) -> float:
    """To twelve digits: other machines may differ in the last bits."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float(f"{value + unit:.{_DIGITS}g}")
