"""How many further steps make a model forget some of its records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from lastiterate.accounting.forgetting import (
    check_covered,
    checked_forgetting_releases,
    forgetting_process,
    forgotten_by,
)
from lastiterate.accounting.forgetting_certificate import forgetting_certificate
from lastiterate.accounting.forgetting_words import compared, forgetting_promises
from lastiterate.accounting.searches.by_theorem import as_executed
from lastiterate.algorithms.encode import run_to_dict
from lastiterate.algorithms.files import write_text
from lastiterate.algorithms.named import names_arguments
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.display import alerts, card, folded, headline, preformatted, summary
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    Unavailable,
    checked_count,
    checked_number,
    shown,
)
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.progress import as_one
from lastiterate.theorems.theorem import Guarantee

Requests = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Forgetting:
    """After `run`, the i-th request removes `removals[i]` records, and `further[i]` steps follow it, each like the last.

    `guarantees[i]` is about all records of the first i requests together, when its own steps are done: nobody can tell the
    model from that of a run of as many steps, from the same start, that never had them. `target` is what was asked for.
    """

    run: Run
    target: float
    delta: float
    removals: tuple[int, ...]
    further: tuple[int, ...]
    releases: tuple[int, ...]
    guarantees: tuple[Guarantee, ...]
    caveats: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """Further ones, after all requests."""
        return sum(self.further)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """At `delta`, one for each request: upper bounds."""
        return tuple(one.epsilon(self.delta) for one in self.guarantees)

    @property
    def epsilon(self) -> float:
        """The largest of them."""
        return max(self.epsilons)

    @property
    def mu(self) -> float | None:
        """Of the last request, as Gaussian differential privacy."""
        notion = self.guarantees[-1].notion
        return notion.mu if isinstance(notion, GaussianDP) else None

    @property
    def whole(self) -> Run:
        """Training and further steps as one run: what the records that stay are accounted by."""
        return self.run.continued(self.steps)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the owner of the run has to guarantee; the first says what is compared."""
        return tuple(forgetting_promises(self.run, self.removals, self.further, self.releases))

    @property
    def certificate(self) -> dict[str, Any]:
        """The proof of the last guarantee, which is about all requests, for `lastiterate verify`."""
        return deepcopy(self._certificate)

    @cached_property
    def _certificate(self) -> dict[str, Any]:
        return self.certificate_after(len(self.removals))

    def certificate_after(self, requests: int) -> dict[str, Any]:
        """The same for the first so many requests."""
        count = checked_count("requests", requests)
        if count > len(self.removals):
            raise InvalidInput(f"requests must be at most {len(self.removals)}. Got {count}.", field="requests")
        asked = self.removals[:count], self.further[:count]
        process = forgetting_process(self.run, *asked, self.releases)
        return forgetting_certificate(self.run, process, self.guarantees[count - 1], self.delta, asked, self.caveats)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self._certificate) + "\n")

    def of(self, *records: Iterable[int]) -> Removed:
        """The records of each request by their index in the data, for `li.train(run, data, forget=...)`."""
        return Removed(self, tuple(_indices(one) for one in records))

    def to_dict(self) -> dict[str, Any]:
        """Without its certificate, as JSON could hold it."""
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
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
            "run": run_to_dict(self.run),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        claim = f"epsilon={self.epsilon:.4g}", f"delta={self.delta:g}"
        return summary(self, *self.caveats[:1], *claim, f"{self.steps} further steps", f"{sum(self.removals)} removed")

    def _repr_html_(self) -> str:
        first, *others = list(self._lines())[len(self.caveats) :]
        return card(alerts(self.caveats), headline(first), folded("Details", preformatted("\n".join(others))))

    def _lines(self) -> Iterator[str]:
        yield from self.caveats
        count = sum(self.removals)
        records = "1 record" if count == 1 else f"{count} records"
        yield (
            f"{self.steps} further steps forget {records}: epsilon = {self.epsilon:.6g} at delta = {self.delta:g} "
            f"(asked for {self.target:g})"
        )
        if len(self.removals) > 1:
            yield f"{len(self.removals)} requests, one after the other, with {_listed(self.further)} steps"
        if max(self.further) >= self.run.steps:
            yield f"to train anew, without these records, takes {self.run.steps} steps: no more, and nothing of them is left"
        yield f"by {self.guarantees[-1].theorem.name}: {self.guarantees[-1].theorem.citation}"
        yield compared(self.run, self.removals, self.further)
        yield from ("", "What you have to stand for")
        yield from (f"  {one}" for one in self.assumptions[1:])


