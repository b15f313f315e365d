"""What a ledger holds: the terms of a budget, fixed before its first release, and its entries, in a chain of digests.

Each digest covers all that was written before. An entry holds its guarantee as a whole curve in plain numbers, from which a
composition can be computed again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lastiterate.curves.adjacency import Adjacency, Sampling
from lastiterate.curves.compose import PrivacyLoss
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.gaussian_cover import tabled
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.renyi import RenyiDP
from lastiterate.curves.sampled_steps import SampledStep
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.digits import above
from lastiterate.display import summary
from lastiterate.errors import (
    INSIDE_UNIT,
    MU,
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    Interval,
    InvalidInput,
    Unavailable,
    check_fields,
    checked_choice,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats

FORMAT = "lastiterate budget 1"
_BELOW_ONE = Interval(0.0, 1.0, low_included=True)
_LONGEST = 200  # letters of a line
_MOST_CELLS = 20_000  # of a loss distribution that is kept as it is: about half a megabyte


@dataclass(frozen=True)
class Terms:
    """The terms of a budget, which are never changed.

    `adaptive`: a release may depend on earlier ones. `reserve`: the share of δ for what no Gaussian covers.
    `user_records`: everything is for a whole user, who has up to this many records.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    dataset: str
    adaptive: bool
    reserve: float
    user_records: int = 1

    def __post_init__(self) -> None:
        check_fields(self, POSITIVE, "epsilon")
        check_fields(self, INSIDE_UNIT, "delta")
        check_fields(self, _BELOW_ONE, "reserve")
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))
        checked_line("dataset", self.dataset)
        checked_count("user_records", self.user_records)
        if not isinstance(self.adaptive, bool):
            raise must_be("adaptive", "True or False", f"{shown(self.adaptive):.60}")

    @property
    def unit(self) -> Fact:
        """The privacy unit of the budget."""
        return self.adjacency.unit(self.user_records)

    @property
    def set_aside(self) -> float:
        """The part of δ for what no Gaussian covers."""
        return self.reserve * self.delta if self.adaptive else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-ready form, from which `from_dict` makes the same again."""
        return {"format": FORMAT, **asdict(self), "adjacency": self.adjacency.name.lower()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Terms:
        """Read terms; whatever is missing or wrong raises an error."""
        if content["format"] != FORMAT:
            raise InvalidInput("budget_format", format=FORMAT)
        values = {name: content[name] for name in cls.__dataclass_fields__}
        return cls(**{**values, "adjacency": adjacency_named(content["adjacency"])})

    def said(self) -> str:
        """Return the terms in one line."""
        of = f", data set {self.dataset}" if self.dataset else ""
        return f"epsilon = {self.epsilon:g} at delta = {self.delta:g} ({self.unit}{of})"

    def difference(self, other: Terms) -> dict[str, Any]:
        """Return the first term in which another budget differs, with both values; empty if there is none."""
        for name in self.__dataclass_fields__:
            if (wanted := getattr(self, name)) != (found := getattr(other, name)):
                return {"term": name, "found": found, "wanted": wanted}
        return {}


def adjacency_named(name: Any) -> Adjacency:
    """Return the adjacency of this name, as files write it, or the command line, with hyphens."""
    named = {one.name.lower(): one for one in Adjacency}
    if str(name).replace("-", "_") not in named:
        raise must_be("adjacency", f"one of {', '.join(named)}", f"{shown(name):.60}")
    return named[str(name).replace("-", "_")]


def checked_line(name: str, value: Any, least: int = 0) -> str:
    """Return a text if it is one printable line of at most 200 letters, or raise an error."""
    if not isinstance(value, str) or not least <= len(value) <= _LONGEST or not (value.isprintable() or not value):
        raise must_be(name, f"{least} to {_LONGEST} printable characters", f"{shown(value):.60}")
    return value


@dataclass(frozen=True)
class Cost:
    """What an adaptive budget is charged for an entry, whose profile lies below that of μ, plus the slack."""

    mu: float
    slack: float


@dataclass(frozen=True, eq=False)
class BudgetEntry:
    """A recorded release. `epsilon` is its own, at the budget's δ; an adaptive budget is charged `mu` and `slack`.

    `guarantee` is a whole curve, as plain numbers: `notion` of it. `certificate` is that of the run, if it was one.
    """

    number: int
    when: str
    what: str
    who: str
    epsilon: float
    mu: float | None
    slack: float | None
    guarantee: dict[str, Any]
    certificate: dict[str, Any] | None
    adjacency: Adjacency

    def __repr__(self) -> str:
        return summary(self, f"number {self.number}", repr(self.what), f"epsilon={above(self.epsilon)}", self.when)

    @cached_property
    def notion(self) -> Notion:
        """The guarantee of this release alone."""
        return guarantee_from_dict(self.guarantee, self.adjacency)

    @property
    def cost(self) -> Cost:
        """What an adaptive budget was charged for the entry."""
        return Cost(checked_number("mu", self.mu, MU), checked_number("slack", self.slack, UNIT))

    @property
    def theorem(self) -> str:
        """The theorem that proves it; "" if its guarantee was only stated."""
        return str(self.certificate["theorem"]) if self.certificate else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-ready form, from which `from_dict` makes the same again."""
        plain = {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}
        return {**plain, "adjacency": self.adjacency.name.lower()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> BudgetEntry:
        """Read an entry; whatever is missing or wrong raises an error."""
        values = {name: content[name] for name in cls.__dataclass_fields__}
        checked_count("number", values["number"])
        for name in ("when", "what", "who"):
            checked_line(name, values[name])
        checked_number("epsilon", values["epsilon"], NON_NEGATIVE)
        entry = cls(**{**values, "adjacency": adjacency_named(content["adjacency"])})
        if (entry.mu, entry.slack) != (None, None):
            _ = entry.cost
        return entry


def first_digest(terms: Terms) -> str:
    """Return the digest of a ledger without entries."""
    return _hashed(plain_text(terms.to_dict()))


def next_digest(digest: str, text: str) -> str:
    """Return the digest of a ledger that had this digest and got one more line."""
    return _hashed(f"{digest}\n{text}")


def chained(terms: Terms, texts: Iterable[str]) -> list[str]:
    """Return the digest after each line."""
    found, digest = [], first_digest(terms)
    for text in texts:
        digest = next_digest(digest, text)
        found.append(digest)
    return found


def plain_text(content: dict[str, Any]) -> str:
    """Write content as JSON, the same text for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def entries_of(texts: Iterable[str]) -> tuple[BudgetEntry, ...]:
    """Read entries, which must be numbered from 1 on without a gap."""
    entries = tuple(BudgetEntry.from_dict(json.loads(text)) for text in texts)
    if [entry.number for entry in entries] != list(range(1, len(entries) + 1)):
        raise InvalidInput("entries_not_numbered")
    return entries


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def guarantee_to_dict(notion: Notion, delta: float) -> dict[str, Any]:
    """Return a guarantee as plain numbers: itself if these are few, else a table of its profile down to far below δ."""
    match notion:
        case GaussianDP():
            return {"kind": "gaussian", "mu": notion.mu}
        case RenyiDP(rho=None):
            return {"kind": "renyi", "orders": list(notion.orders), "divergences": list(notion.divergences)}
        case RenyiDP():
            return {"kind": "concentrated", "rho": notion.rho}
        case SubsampledGaussians(is_mixed=False):
            steps = [[step.mu, step.inclusion, step.sampling.name.lower(), count] for step, count in notion.steps]
            return {"kind": "subsampled", "steps": steps}
        case PrivacyLoss() if len(notion.total.parts) == 1 and notion.total.parts[0].masses.size <= _MOST_CELLS:
            return _loss_to_dict(notion)
    table = tabled(notion, delta)
    if table is None:
        raise Unavailable("budget_no_finite_epsilon", delta=delta)
    return {"kind": "profile", "epsilons": table[0].tolist(), "deltas": table[1].tolist()}


def guarantee_from_dict(content: dict[str, Any], adjacency: Adjacency) -> Notion:
    """Read a guarantee; whatever is missing or wrong raises an error."""
    kind = content["kind"]
    if kind not in _MADE:
        raise must_be("kind", f"of kind {', '.join(_MADE)}", f"{kind!r:.60}", called="a guarantee")
    return _MADE[kind](content, adjacency)


def implied(guarantee: dict[str, Any], proved: Notion, delta: float) -> bool:
    """Return whether what is proved is at least as good as the guarantee that was once written down from it."""
    match guarantee["kind"], proved:
        case "gaussian", GaussianDP():
            return proved.mu <= float(guarantee["mu"]) * (1 + 1e-12)
        case "profile", _:
            return _below(guarantee, tabled(proved, delta, raised=0.0))
    again = guarantee_to_dict(proved, delta)
    return bool(again["kind"] == guarantee["kind"]) and _alike(again, guarantee)


def _below(guarantee: dict[str, Any], found: tuple[Floats, Floats] | None) -> bool:
    """Return whether a profile lies below a table at its points, and so between them, because it lies below its chords."""
    if found is None:
        return False
    points, most = np.array(guarantee["epsilons"], float), np.array(guarantee["deltas"], float)
    return bool((np.asarray(Profile(epsilons=found[0], deltas=found[1]).delta(points)) <= most).all())


def _alike(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal up to the last bits of their numbers."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float):
        return isinstance(other, float) and math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def _loss_to_dict(loss: PrivacyLoss) -> dict[str, Any]:
    part, count = loss.total.parts[0], loss.total.counts[0]
    law = {"first": part.first, "spacing": part.spacing, "masses": part.masses.tolist(), "infinite": part.infinite}
    return {"kind": "loss", **law, "count": count}


def _loss(content: dict[str, Any], adjacency: Adjacency) -> Notion:
    law = {name: content[name] for name in ("first", "spacing", "masses", "infinite")}
    return PrivacyLoss(**law, adjacency=adjacency).compose(content["count"])


def _subsampled(content: dict[str, Any], adjacency: Adjacency) -> Notion:
    steps = [
        (SampledStep(mu, rate, Sampling[str(sampling).upper()]), count)
        for mu, rate, sampling, count in content["steps"]
    ]
    return SubsampledGaussians(tuple(steps), adjacency)


_MADE: dict[str, Callable[[dict[str, Any], Adjacency], Notion]] = {
    "gaussian": lambda content, adjacency: GaussianDP(content["mu"], adjacency),
    "renyi": lambda content, adjacency: RenyiDP(
        orders=content["orders"], divergences=content["divergences"], adjacency=adjacency
    ),
    "concentrated": lambda content, adjacency: RenyiDP(rho=content["rho"], adjacency=adjacency),
    "subsampled": _subsampled,
    "loss": _loss,
    "profile": lambda content, adjacency: Profile(
        epsilons=content["epsilons"], deltas=content["deltas"], adjacency=adjacency
    ),
}
