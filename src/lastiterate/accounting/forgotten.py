"""A plan to forget: after which requests, by how many steps, what is proved then, and the certificate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lastiterate.accounting.forgetting import Requests
from lastiterate.accounting.forgetting_certificate import forgetting_certificate
from lastiterate.accounting.forgetting_promises import compared, covered_models, forgetting_promises
from lastiterate.digits import above
from lastiterate.display import alerts, card, folded, headline, preformatted, summary
from lastiterate.errors import InvalidInput, checked_count, must_be, shown, worded
from lastiterate.facts import Fact, facts_to_json
from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.files import write_text
from lastiterate.runs.run import Run
from lastiterate.theorems.theorem import Guarantee


@dataclass(frozen=True, eq=False)
class Forgetting:
    """After `run`, the i-th request removes `removals[i]` records, and `further[i]` steps follow it, each like the last.

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
        """What is removed, followed by how many steps, and what is released."""
        return Requests(self.removals, self.further, self.releases, self.adaptive, self.separate)

    @property
    def steps(self) -> int:
        """All further steps, after all requests."""
        return sum(self.further)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Upper bounds at `delta`, one for each request."""
        return tuple(one.epsilon(self.delta) for one in self.guarantees)

    @property
    def epsilon(self) -> float:
        """The largest of them."""
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
        """The proof for the first so many requests."""
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
        """All of them, in order."""
        return tuple(sorted(self.until(len(self.records))))

    def until(self, request: int) -> tuple[int, ...]:
        """All records that were removed by the first so many requests."""
        return tuple(one for asked in self.records[:request] for one in asked)


def _indices(records: Any) -> tuple[int, ...]:
    try:
        return tuple(checked_count("records", one, least=0) for one in records)
    except TypeError as error:
        raise InvalidInput("records_not_listed", field="records", got=f"{shown(records):.60}") from error