@dataclass(frozen=True, eq=False)
class Removed:
    """The records that each request of a plan removes, by their index in the data; no more than it plans for."""

    plan: Forgetting
    records: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        given, planned = tuple(map(len, self.records)), self.plan.removals
        if len(given) != len(planned) or any(one > most for one, most in zip(given, planned, strict=True)):
            raise InvalidInput(
                f"records must be one list for each request, of at most {_listed(planned)} records. Got {_listed(given)}.",
                field="records",
            )
        every = [one for request in self.records for one in request]
        if len(set(every)) < len(every) or max(every, default=0) >= self.plan.run.batches.records:
            raise InvalidInput(
                f"records must be different, from 0 to {self.plan.run.batches.records - 1}. Got {shown(every):.60}.",
                field="records",
            )

    def __repr__(self) -> str:
        return summary(self, repr(self.plan), f"{sum(map(len, self.records))} records")

    def until(self, request: int) -> tuple[int, ...]:
        """Those that are gone after so many requests."""
        return tuple(one for asked in self.records[:request] for one in asked)


@names_arguments
def forget(
    run: Run,
    *,
    epsilon: float,
    delta: float,
    removals: int | Iterable[int] = 1,
    releases: Iterable[int] = (),
    most_steps: int = 1_000_000,
) -> Forgetting:
    """How many further steps, without the removed records, make the model of `run` (epsilon, delta)-indistinguishable from
    that of a run of as many steps, from the same start, that never had them.

    `removals`: so many records at once; or a list, of which each entry is a request that comes when the steps of the one
    before are done. After each, the claim is about all records removed so far. What a removed record leaves is what the
    run's adjacency says: with li.ZERO_OUT nothing, with li.REPLACE_ONE another record. Further steps have the numbers of the
    last step of training; with cyclic batches they are whole epochs. If the iterates of the training after `releases` steps
    were published, the claim is about these and the model together, and no step takes back what they say.

    As for `li.calibrate`, room is left for the rounding of a training, unless the run states its arithmetic.
    """
    checked_run(run)
    target, delta = checked_number("epsilon", epsilon, POSITIVE), checked_number("delta", delta, INSIDE_UNIT)
    asked, most = _checked_removals(removals), checked_count("most_steps", most_steps)
    check_covered(run, asked, ())
    places = checked_forgetting_releases(run, releases)
    further: tuple[int, ...] = ()
    executed = as_executed(run)
    with as_one("forgetting"):
        for request in range(1, len(asked) + 1):
            further = (*further, _least_steps(executed, asked[:request], further, places, (target, delta), most))
        return forgetting_of(run, target, delta, (asked, further), places)


def forgetting_of(
    run: Run,
    target: float,
    delta: float,
    requests: Requests,
    releases: tuple[int, ...],
    caveats: tuple[str, ...] = (),
) -> Forgetting:
    """What is proved of these requests, whatever the target."""
    removals, further = requests
    counts = range(1, len(removals) + 1)
    found = (forgotten_by(forgetting_process(run, removals[:one], further[:one], releases)) for one in counts)
    return Forgetting(run, target, delta, removals, further, releases, tuple(found), caveats)


def _least_steps(
    run: Run,
    removals: tuple[int, ...],
    before: tuple[int, ...],
    releases: tuple[int, ...],
    goal: tuple[float, float],
    most: int,
) -> int:
    """More steps never hurt, so the least number that is enough is found by doubling and halving."""
    target, delta = goal
    unit = run.batches.per_epoch

    @cache
    def epsilon(count: int) -> float:
        return forgotten_by(forgetting_process(run, removals, (*before, count * unit), releases)).epsilon(delta)

    low, high = -1, 0
    while epsilon(high) > target:
        if high * unit >= most:
            raise Unavailable(
                f"even {high * unit} further steps leave epsilon = {epsilon(high):.4g} at delta = {delta:g}. Take more noise"
                + (", or release less while training." if releases else ", or a larger most_steps."),
                field="releases" if releases else "epsilon",
            )
        low, high = high, min(max(2 * high, 1), -(-most // unit))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if epsilon(middle) > target else (low, middle)
    return high * unit


def _checked_removals(removals: Any) -> tuple[int, ...]:
    if isinstance(removals, str) or not isinstance(removals, Iterable):
        return (checked_count("removals", removals),)
    found = tuple(checked_count("removals", one) for one in removals)
    if not found:
        raise InvalidInput("removals must be a number of records, or one for each request. Got none.", field="removals")
    return found


def _indices(records: Any) -> tuple[int, ...]:
    try:
        return tuple(checked_count("records", one, least=0) for one in records)
    except TypeError as error:
        raise InvalidInput(
            f"records must be a list of indices for each request, such as [3, 17]. Got {shown(records):.60}.",
            field="records",
        ) from error


def _listed(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts[:6])) + (", …" if len(counts) > 6 else "")
