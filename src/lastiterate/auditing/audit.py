"""Train many times on two neighbouring data sets, and prove from the last iterates that ε is no less than this.

A part of the runs teaches where to look: a direction and a few thresholds. The others are counted. Each threshold gets its
share of the doubt, so the best of them may be reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.auditing.confidence import Rates, rate_above, rate_below
from lastiterate.auditing.trainer import check_signature
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.digits import below
from lastiterate.display import alerts, card, headline, lines, summary
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    InvalidInput,
    checked_count,
    checked_number,
    must_be,
    shown,
    worded,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.parallel import in_parallel
from lastiterate.plots import draw_audit
from lastiterate.progress import tracked

Train = Callable[[Any, int], Any]
Score = Callable[[Any], float]

_LEARNING = 0.2  # of the runs
_QUANTILES = (0.95, 1.0)
_FEWEST = 40
_MOST, _MOST_WORKERS = 10**8, 1000
_CHUNKS = 50


@dataclass(frozen=True)
class Audit:
    """Result of an audit: with this `confidence`, the mechanism has ε ≥ `epsilon` at `delta`, and μ ≥ `mu` if it is μ-GDP.

    `claimed` is the claimed ε at this δ, if one was given.
    """

    epsilon: float
    mu: float
    delta: float
    confidence: float
    runs: int
    scores: tuple[Floats, Floats] = field(repr=False)
    threshold: float
    claimed: float | None = None

    @property
    def refuted(self) -> bool:
        """Whether the claimed ε is refuted with this confidence; False if nothing was claimed."""
        return self.claimed is not None and self.epsilon > self.claimed

    @property
    def verdict(self) -> str:
        """One sentence on the claim; empty if nothing was claimed."""
        if self.claimed is None:
            return ""
        return worded(
            "audit_refuted" if self.refuted else "audit_not_refuted",
            claimed=self.claimed,
            delta=self.delta,
            confidence=100 * self.confidence,
        )

    @cached_property
    def epsilon_if_gaussian(self) -> float:
        """Lower bound on ε if the trade-off function is known to be Gaussian.

        Much larger than `epsilon` at a small δ, which counting alone cannot resolve.
        """
        return float(GaussianDP(self.mu).bracket(self.delta)[0])  # type: ignore[arg-type]

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """Plot the scores on both data sets and the best threshold. Returns matplotlib axes.

        Drawn on `ax`, or on a new figure; written to `path` if given.
        """
        one, two = (side.tolist() for side in self.scores)
        return draw_audit(one, two, self.threshold, self.epsilon, self.delta, self.confidence, path, ax)

    def to_dict(self) -> dict[str, Any]:
        """All values except the scores, as a dictionary for JSON."""
        names = ("epsilon", "epsilon_if_gaussian", "mu", "delta", "confidence", "runs", "threshold")
        judged = {} if self.claimed is None else {"claimed": self.claimed, "refuted": self.refuted}
        return {name: getattr(self, name) for name in names} | judged

    def __repr__(self) -> str:
        sure = f"{100 * self.confidence:g}% confidence", f"{self.runs} runs"
        claim = () if self.claimed is None else (f"claimed {self.claimed:g} {'' if self.refuted else 'not '}refuted",)
        return summary(self, f"epsilon >= {below(self.epsilon)}", f"delta={self.delta:g}", *sure, *claim)

    def _repr_html_(self) -> str:
        (first, *others), verdict = self._found, [self.verdict] if self.verdict else []
        if self.refuted:
            return card(alerts(verdict), headline(first), lines(others))
        return card(headline(first), lines(others + verdict))

    def __str__(self) -> str:
        return "\n".join([*self._found, *([self.verdict] if self.verdict else [])])

    @property
    def _found(self) -> list[str]:
        """Both bounds, each in a line."""
        return worded(
            "audit_bounds",
            epsilon=self.epsilon,
            delta=self.delta,
            confidence=100 * self.confidence,
            runs=self.runs,
            one_score=all(np.ptp(side) == 0 for side in self.scores),
            mu=self.mu,
            if_gaussian=self.epsilon_if_gaussian,
        ).splitlines()


def audit(
    train: Train,
    data: Any,
    neighbour: Any,
    *,
    delta: float,
    claimed: float | None = None,
    runs: int = 1000,
    confidence: float = 0.95,
    score: Score | None = None,
    workers: int | None = None,
    seed: int = 0,
) -> Audit:
    """Train many times on two neighbouring data sets and compute a lower confidence bound on ε.

    `train(data, seed)` returns the last iterate; it is called `runs` times on `data` and on `neighbour`. A fifth of the runs
    is used to learn the test. `score` maps an iterate to a number that is larger on `data`; without it, the direction in
    which the means differ is learnt. Runs are distributed over `workers` processes, or over the active
    joblib.parallel_config, such as a dask or ray cluster; the result does not depend on this. With `claimed`, the result
    says whether this ε is refuted. `li.auditing.neighbours_of(data)` returns both data sets:
    li.audit(train, *li.auditing.neighbours_of(data), delta=1e-5).
    """
    target, sure = checked_number("delta", delta, INSIDE_UNIT), checked_number("confidence", confidence, INSIDE_UNIT)
    count = checked_count("runs", runs)
    claim = None if claimed is None else checked_number("claimed", claimed, NON_NEGATIVE)
    check_signature(train, data)
    if count < _FEWEST:
        raise InvalidInput("audit_too_short", field="runs", got=f"{count}", least=_FEWEST)
    if count > _MOST:
        raise must_be("runs", f"at most {_MOST}", shown(count))
    if workers is not None and checked_count("workers", workers) > _MOST_WORKERS:
        raise must_be("workers", f"at most {_MOST_WORKERS}", shown(workers))
    seeds = np.random.SeedSequence(checked_count("seed", seed, least=0)).generate_state(2 * count).tolist()
    jobs = [(data, one) for one in seeds[:count]] + [(neighbour, one) for one in seeds[count:]]
    iterates = _trained(train, jobs, workers)
    learning = math.ceil(_LEARNING * count)
    one, two = _scored(iterates[:count], iterates[count:], learning, score)
    return replace(_judged(one, two, learning, target, sure), claimed=claim)


def _trained(train: Train, jobs: Sequence[tuple[Any, int]], workers: int | None) -> list[Any]:
    """In the order of the jobs, whoever trains."""
    iterates = in_parallel(train, jobs, workers)
    found: list[Any] = []
    for part in tracked(_parts(len(jobs)), "runs"):
        found += islice(iterates, len(part))
    return found


def _parts(count: int) -> list[range]:
    """After each of them it is said how many are done."""
    size = -(-count // _CHUNKS)
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def _scored(one: list[Any], two: list[Any], learning: int, score: Score | None) -> tuple[Floats, Floats]:
    if score is not None:
        try:
            found = [np.array([float(score(iterate)) for iterate in side]) for side in (one, two)]
        except (TypeError, ValueError) as error:
            raise InvalidInput("score_failed", field="score", error=str(error)) from error
    else:
        flat = np.split(_flat(one + two), [len(one)])
        gap = flat[0][:learning].mean(axis=0) - flat[1][:learning].mean(axis=0)
        spread = flat[0][:learning].var(axis=0) + flat[1][:learning].var(axis=0)
        direction = gap / np.where(spread > 0, spread, 1.0)
        found = [side @ direction for side in flat]
    if not all(np.isfinite(side).all() for side in found):
        raise InvalidInput("scores_not_finite", field="train")
    return found[0], found[1]


def _flat(iterates: list[Any]) -> Floats:
    if any(iterate is None for iterate in iterates):
        raise InvalidInput("train_returned_none", field="train", got="None")
    try:
        return np.stack([np.asarray(iterate, float).ravel() for iterate in iterates])
    except (TypeError, ValueError) as error:
        raise InvalidInput("iterate_shapes_differ", field="train", got=f"{shown(iterates[0]):.60}") from error


def _judged(one: Floats, two: Floats, learning: int, delta: float, confidence: float) -> Audit:
    """Both rates at every threshold hold together, but for the doubt; so the best threshold may be chosen."""
    thresholds = _thresholds(one[:learning], two[:learning])
    counted = len(one) - learning
    doubt = (1 - confidence) / (2 * len(thresholds))
    rates = [
        Rates(
            rate_above(int((one[learning:] > threshold).sum()), counted, doubt),
            rate_below(int((two[learning:] > threshold).sum()), counted, doubt),
        )
        for threshold in thresholds
    ]
    epsilons = [rate.epsilon(delta) for rate in rates]
    best = int(np.argmax(epsilons))
    mu = max(rate.mu for rate in rates)
    return Audit(epsilons[best], mu, delta, confidence, len(one), (one, two), thresholds[best])


def _thresholds(one: Floats, two: Floats) -> list[float]:
    """Half-way between both data sets, and where one of them is rarely met."""
    middle = (float(np.median(one)) + float(np.median(two))) / 2
    rare = [float(np.quantile(two, share)) for share in _QUANTILES]
    return [middle, *rare, *(float(np.quantile(one, 1 - share)) for share in _QUANTILES)]
