"""How many trials are run before the best of them is released: a random number, drawn without a look at the data.

With f(x) = E x^K, the best of K trials has the density f'(G) relative to one trial, G the probability that a trial is
worse (docs/proofs.md). All that selection costs comes from f': its logarithm is convex for the laws of this file, and
`fall` is by how much it has fallen where a trial is better with probability `tail`, from f'(1) = E K on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from lastiterate.errors import Interval, InvalidInput, Unavailable, check_fields, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.numerics.roots import decreasing_root

_MOST = 1e6  # trials, on average: nobody trains more
_MEAN = Interval(0.0, 500.0, high_included=True)  # of Poisson numbers: f' falls by e to the mean, which must be a float
_MORE_THAN_ONE = Interval(1.0, _MOST, high_included=True)
# Nearer to −1, γ is no float; with a larger shape f' may fall below all floats, and it is a Poisson law, all but in name.
_SHAPE = Interval(-0.9, 50.0, low_included=True, high_included=True)
_LARGEST_LOG = 700.0  # e to it is a float


class Trials(ABC):
    """The law of the number of trials."""

    mean: float

    @abstractmethod
    def fall(self, tails: Floats) -> Floats:
        """Return log f'(1) − log f'(1 − tail)."""

    @abstractmethod
    def tail(self, falls: Floats) -> Floats:
        """Return the tail at which log f' has fallen by this much."""

    @abstractmethod
    def _first(self) -> tuple[int, float]:
        """Return the least number of trials, and its probability."""

    @abstractmethod
    def _ratio(self, count: int) -> float:
        """Return the probability of one trial more, divided by that of this number."""

    def drawn(self, source: Source) -> int:
        """Draw a number of trials; its probabilities are right to about 1e-15."""
        point = float(source.uniform())
        count, chance = self._first()
        total = chance
        while total <= point and chance > 0:
            chance *= self._ratio(count)
            count, total = count + 1, total + chance
        return count


@dataclass(frozen=True)
class PoissonTrials(Trials):
    """The Poisson distribution with this `mean`, up to 500. It may draw 0; then nothing is released."""

    mean: float

    def __post_init__(self) -> None:
        check_fields(self, _MEAN, "mean")

    def fall(self, tails: Floats) -> Floats:
        return self.mean * tails

    def tail(self, falls: Floats) -> Floats:
        return falls / self.mean

    def _first(self) -> tuple[int, float]:
        return 0, math.exp(-self.mean)

    def _ratio(self, count: int) -> float:
        return self.mean / (count + 1)


@dataclass(frozen=True)
class NegativeBinomial(Trials):
    """The negative binomial distribution without 0, with this `mean` above 1.

    `shape` 1 is the geometric distribution, 0 the logarithmic one. A smaller shape, down to −0.9, draws few or very many
    trials more often, and has a smaller ε.
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        check_fields(self, _MORE_THAN_ONE, "mean")
        check_fields(self, _SHAPE, "shape")

    @property
    def stop(self) -> float:
        """γ of Papernot and Steinke 2022; for the geometric law, the probability to stop after each trial."""
        return _stop(self.mean, self.shape)

    def fall(self, tails: Floats) -> Floats:
        return (1 + self.shape) * np.log1p((1 - self.stop) / self.stop * tails)

    def tail(self, falls: Floats) -> Floats:
        return np.expm1(falls / (1 + self.shape)) * self.stop / (1 - self.stop)

    def _first(self) -> tuple[int, float]:
        """Return 1 and its probability, which is f'(0)."""
        return 1, self.mean * self.stop ** (1 + self.shape)

    def _ratio(self, count: int) -> float:
        return (1 - self.stop) * (count + self.shape) / (count + 1)


@dataclass(frozen=True)
class Geometric(NegativeBinomial):
    """The geometric distribution, with this `mean` above 1: after each trial a coin decides whether there is another."""

    shape: float = field(default=1.0, init=False)


@dataclass(frozen=True)
class Logarithmic(NegativeBinomial):
    """The logarithmic distribution, with this `mean` above 1: mostly few trials, sometimes very many."""

    shape: float = field(default=0.0, init=False)


LAWS: dict[str, type[Trials]] = {
    "geometric": Geometric,
    "poisson": PoissonTrials,
    "logarithmic": Logarithmic,
    "negative-binomial": NegativeBinomial,
}


def trials_to_dict(trials: Trials) -> dict[str, Any]:
    """Return the law as a dictionary that JSON can hold."""
    law = next((name for name, kind in LAWS.items() if type(trials) is kind), None)
    if law is None:
        raise Unavailable("trials_not_written", field="trials", got=f"{shown(trials):.60}")
    shape = {"shape": trials.shape} if type(trials) is NegativeBinomial else {}
    return {"law": law, "mean": trials.mean, **shape}


def trials_from_dict(content: dict[str, Any]) -> Trials:
    """Return the law from such a dictionary; raise for whatever is missing, unknown or out of range."""
    law = content["law"]
    if law not in LAWS:
        raise must_be("law", f"one of {', '.join(LAWS)}", f"{shown(law):.60}")
    wanted = {"law", "mean", *(("shape",) if law == "negative-binomial" else ())}
    if set(content) != wanted:
        raise InvalidInput("trials_entries", field="trials", law=law, entries=", ".join(sorted(wanted)))
    made: Trials = LAWS[law](**{name: value for name, value in content.items() if name != "law"})
    return made


def trials_said(trials: Trials) -> str:
    """Describe the law for a sentence: 'drawn from a …'."""
    from lastiterate.report import english

    content = trials_to_dict(trials)
    return english.trials(content["law"], content["mean"], content.get("shape"))


@lru_cache(maxsize=64)
def _stop(mean: float, shape: float) -> float:
    """Return γ with η(1 − γ)/(γ(1 − γ^η)) = mean, by its logarithm: e^{−L}."""
    log = decreasing_root(lambda logs: mean - _mean(logs, shape), np.array([1e-12]), np.array([_LARGEST_LOG]))
    return math.exp(-float(log[0]))


def _mean(logs: Floats, shape: float) -> Floats:
    """Return (e^L − 1)·η/(1 − e^{−ηL}), for η = 0 its limit."""
    powers = shape * logs
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(np.abs(powers) < 1e-9, 1 + powers / 2, powers / -np.expm1(-powers))
    return np.asarray(np.expm1(logs) / logs * quotients)
