"""`li.forget`: the fewest further steps that make a model forget some of its records, and the plan that says so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lastiterate.accounting.least_noise import as_executed
from lastiterate.certificate.claims import checked_releases
from lastiterate.digits import above
from lastiterate.display import alerts, card, folded, headline, preformatted, summary
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    Unavailable,
    checked_count,
    checked_number,
    must_be,
    shown,
    worded,
)
from lastiterate.facts import Fact, facts_to_json
from lastiterate.forgetting.certificate import forgetting_certificate
from lastiterate.forgetting.proofs import best_guarantee, compared, covered_models, forgetting_promises
from lastiterate.forgetting.requests import Requests, check_adaptive, check_covered
from lastiterate.progress import as_one
from lastiterate.runs.files import run_to_dict, write_text
from lastiterate.runs.named import names_arguments
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.theorem import Guarantee


@names_arguments
def forget(
    run: Run,
    *,
    epsilon: float,
    delta: float,
    removals: int | Iterable[int] = 1,
    releases: Iterable[int] = (),
    release_each: bool = False,
    adaptive: bool = False,
    most_steps: int = 1_000_000,
) -> Forgetting:
    """The fewest further steps without the removed records after which the model of `run` is (epsilon, delta)-
    indistinguishable from that of a run of as many steps that never had them.

    `removals`: how many records are removed at once; or a list with one number for each request, of which each comes when
    the steps of the one before are done. After each, the claim is about all records removed so far. With li.ZERO_OUT a
    removed record contributes nothing; with li.REPLACE_ONE another record takes its place. Further steps have the settings
    of the last step of training; with batches in passes they are whole epochs.

    If you also released the iterates after `releases` steps, counted from the start of training, the claim is about them and
    the model together, and further steps cannot take back what they reveal. `release_each`: the model after each request is
    released, too; the claim after a request is then about its own records. `adaptive`: requests may depend on everything
    that was computed before them. The claim is then about the model given all of that, and needs a bounded domain.

    As in `li.calibrate`, room is left for the rounding of a training, unless the run states its arithmetic.
    """
    checked_run(run)
    target, delta = checked_number("epsilon", epsilon, POSITIVE), checked_number("delta", delta, INSIDE_UNIT)
    asked, most = _checked_removals(removals), checked_count("most_steps", most_steps)
    places, each = checked_releases(releases), _checked_flag("release_each", release_each)
    if _checked_flag("adaptive", adaptive) and (places or each):
        raise InvalidInput("adaptive_with_releases", field="releases")
    (check_adaptive if adaptive else check_covered)(run, Requests(asked, (), places, adaptive, each))
    found, executed = Requests((), (), places, adaptive, each), as_executed(run)
    with as_one("forgetting"):
        for count in asked:
            found = replace(found, removals=(*found.removals, count))
            found = replace(found, steps=(*found.steps, _least_steps(executed, found, (target, delta), most)))
            if each:
                found = replace(found, releases=checked_releases({*found.releases, *found.ends(run.steps)}))
        return forgetting_of(run, target, delta, found)


def forgetting_of(
    run: Run, target: float, delta: float, requests: Requests, caveats: tuple[Fact, ...] = ()
) -> Forgetting:
    """Return the plan with what is proved after each of these requests, whether or not it meets the target."""
    counts = range(1, len(requests.removals) + 1)
    found = tuple(best_guarantee(run, requests.first(one), delta) for one in counts)
    about = requests.removals, requests.steps, requests.releases
    return Forgetting(run, target, delta, *about, found, caveats, requests.adaptive, requests.separate)


def _least_steps(run: Run, requests: Requests, goal: tuple[float, float], most: int) -> int:
    """Search the least number of steps that meets the goal by doubling and halving: more steps hide more."""
    target, delta = goal
    unit = run.batches.per_epoch if run.batches.passes else 1
    # From the next release of an iterate on, nothing more is forgotten.
    now = run.steps + sum(requests.steps)
    released = next((place - now for place in requests.releases if place >= now), None)
    most = min(most, released) if released is not None else most

    def epsilon(count: int) -> float:
        if requests.adaptive and not count:
            return math.inf
        return best_guarantee(run, replace(requests, steps=(*requests.steps, count * unit)), delta).epsilon(delta)

    low, high, found = -1, 0, epsilon(0)
    while found > target:
        if high * unit >= most:
            raise _not_enough(run, high * unit, found, goal, released is not None)
        low, high = high, min(max(2 * high, 1), -(-most // unit))
        found = epsilon(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if epsilon(middle) > target else (low, middle)
    return high * unit


def _not_enough(run: Run, steps: int, epsilon: float, goal: tuple[float, float], released: bool) -> Unavailable:
    target, delta = goal
    if released:
        return Unavailable("released_not_forgotten", field="releases", target=target, epsilon=epsilon, delta=delta)
    apart = run.process.contraction > 1
    return Unavailable("steps_not_enough", field="epsilon", steps=steps, epsilon=epsilon, delta=delta, apart=apart)


def _checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise must_be(name, "True or False", f"{shown(value):.60}")
    return value


def _checked_removals(removals: Any) -> tuple[int, ...]:
    if isinstance(removals, str) or not isinstance(removals, Iterable):
        return (checked_count("removals", removals),)
    found = tuple(checked_count("removals", one) for one in removals)
    if not found:
        raise InvalidInput("no_removals", field="removals", got="none")
    return found


@dataclass(frozen=True, eq=False)
class Forgetting:
    """A plan: after `run`, the i-th request removes `removals[i]` records; `further[i]` steps like the last one follow it.

    `guarantees[i]` holds once the steps of the i-th request are done: the model is indistinguishable from that of a run of
    as many steps that never had the records of all requests so far; if `separate`, those of this request. If iterates were
    released before, at `releases`, they are part of the claim; if requests are `adaptive`, they are taken as known. `target`
    is the ε that was asked for.
    """

    run: Run
    target: float
    delta: float
    removals: tuple[int, ...]
    further: tuple[int, ...]
    releases: tuple[int, ...]
    guarantees: tuple[Guarantee, ...]
    caveats: tuple[Fact, ...] = ()
    adaptive: bool = False
    separate: bool = False

    def __post_init__(self) -> None:
        marked = tuple(one.with_caveats(self.caveats) for one in self.guarantees)
        object.__setattr__(self, "guarantees", marked)
        object.__setattr__(self, "caveats", marked[-1].caveats)

    @property
    def requests(self) -> Requests:
        """The requests: how many records each removes, how many steps follow, and what is released."""
        return Requests(self.removals, self.further, self.releases, self.adaptive, self.separate)

    @property
    def steps(self) -> int:
        """Number of further steps after all requests together."""
        return sum(self.further)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Upper bounds at `delta`, one for each request."""
        return tuple(one.epsilon(self.delta) for one in self.guarantees)

    @property
    def epsilon(self) -> float:
        """The largest ε of all requests, an upper bound at `delta`."""
        return max(self.epsilons)

    @property
    def mu(self) -> float | None:
        """The Gaussian differential privacy parameter of the last request."""
        return self.guarantees[-1].mu

    @property
    def whole(self) -> Run:
        """Training and further steps as one run: the run that protects the records that stay."""
        return self.run.continued(self.steps)

    @property
    def assumptions(self) -> tuple[Fact, ...]:
        """What you must guarantee; the first two say what is compared, and which models are covered."""
        return forgetting_promises(self.run, self.requests)

    @property
    def certificate(self) -> dict[str, Any]:
        """The proof of the last guarantee, which covers all requests, for `lastiterate verify`."""
        return deepcopy(self._certificate)

    @cached_property
    def _certificate(self) -> dict[str, Any]:
        return self.certificate_after(len(self.removals))

    def certificate_after(self, requests: int) -> dict[str, Any]:
        """Return the proof for the first `requests` requests."""
        count = checked_count("requests", requests)
        if count > len(self.removals):
            raise must_be("requests", f"at most {len(self.removals)}", f"{count}")
        asked = self.requests.first(count)
        return forgetting_certificate(self.run, self.guarantees[count - 1], self.delta, asked, self.caveats)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self._certificate) + "\n")

    def of(self, *records: Iterable[int]) -> Removed:
        """The records of each request by their index in the data, for `li.train(run, data, forget=...)`."""
        return Removed(self, tuple(_indices(one) for one in records))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the certificate, as plain values for JSON."""
        return {
            "steps": self.steps,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "target": self.target,
            "requests": [
                {"removals": removals, "steps": steps, "epsilon": epsilon}
                for removals, steps, epsilon in zip(self.removals, self.further, self.epsilons, strict=True)
            ],
            "theorem": self.guarantees[-1].theorem.name,
            "citation": self.guarantees[-1].theorem.citation,
            "releases": list(self.releases),
            "adaptive": self.adaptive,
            "separate": self.separate,
            "assumptions": facts_to_json(self.assumptions),
            "caveats": facts_to_json(self.caveats),
            "run": run_to_dict(self.run),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        claim = f"epsilon={above(self.epsilon)}", f"delta={self.delta:g}"
        return summary(
            self, *map(str, self.caveats[:1]), *claim, f"{self.steps} further steps", f"{sum(self.removals)} removed"
        )

    def _repr_html_(self) -> str:
        first, *others = list(self._lines())[len(self.caveats) :]
        return card(alerts(map(str, self.caveats)), headline(first), folded("Details", preformatted("\n".join(others))))

    def _lines(self) -> Iterator[str]:
        yield from map(str, self.caveats)
        about = {"epsilon": self.epsilon, "delta": self.delta, "target": self.target}
        yield worded("forgotten_after", steps=self.steps, records=sum(self.removals), **about)
        if len(self.removals) > 1:
            yield worded("forgotten_one_by_one", further=self.further)
        if max(self.further) >= self.run.steps:
            yield worded("scratch_no_longer", steps=self.run.steps)
        yield f"by {self.guarantees[-1].theorem.name}: {self.guarantees[-1].theorem.citation}"
        yield str(compared(self.run, self.requests))
        yield str(covered_models(self.run, self.requests))
        yield from ("", "Assumptions you must guarantee")
        yield from (f"  {one}" for one in self.assumptions[2:])


@dataclass(frozen=True, eq=False)
class Removed:
    """The records that each request of a plan removes, by their index in the data; no more than the plan allows."""

    plan: Forgetting
    records: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        given, planned = tuple(map(len, self.records)), self.plan.removals
        if len(given) != len(planned) or any(one > most for one, most in zip(given, planned, strict=True)):
            raise InvalidInput("records_not_as_planned", field="records", planned=planned, given=given)
        every = [one for request in self.records for one in request]
        if len(set(every)) < len(every) or max(every, default=0) >= self.plan.run.batches.records:
            raise must_be("records", f"different, from 0 to {self.plan.run.batches.records - 1}", f"{shown(every):.60}")

    def __repr__(self) -> str:
        return summary(self, repr(self.plan), f"{sum(map(len, self.records))} records")

    @property
    def every(self) -> tuple[int, ...]:
        """All removed records, in order."""
        return tuple(sorted(self.until(len(self.records))))

    def until(self, request: int) -> tuple[int, ...]:
        """Return the records that the first `request` requests remove."""
        return tuple(one for asked in self.records[:request] for one in asked)


def _indices(records: Any) -> tuple[int, ...]:
    try:
        return tuple(checked_count("records", one, least=0) for one in records)
    except TypeError as error:
        raise InvalidInput("records_not_listed", field="records", got=f"{shown(records):.60}") from error
