"""Train many times on two neighbouring data sets, and prove from the last iterates that ε is no less than this.

A part of the runs teaches where to look: a direction and a few thresholds. The others are counted. Each threshold gets its
share of the doubt, so the best of them may be reported.
"""

from __future__ import annotations

import inspect
import math
import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from lastiterate.curves.adjacency import REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.digits import below
from lastiterate.display import alerts, card, headline, lines, summary
from lastiterate.errors import (
    INSIDE_UNIT,
    NON_NEGATIVE,
    InvalidInput,
    Unavailable,
    checked_choice,
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
        """Verdict on the claim, in one sentence; empty if nothing was claimed."""
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
        """Lines with both bounds."""
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
    """Run the jobs, in this process or in several, and return the results in the order of the jobs."""
    iterates = in_parallel(train, jobs, workers)
    found: list[Any] = []
    for part in tracked(_parts(len(jobs)), "runs"):
        found += islice(iterates, len(part))
    return found


def _parts(count: int) -> list[range]:
    """Split the runs into parts after which progress is reported."""
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
    """Return the best bound over all thresholds, whose rates hold together with this confidence."""
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
    """Thresholds half-way between both data sets, and where one of them is rarely met."""
    middle = (float(np.median(one)) + float(np.median(two))) / 2
    rare = [float(np.quantile(two, share)) for share in _QUANTILES]
    return [middle, *rare, *(float(np.quantile(one, 1 - share)) for share in _QUANTILES)]


# Clopper and Pearson's intervals, exact for any number of trials.


def rate_above(hits: int, trials: int, doubt: float) -> float:
    """Lower confidence bound on a rate, exceeded with probability at most `doubt`."""
    return 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, doubt))


def rate_below(hits: int, trials: int, doubt: float) -> float:
    """Upper confidence bound on a rate, violated with probability at most `doubt`."""
    return 1.0 if hits == trials else 1 - rate_above(trials - hits, trials, doubt)


@dataclass(frozen=True)
class Rates:
    """Bounds on how often a test says “the data”: at least `true_alarms` if true, at most `false_alarms` if not."""

    true_alarms: float
    false_alarms: float

    def epsilon(self, delta: float) -> float:
        """Smallest ε at which true ≤ e^ε·false + δ, for the test and for its opposite."""
        forwards = _log_ratio(self.true_alarms - delta, self.false_alarms)
        return max(forwards, _log_ratio(1 - self.false_alarms - delta, 1 - self.true_alarms), 0.0)

    @property
    def mu(self) -> float:
        """Smallest μ of a μ-GDP mechanism whose tests can have these rates."""
        if not self.true_alarms > 0 or not self.false_alarms < 1:
            return 0.0
        return max(float(ndtri(self.true_alarms) - ndtri(self.false_alarms)), 0.0)


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 and below > 0 else 0.0


# Trainers in files, for the command line.


@dataclass(frozen=True)
class Trainer:
    """A training function with the data and the neighbouring data to train on."""

    train: Callable[[Any, int], Any]
    data: Any
    neighbour: Any


def check_signature(train: Any, data: Any) -> None:
    """Raise an error if `train` cannot be called as train(data, seed), as far as its signature tells."""
    if not callable(train):
        raise must_be("train", "a function of data and seed", f"{shown(train):.60}")
    try:
        signature = inspect.signature(train)
    except (TypeError, ValueError):  # of some functions that are not written in Python
        return
    try:
        signature.bind(data, 0)
    except TypeError as error:
        name = getattr(train, "__name__", "train")
        raise InvalidInput("train_signature", field="train", got=f"{name}{signature}", error=str(error)) from error


def read_trainer(path: str | Path, adjacency: Adjacency | None = None) -> Trainer:
    """The names train, data and neighbour that a Python file defines; the file is executed.

    With `adjacency` the neighbour is made of the data.
    """
    if not Path(path).is_file():
        raise InvalidInput("trainer_missing", path=str(path))
    sys.path.insert(0, str(Path(path).resolve().parent))  # as python itself does
    try:
        names = runpy.run_path(str(path))
    except Exception as error:
        raise InvalidInput("trainer_failed", path=str(path), kind=type(error).__name__, error=str(error)) from error
    wanted = ("train", "data") if adjacency else ("train", "data", "neighbour")
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InvalidInput("trainer_lacks", path=str(path), missing=missing)
    if adjacency:
        return Trainer(names["train"], *neighbours_of(names["data"], adjacency))
    return Trainer(names["train"], names["data"], names["neighbour"])


# Neighbouring data sets.


def neighbours_of(data: Any, adjacency: Adjacency = REPLACE_ONE, record: int | None = None) -> tuple[Any, Any]:
    """Return `data` and a neighbouring data set, for `audit`. `data` is an array or a tuple such as (features, targets).

    The record at position `record` (by default the one with the largest norm) is replaced by its opposite, -x, with the same
    target; under li.ADD_OR_REMOVE_ONE it is removed. Another pair may give a larger lower bound. Choose the pair before you
    see results, or the confidence does not hold.
    """
    adjacency = checked_choice("adjacency", adjacency, Adjacency)
    if adjacency is ZERO_OUT:
        raise Unavailable("neighbours_of_zero_out")
    arrays = [_records(one) for one in (data if isinstance(data, tuple) else (data,))]
    if len({len(one) for one in arrays}) != 1 or not len(arrays[0]):
        raise InvalidInput("neighbours_lengths_differ", field="data", got=", ".join(str(len(one)) for one in arrays))
    place = _longest(arrays[0]) if record is None else _checked_place(record, len(arrays[0]))
    changed = [_without(arrays, place), _with_opposite(arrays, place)][adjacency.replaces]
    return (tuple(arrays), tuple(changed)) if isinstance(data, tuple) else (arrays[0], changed[0])


def _records(value: Any) -> Any:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.ndim == 0 or array.dtype.kind not in "iuf":
        raise InvalidInput("neighbours_not_arrays", field="data", got=f"{shown(value):.60}")
    return array


def _longest(records: Floats) -> int:
    return int(np.argmax(np.linalg.norm(records.reshape(len(records), -1).astype(float), axis=1)))


def _checked_place(record: int, count: int) -> int:
    place = checked_count("record", record, least=0)
    if place >= count:
        raise must_be("record", f"from 0 to {count - 1}", shown(record))
    return place


def _without(arrays: list[Any], place: int) -> list[Any]:
    return [np.delete(one, place, axis=0) for one in arrays]


def _with_opposite(arrays: list[Any], place: int) -> list[Any]:
    first = arrays[0].astype(np.result_type(arrays[0].dtype, np.int8), copy=True)
    first[place] = -first[place]
    if np.array_equal(first, arrays[0]):
        raise InvalidInput("record_is_its_opposite", field="record", record=place)
    return [first, *arrays[1:]]
