"""Random processes, runs and instances to which a given theorem applies: a law is tried on each theorem of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

import lastiterate as li
from lastiterate.algorithms.process import Process
from lastiterate.algorithms.updates import Update
from lastiterate.auditing.filtered_instances import random_filtered, random_update
from lastiterate.auditing.instances import own_place_instance, random_instance
from lastiterate.kernel.prepaid import Smooth
from lastiterate.privacy.adjacency import Adjacency
from lastiterate.theorems.theorem import PLAIN_STEPS
from processes import process

BATCHES = (
    li.FullBatch(records=120),
    li.Cyclic(records=120, batch_size=30),
    li.Shuffled(records=120, batch_size=30, each_epoch=False),
    li.Shuffled(records=120, batch_size=30),
    li.FixedSize(records=120, batch_size=30),
    li.Poisson(records=120, rate=0.25),
)
OWN_PLACES = (li.BallsAndBins(120, 4), li.BallsAndBins(120, 4), li.BallsAndBins(120, 1), li.Poisson(120, 0.25))
# Bounds on profiles: they may lie below every Gaussian one.
OF_PROFILES = ("block-mixing", "reflection", "regularised-mixing", "nonlinear-contraction", "asoodeh2023")
# Batches that are random, and known to be.
OF_SAMPLING = (
    *OF_PROFILES,
    "balls-and-bins",
    "window-tail",
    "bok2024/random",
    "random-order",
    "hidden-",
    "ye2022/random",
)
# Searched on grids: a little more noise may end on a grid that is a little worse.
SEARCHED = (
    *OF_PROFILES,
    "balls-and-bins/",
    "window-tail",
    "bok2024/random",
    "hidden-participation",
    "linear-optimiser",
)
_MOST_DRAWS = 5_000
_SMALL = 1.5  # a domain, in units of the noise, on which everything is quick


def random_process(source: np.random.Generator, batches: Any, alike: bool, most_steps: int = 60) -> Process:
    """Steps alike or not, contracting or expanding, bounded or not."""
    steps = int(source.integers(1, source.choice([5, most_steps, most_steps])))
    size = 1 if alike else steps
    lipschitz = source.uniform(0.8, source.choice([1.0, 1.0, 1.15]), size)
    numbers = {
        "sensitivity": source.uniform(0.05, 0.5, size),
        "noise": source.uniform(0.5, 2.0, size),
        "lipschitz": np.where(source.random(size) < 0.3, 1.0, lipschitz),
        "drift": source.uniform(0.5, 3.0, size),
        "retain": np.full(size, source.choice([1.0, 0.7])),
    }
    values = {name: value[0] if alike else value for name, value in numbers.items()}
    diameter, dimension = float(source.choice([math.inf, 0.3, 2.0, 10.0])), source.choice([None, 3])
    found = process(batches, steps, diameter=diameter, dimension=dimension, **values)
    smooth = (
        random_smooth(source, found, alike) if math.isinf(diameter) and source.random() < 0.8 else "it was drawn so"
    )
    return replace(found, smooth=smooth)


def random_smooth(source: np.random.Generator, given: Process, alike: bool) -> Smooth:
    """A push that turns slowly, and steps that keep nearly all of what is prepaid."""
    size = 1 if alike else len(given)
    radius = np.broadcast_to(
        source.uniform(0.0, 0.08, size)[0] if alike else source.uniform(0.0, 0.08, size), len(given)
    )
    center = changed_values(given.lipschitz, lambda values: values - radius[: len(values)])
    return Smooth(
        center=center,
        radius=radius,
        movement=changed_values(given.sensitivity, lambda values: values * 5.0),
        decay=np.broadcast_to(source.choice([0.0, 0.0, 0.05]), len(given)),
        rough=changed_values(given.sensitivity, lambda values: values * source.choice([0.0, 1e-4])),
        turning=float(source.choice([0.0, 0.01])),
        rank=2,
        start=float(source.choice([0.0, 3.0])),
    )


def slowly_growing(source: np.random.Generator) -> Process:
    """Equal steps that may move iterates apart a little, mostly whole epochs of several batches."""
    batches = BATCHES[3] if source.random() < 0.8 else li.Shuffled(records=30, batch_size=30)
    more = int(source.random() < 0.2)
    steps, factor = batches.per_epoch * int(source.integers(1, 6)) + more, float(source.uniform(1.001, 1.05))
    sensitivity, noise = float(source.uniform(0.05, 0.5)), float(source.uniform(0.5, 2.0))
    found = process(batches, steps, sensitivity, noise, factor)
    decay = np.broadcast_to(source.choice([0.0, 0.0, 0.0, 0.05]), steps)
    smooth = replace(random_smooth(source, found, alike=True), decay=decay)
    center, radius = np.broadcast_to(1.0, steps), np.broadcast_to(factor - 1, steps)
    return replace(found, smooth=replace(smooth, center=center, radius=radius))


def any_process(source: np.random.Generator) -> Process:
    """Of any kind, with whole epochs, releases and unknown constants now and then."""
    batches = BATCHES[int(source.integers(len(BATCHES)))]
    if source.random() < 0.15:
        batches = li.Cyclic(records=600, batch_size=10)  # long enough for one pass
    if source.random() < 0.05:
        batches = (li.Cyclic, li.Shuffled)[int(source.random() < 0.4)](records=30, batch_size=30)
    given = random_process(source, batches, alike=bool(source.random() < 0.7))
    if source.random() < 0.03:
        given = slowly_growing(source)
    if source.random() < 0.1:
        given = replace(given, releases=(1,) if len(given) > 1 else ())
    if source.random() < 0.1:
        given = replace(given, lipschitz=np.broadcast_to(np.inf, len(given)))
    if source.random() < 0.1:
        given = replace(given, drift=np.broadcast_to(np.inf, len(given)))
    if source.random() < 0.1 and isinstance(batches, li.Poisson):
        given = replace(given, sampled=np.broadcast_to(np.inf, len(given)))
    if source.random() < 0.1:
        factor = source.choice([30.0, 1e40])
        given = replace(changed(given, lambda values: values * factor, "lipschitz"), smooth="it is far from smooth")
    if source.random() < 0.05:
        given = changed(given, lambda values: values * 1e-3, "noise")
    return given


def draws(seed: int) -> Iterator[Process]:
    source = np.random.default_rng(seed)
    for _ in range(_MOST_DRAWS):
        yield any_process(source)


def with_updates(seed: int) -> Iterator[Process]:
    """The same with momentum, or an average."""
    source = np.random.default_rng([seed, 1])
    for given in draws(seed):
        low, wide = float(source.choice([0.0, 0.02])), float(10 ** source.uniform(-3, -0.5))
        drawn = random_update(source) if source.random() < 0.5 else (li.SGD(momentum=0.6), li.LAST)
        yield replace(given, update=Update(*drawn, (low + wide / 2, wide / 2)))


def there_or_not(seed: int) -> Iterator[Process]:
    """Neighbours without the record; mostly balls and bins, whose batches are of usual size."""
    source = np.random.default_rng(seed)
    for _ in range(_MOST_DRAWS):
        batches = OWN_PLACES[int(source.integers(len(OWN_PLACES)))]
        given = random_process(source, batches, alike=bool(source.random() < 0.7), most_steps=30)
        if source.random() < 0.7:
            given = given.like_the_first(batches.per_epoch * int(source.integers(1, 9)))
        if source.random() < 0.1:
            given = replace(given, releases=(1,) if len(given) > 1 else ())
        if source.random() < 0.1:
            given = replace(given, lipschitz=np.broadcast_to(source.choice([1e40, np.inf]), len(given)))
        if source.random() < 0.1:
            given = replace(given, sampled=np.broadcast_to(np.inf, len(given)))
        if source.random() < 0.1:
            given = changed(given, lambda values: values * 1e-3, "noise")
        yield replace(given, adjacency=li.ZERO_OUT if source.random() < 0.5 else li.ADD_OR_REMOVE_ONE)


def draws_for(theorem: li.theorems.Theorem, seed: int) -> Iterator[Process]:
    """With steps and neighbours that the theorem is about."""
    if theorem.updates is not PLAIN_STEPS:
        return with_updates(seed)
    return draws(seed) if li.REPLACE_ONE in theorem.adjacencies else there_or_not(seed)


def holds(theorem: li.theorems.Theorem, given: Process) -> bool:
    """Whether nothing fails; assumptions that take long to look at come last, and mostly need not be."""
    return all(one.failure(given) is None for one in (theorem.updates, *theorem.assumptions))


@cache
def examples(theorem: li.theorems.Theorem, count: int, seed: int = 3) -> tuple[Process, ...]:
    """Processes to which the theorem applies."""
    found = []
    for given in draws_for(theorem, seed):
        if holds(theorem, given) and isinstance(answer_about(theorem, given), li.theorems.Guarantee):
            found.append(given)
            if len(found) == count:
                return tuple(found)
    raise AssertionError(f"{theorem.name} applies to {len(found)} of {_MOST_DRAWS} processes")


@lru_cache(maxsize=1000)
def _drawn_instance(seed: int, adjacency: Adjacency, most_steps: int, drawn: Any) -> Any:
    """Theorems share those that apply to several: an exact law takes longer than a bound."""
    source = np.random.default_rng(seed)
    if drawn is random_instance:
        return drawn(source, most_steps, adjacency)
    instance = drawn(source, most_steps)
    if drawn is own_place_instance:
        return instance
    return replace(instance, process=replace(instance.process, adjacency=adjacency))


@lru_cache(maxsize=100)
def instances(
    theorem: li.theorems.Theorem, count: int, adjacency: Adjacency = li.REPLACE_ONE, small: bool = False
) -> list[tuple[int, Any]]:
    """Exact one-dimensional runs to which the theorem applies, with their seeds."""
    found: list[tuple[int, Any]] = []
    replaced = li.REPLACE_ONE in theorem.adjacencies
    drawn: Any = random_filtered
    if theorem.updates is PLAIN_STEPS:
        drawn = random_instance if replaced else own_place_instance
    for seed in range(50_000, 50_000 + _MOST_DRAWS):
        instance = _drawn_instance(seed, adjacency, 30 if small else 120, drawn)
        if small and _SMALL < instance.process.diameter < math.inf:
            continue
        if holds(theorem, instance.process):
            found.append((seed, instance))
            if len(found) == count:
                return found
    raise AssertionError(f"{theorem.name} applies to {len(found)} instances only")


@lru_cache(maxsize=100)
def answer_about(theorem: li.theorems.Theorem, given: Process) -> li.theorems.Guarantee | li.theorems.Inapplicable:
    """What it says of this very process: every law asks about the same examples, and beside them about others."""
    return theorem.apply(given)


def epsilon(theorem: li.theorems.Theorem, given: Process, delta: float = 1e-5) -> float:
    """∞ where the theorem says nothing."""
    answer = answer_about(theorem, given)
    return answer.epsilon(delta) if isinstance(answer, li.theorems.Guarantee) else math.inf


def slack(theorem: li.theorems.Theorem) -> float:
    """Searched bounds move by up to a hundredth with the grid."""
    return 1e-2 if theorem.name.startswith(SEARCHED) else 1e-9


def changed(given: Process, change: Callable[[np.ndarray], np.ndarray], *names: str) -> Process:
    """The process with these quantities changed; what is stored once stays so."""
    return replace(given, **{name: changed_values(getattr(given, name), change) for name in names})


def in_other_units(given: Process, factor: float) -> Process:
    """All lengths on the iterate times this factor."""
    scaled = changed(given, lambda values: values * factor, "sensitivity", "noise", "drift", "sampled")
    smooth = given.smooth
    if isinstance(smooth, Smooth):
        lengths = {name: changed_values(getattr(smooth, name), lambda x: x * factor) for name in ("movement", "rough")}
        smooth = replace(smooth, turning=smooth.turning / factor, start=smooth.start * factor, **lengths)
    return replace(scaled, diameter=given.diameter * factor, smooth=smooth)


def changed_values(values: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    if values.strides == (0,):
        return np.broadcast_to(change(values[:1])[0], values.shape)
    return change(values)


def guarantees(given: Process, besides: tuple[str, ...] = ()) -> list[li.theorems.Guarantee]:
    """Of all theorems but those whose names begin like this."""
    asked = [theorem for theorem in li.CATALOGUE if not theorem.name.startswith(besides)]
    return [answer for theorem in asked if isinstance(answer := theorem.apply(given), li.theorems.Guarantee)]
