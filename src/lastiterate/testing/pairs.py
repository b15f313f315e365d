"""Small runs in which every two features of runs meet, beside their exact laws.

Each feature of a run alone is under the laws of `tests/laws`; a mistake may sit where two of them meet. `covering` lists
combinations of features so that every pair that a run can have is in one of them, and `compared` puts every theorem that
accepts such a run beside the exact law of what it releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from lastiterate.accounting.account import account_by
from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT
from lastiterate.errors import InvalidInput, Unavailable
from lastiterate.runs.batches import BallsAndBins, Cyclic, FixedSize, FullBatch, Poisson, PoissonMean, Shuffled
from lastiterate.runs.domains import L1, Ball, Box, ConvexTerm, ElasticNet, NuclearNorm, Unbounded
from lastiterate.runs.losses import general, huber, logistic, network
from lastiterate.runs.noise import EXACT, Arithmetic, Langevin, OnGradientSum, OnIterate, OnMeanGradient
from lastiterate.runs.optimizers import EMA, LAST, SGD, Adam, Average, OtherOptimizer
from lastiterate.runs.run import Run
from lastiterate.testing.small_runs import Gradient, NoExactLaw, SmallRun
from lastiterate.theorems.theorem import Theorem

Features = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]
Source = np.random.Generator

# The values of each feature; the first is the usual one.
FEATURES: dict[str, tuple[str, ...]] = {
    "loss": ("convex", "logistic", "strongly convex", "non-convex", "bounded non-convex", "clipped", "network"),
    "push": ("constant", "turning"),
    "batches": (
        "full",
        "cyclic",
        "cyclic, smaller last",
        "cyclic, last dropped",
        "new orders",
        "new orders, smaller last",
        "new orders, last dropped",
        "one order",
        "one order, smaller last",
        "one order, last dropped",
        "fixed size",
        "poisson",
        "poisson mean",
        "balls and bins",
    ),
    "noise": ("on mean gradient", "on iterate", "on gradient sum", "langevin"),
    "schedule": ("constant", "step size", "noise", "clip"),
    "length": ("whole epochs", "one step", "part of an epoch", "unfinished epoch"),
    "domain": ("unbounded", "ball", "box"),
    "prox": ("none", "l1", "elastic net", "nuclear norm", "convex term"),
    "decay": ("none", "weight decay", "l2", "both"),
    "adjacency": ("replace one", "zero out", "add or remove one"),
    "optimiser": ("plain", "momentum", "nesterov", "dampening", "adam", "other"),
    "released": ("last", "ema", "average", "average of the last"),
    "releases": ("none", "inside an epoch", "end of an epoch", "several"),
    "user": ("one record", "two records", "two named records"),
    "beforehand": ("none", "some"),
    "arithmetic": ("exact", "rounded"),
    "start": ("zero", "within a norm"),
}
USUAL: Features = {name: values[0] for name, values in FEATURES.items()}
PAIRS: tuple[Pair, ...] = tuple(
    ((one, a), (two, b)) for one, two in combinations(FEATURES, 2) for a in FEATURES[one] for b in FEATURES[two]
)
_PLACES = {name: place for place, name in enumerate(FEATURES)}
_CHANGING = ("step size", "noise", "clip")
DELTA = 1e-5
DELTAS = (0.2, 1e-2, 1e-3, 1e-5, 1e-8)
_ADJACENCIES = {"replace one": REPLACE_ONE, "zero out": ZERO_OUT, "add or remove one": ADD_OR_REMOVE_ONE}


def _each(name: str, *values: str) -> list[tuple[str, str]]:
    """Return (name, value) for these values of a feature; by default for all but the usual one."""
    return [(name, value) for value in values or FEATURES[name][1:]]


_PASSES = [value for value in FEATURES["batches"] if value not in ("poisson", "balls and bins")]
_OWN_STATE = _each("optimiser", "momentum", "nesterov", "dampening", "adam") + _each("released")
IMPOSSIBLE: frozenset[Pair] = frozenset(
    [
        *product(_each("batches", *_PASSES), _each("adjacency", "add or remove one")),
        *product(_each("batches", "poisson mean"), _each("adjacency", "zero out")),
        *product(_each("batches", "poisson mean"), _each("noise", "on gradient sum")),
        *product(_each("batches", "full"), _each("length", "part of an epoch", "unfinished epoch")),
        *product(_each("batches", "full"), _each("releases", "inside an epoch")),
        *product(_each("length", "one step"), _each("releases")),
        *product(_each("length", "part of an epoch"), _each("releases", "end of an epoch")),
    ]
)
"""Pairs that no run has."""
UNKNOWN: frozenset[Pair] = frozenset(product(_each("push"), [*_OWN_STATE, *_each("releases", "several")]))
"""Pairs whose exact law the reference does not compute: pushes that turn, in a state of several dimensions."""


def pairs_of(features: Features) -> list[Pair]:
    """The pairs of feature values in a combination."""
    return list(combinations([(name, features[name]) for name in FEATURES], 2))


def covering(source: Source) -> Iterator[Case]:
    """Yield runs until every two features that a run can have have met; greedily, each with as many new pairs as it can."""
    left = [one for one in PAIRS if one not in IMPOSSIBLE | UNKNOWN]
    source.shuffle(left)
    missing = set(left)
    for pair in left:
        for attempt in range(40 if pair in missing else 0):
            features = _completed(dict(pair), missing, attempt / 4, source)
            case = features and constructed(features, source, 8)
            if case:
                missing -= set(pairs_of(case.features))
                yield case
                break


def _completed(features: Features, missing: set[Pair], chance: float, source: Source) -> Features | None:
    """A combination with these features and many pairs that have not met; with more `chance`, fewer of them."""
    for name in source.permutation([one for one in FEATURES if one not in features]).tolist():
        scores = {}
        for value in source.permutation(FEATURES[name]).tolist():
            pairs = [_in_order((name, value), other) for other in features.items()]
            if not any(one in IMPOSSIBLE or one in UNKNOWN for one in pairs):
                scores[value] = sum(one in missing for one in pairs) + chance * source.random()
        if not scores:
            return None
        features[name] = max(scores, key=scores.__getitem__)
    return features


def _in_order(one: tuple[str, str], two: tuple[str, str]) -> Pair:
    return (one, two) if _PLACES[one[0]] < _PLACES[two[0]] else (two, one)


def around(pair: Pair, source: Source) -> Features:
    """A combination with this pair whose other features are mostly the usual ones, so that most theorems accept it."""
    others = {name: source.choice(values) for name, values in FEATURES.items() if source.random() < 0.12}
    drawn = {name: str(source.choice(FEATURES[name])) for name in ("loss", "batches")}
    return {**USUAL, **drawn, **{name: str(value) for name, value in others.items()}, **dict(pair)}


class NoSuchRun(Exception):
    """No run has these features together, such as one step and a checkpoint."""


@dataclass(frozen=True)
class Case:
    """A combination of features, a small run that has them, and the `group` of records that a report names, if it does."""

    features: Features
    small: SmallRun
    group: tuple[int, ...]


def drawn(features: Features, source: Source) -> Case:
    """A run with these features and random numbers.

    NoSuchRun or InvalidInput where there is none, NoExactLaw where the reference does not reach.
    """
    batches = _batches(features["batches"], source)
    steps, releases = _steps(features, batches.per_epoch, source)
    if batches.records < (count := 1 if features["user"] == "one record" else 2):
        raise NoSuchRun("the user has more records than there are")
    members = tuple(sorted(source.permutation(batches.records)[:count].tolist()))
    changing = {name: source.uniform(0.4, 1.0, steps) if features["schedule"] == name else 1.0 for name in _CHANGING}
    size, clip = source.choice([0.05, 0.3, 0.8]), source.uniform(0.5, 2.0)
    loss, change = _loss(features, _given(clip * changing["clip"]), size, source)
    level = size * change / batches.divisor / source.choice([0.4, 1.0, 2.0])  # of the noise on the iterate
    simple = features["optimiser"] in ("plain", "other") and features["released"] == "last" and len(releases) < 2
    if features["push"] == "turning" and not simple:
        raise NoExactLaw("pushes that turn, in a state of several dimensions")
    run = Run(
        loss=loss,
        batches=batches,
        step_size=_given(size * changing["step size"]),
        noise=_noise(features["noise"], level, size, changing["noise"], clip * changing["clip"], batches.divisor),
        steps=steps,
        domain=_domain(features["domain"], level * source.choice([0.7, 2.0, 6.0]) if simple else 1e5 * level),
        prox=_prox(features["prox"], source.uniform(0.1, 1.5) * level / size if simple else 0.0, 0.5 / size),
        weight_decay=source.uniform(0.05, 0.5) / size if features["decay"] in ("weight decay", "both") else 0.0,
        arithmetic=EXACT if features["arithmetic"] == "exact" else Arithmetic(1.001, 1e-6),
        start_norm=0.0 if features["start"] == "zero" else 2 * level,
        adjacency=_ADJACENCIES[features["adjacency"]],
        optimizer=_optimizer(features["optimiser"], source),
        released=_released(features["released"], steps, source),
        prior_mu=0.0 if features["beforehand"] == "none" else source.choice([0.3, 1.5]),
        user_records=2 if features["user"] == "two records" else 1,
    )
    named = members if features["user"] == "two named records" else ()
    return Case(features, _small(run, releases, members, level, features["push"] == "turning", source), named)


def _given(values: Any) -> Any:
    """Return a float, or a tuple with one number per step."""
    return tuple(values.tolist()) if np.ndim(values) else float(values)


def _batches(name: str, source: Source) -> Any:
    kind, _, last = name.partition(", ")
    size = int(source.integers(1, 3))
    many = size * int(source.integers(2, 6 - size))
    if last:
        size, many = ((2, 3), (2, 5), (3, 4), (2, 7))[source.integers(4)]
    ending = {"": None, "smaller last": "smaller", "last dropped": "drop"}[last]
    records = int(source.integers(2, 5))
    match kind:
        case "full":
            return FullBatch(records)
        case "cyclic":
            return Cyclic(many, size, last=ending)
        case "new orders" | "one order":
            return Shuffled(many, size, each_epoch=kind == "new orders", last=ending)
        case "fixed size":
            return FixedSize(records, int(source.integers(1, records + 1)))
        case "poisson" | "poisson mean":
            return (Poisson if kind == "poisson" else PoissonMean)(records, source.choice([0.3, 0.5, 0.8]))
    return BallsAndBins(records, int(source.integers(2, min(records, 3) + 1)))


def _steps(features: Features, every: int, source: Source) -> tuple[int, tuple[int, ...]]:
    """The number of steps and the steps after which a checkpoint is released."""
    lengths: dict[str, Callable[[int], bool]] = {
        "one step": lambda one: one == 1,
        "part of an epoch": lambda one: one < every,
        "whole epochs": lambda one: one % every == 0,
        "unfinished epoch": lambda one: one > every and one % every > 0,
    }
    places: dict[str, Callable[[int], bool]] = {
        "none": lambda one: False,
        "inside an epoch": lambda one: one % every > 0,
        "end of an epoch": lambda one: one % every == 0,
        "several": lambda one: True,
    }
    count = {"none": 0, "several": 2}.get(features["releases"], 1)
    found = [
        (steps, chosen)
        for steps in range(1, 7)
        if lengths[features["length"]](steps)
        for chosen in combinations([one for one in range(1, steps) if places[features["releases"]](one)], count)
    ]
    if not found:
        raise NoSuchRun("no number of steps fits")
    return found[source.integers(len(found))]


def _loss(features: Features, clip: Any, size: float, source: Source) -> tuple[Any, float]:
    """The loss, and how far apart the gradients of two records can be at most."""
    smoothness, kind = source.choice([0.1, 0.5, 1.0, 1.9]) / size, features["loss"]
    clipped = features["schedule"] == "clip" or features["noise"] == "on gradient sum" or kind in ("clipped", "network")
    given: dict[str, Any] = {"clip": clip if clipped else None}
    given["l2"] = source.uniform(0.05, 0.4) / size if features["decay"] in ("l2", "both") else 0.0
    bound, low = source.uniform(0.5, 2.0), smoothness * source.choice([0.1, 0.5, 1.0])
    unclipped = {} if clipped else {"gradient_sensitivity": 2 * bound}
    match kind:
        case "convex":
            loss = huber(feature_norm=math.sqrt(smoothness), threshold=bound / math.sqrt(smoothness), **given)
        case "logistic":
            loss = logistic(feature_norm=2 * math.sqrt(smoothness), **given)
            bound = loss.gradient_bound
        case "strongly convex":
            loss = general(smoothness=smoothness, strong_convexity=low, **unclipped, **given)
        case "non-convex":
            loss = general(smoothness=smoothness, weak_convexity=low, **unclipped, **given)
        case "bounded non-convex":
            loss = general(smoothness=smoothness, weak_convexity=low, gradient_norm=bound, **given)
        case "clipped":
            loss = general(smoothness=smoothness, strong_convexity=0.0, **given)
        case "network":
            loss = network(smoothness=source.choice([None, smoothness]), **given)
    return loss, 2 * (min(bound, float(np.max(clip))) if clipped else bound)


def _noise(name: str, level: float, size: float, changing: Any, clip: Any, divisor: float) -> Any:
    """Noise with the standard deviation `level` on the iterate, if nothing changes from step to step."""
    match name:
        case "on iterate":
            return OnIterate(_given(level * changing))
        case "on mean gradient":
            return OnMeanGradient(_given(level / size * changing))
        case "langevin":
            return Langevin(_given(level / math.sqrt(2 * size) * changing))
    return OnGradientSum(_given(level * divisor / (size * np.max(clip)) * changing), _given(clip))


def _domain(name: str, radius: float) -> Any:
    return {"unbounded": Unbounded(dimension=1), "ball": Ball(radius), "box": Box(2 * radius, 1)}[name]


def _prox(name: str, weight: float, modulus: float) -> Any:
    return {
        "none": None,
        "l1": L1(weight),
        "elastic net": ElasticNet(weight, modulus),
        "nuclear norm": NuclearNorm(weight),
        "convex term": ConvexTerm(modulus),
    }[name]


def _optimizer(name: str, source: Source) -> Any:
    momentum = source.choice([0.3, 0.9])
    return {
        "plain": SGD(),
        "momentum": SGD(momentum=momentum),
        "nesterov": SGD(momentum=momentum, nesterov=True),
        "dampening": SGD(momentum=momentum, dampening=0.4),
        "adam": Adam(betas=(momentum, 0.999), eps=1e12),
        "other": OtherOptimizer("lion"),
    }[name]


def _released(name: str, steps: int, source: Source) -> Any:
    last = int(source.integers(1, steps + 1))
    return {
        "last": LAST,
        "ema": EMA(source.choice([0.3, 0.9])),
        "average": Average(),
        "average of the last": Average(last),
    }[name]


def _small(run: Run, releases: tuple[int, ...], user: Any, level: float, turning: bool, source: Source) -> SmallRun:
    """Two data sets: the records of the user push one way on the first, and on the second the other way or not at all."""
    loss = run.loss
    clips = np.broadcast_to(math.inf if run.clip is None else np.array(run.clip), run.steps)
    bounds = np.minimum(clips, min(loss.gradient_bound, loss.gradient_sensitivity / 2))
    base = 0.0
    if run.clip is None and math.isinf(loss.gradient_bound):
        base = source.choice([loss.curvature, loss.smoothness, source.uniform(loss.curvature, loss.smoothness)])
    far = 2 * level if run.loss.l2 + run.weight_decay == 0 else run.start_norm
    start = source.uniform(-1, 1) * min(far, run.domain.diameter / 2)
    if run.optimizer.kind == "adam":  # its steps, divided by a large floor, would be lost beside a start
        start = 0.0
    most = float(bounds.max())

    def gradient(offset: float) -> Gradient:
        if not turning or source.random() < 0.2:
            return Gradient(offset, base=base)
        steep = loss.smoothness if math.isfinite(loss.smoothness) else most / level
        low = loss.curvature if math.isfinite(loss.curvature) else -steep
        slope = source.choice([steep, low, source.uniform(low, steep)]) - base
        return Gradient(0.0, slope, start + source.uniform(-3, 3) * level, base)

    replaced, added = run.adjacency is REPLACE_ONE, run.adjacency is ADD_OR_REMOVE_ONE and source.random() < 0.5
    return SmallRun(
        run,
        releases,
        start,
        user,
        run.batches.records - (0 if added else len(user)),
        gradient(most),
        gradient(-most) if replaced else Gradient(),
        gradient(most * source.choice([0.0, -1.0, 1.0, source.uniform(-1, 1)])),
        tuple(bounds.tolist()),
    )


@dataclass(frozen=True)
class ComparedBound:
    """The ε that a theorem proves at `delta`, and the exact δ at that ε; `swapped`: which of the data sets comes first."""

    theorem: str
    swapped: bool
    delta: float
    epsilon: float
    exact: float
    error: float

    @property
    def violated(self) -> bool:
        """Whether the exact δ is larger than rounding and quadrature explain."""
        return not self.exact * (1 - 1e-9 - self.error) <= self.delta + 1e-14

    @property
    def ratio(self) -> float:
        """The exact δ over that for which ε is claimed; 0 where all that is claimed is ε = 0 or no finite ε."""
        return self.exact / self.delta


def compared(case: Case, theorems: Sequence[Theorem], deltas: Sequence[float] = DELTAS) -> list[ComparedBound]:
    """Compare every theorem that accepts the run, and `account` itself, with the exact law in both orders."""
    law, small, found = case.small.law, case.small, []
    try:
        report = account_by(theorems, small.run, DELTA, small.releases, case.group)
    except Unavailable:
        return []
    claims = [("account", DELTA, report.epsilon)]
    for one, known in zip(report.guarantees, report.epsilons, strict=True):
        claims += [(one.theorem.name, delta, known if delta == DELTA else one.epsilon(delta)) for delta in deltas]
    for swapped in (False, True):
        exact = law.delta(np.array([epsilon for *_, epsilon in claims]), swapped).tolist()
        for (name, delta, epsilon), found_delta in zip(claims, exact, strict=True):
            found.append(ComparedBound(name, swapped, delta, epsilon, found_delta, law.error))
    return found


def constructed(features: Features, source: Source, tries: int = 30) -> Case | None:
    """A run with these features whose exact law is known, or None if none is found."""
    for _ in range(tries):
        try:
            case = drawn(features, source)
            case.small.law  # noqa: B018
        except (NoSuchRun, InvalidInput, NoExactLaw):
            continue
        return case
    return None
