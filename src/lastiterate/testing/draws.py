"""Random processes of every kind: with steps alike or not, any batches, releases, unknown constants now and then.

What two features do together is seen only where both are drawn, so each of them is in a good part of all processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lastiterate.auditing.filtered import random_update
from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, ZERO_OUT
from lastiterate.facts import own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import BallsAndBins, Batches, Cyclic, FixedSize, FullBatch, Poisson, Shuffled, Turns
from lastiterate.runs.optimizers import LAST, SGD
from lastiterate.runs.process import Process, Update

BATCHES: tuple[Batches, ...] = (
    FullBatch(records=120),
    Cyclic(records=120, batch_size=30),
    Shuffled(records=120, batch_size=30, each_epoch=False),
    Shuffled(records=120, batch_size=30),
    FixedSize(records=120, batch_size=30),
    Poisson(records=120, rate=0.25),
)
MOST_DRAWS = 5_000


def random_batches(source: np.random.Generator) -> Batches:
    """Draw 1 to 6 batches of about 30 records of any usual kind, sometimes with a smaller last one."""
    count, kind = int(source.integers(1, 7)), int(source.integers(6))
    if kind == 0:
        return FullBatch(records=120)
    if kind == 4:
        return FixedSize(records=120, batch_size=120 // (count + 1))
    if kind == 5:
        return Poisson(records=120, rate=1 / (count + 1))
    if kind == 1 and source.random() < 0.4:
        return Cyclic(records=600, batch_size=10)  # long enough for one pass
    missing = int(source.choice([0, 12, 24])) if count > 1 else 0
    records, last = 30 * count - missing, "smaller" if missing else None
    if kind == 1:
        return Cyclic(records=records, batch_size=30, last=last)
    return Shuffled(records=records, batch_size=30, each_epoch=kind == 3, last=last)


def random_process(source: np.random.Generator, batches: Batches, alike: bool, most_steps: int = 60) -> Process:
    """Draw a process: steps alike or not, contracting or not, bounded or not, in whole epochs or not."""
    steps = int(source.integers(1, source.choice([5, most_steps, most_steps])))
    if source.random() < 0.4 and batches.per_epoch <= most_steps:
        steps = -(-steps // batches.per_epoch) * batches.per_epoch
    size = 1 if alike else steps
    lipschitz = source.uniform(0.8, source.choice([1.0, 1.0, 1.15]), size)
    numbers = {
        "sensitivity": source.uniform(0.05, 0.5, size),
        "noise": source.uniform(0.5, 2.0, size),
        "lipschitz": np.where(source.random(size) < 0.3, 1.0, lipschitz),
        "drift": source.uniform(0.5, 3.0, size),
        "retain": np.where(source.random(size) < 0.2 * (source.random() < 0.5), 0.95, source.choice([1.0, 0.7])),
    }
    values: dict[str, Any] = {name: value[0] if alike else value for name, value in numbers.items()}
    diameter = float(source.choice([math.inf, 0.3, 2.0, 10.0]))
    dimension = (None, 3)[int(source.choice([0, 1]))]
    found = process(batches, steps, diameter=diameter, dimension=dimension, **values)
    if batches.uneven and source.random() < 0.7:
        found = with_smaller_last_batch(found, on_sum=bool(source.random() < 0.5))
    smooth = random_smooth(source, found) if math.isinf(diameter) and source.random() < 0.8 else own("it was drawn so")
    return replace(found, smooth=smooth)


def with_smaller_last_batch(given: Process, on_sum: bool) -> Process:
    """Give each epoch a smaller last batch, divided by its own size or, with noise on the sum, as all others.

    Its own size: its records push farther. As all others: there are fewer of them, so that a step contracts less.
    """
    batches, share = given.batches, given.batches.last_size / given.batches.largest

    def at_the_last(values: Floats, change: Callable[[Floats], Floats]) -> Floats:
        last = batches.pattern(0.0, 1.0, len(given)) > 0
        return np.where(last, change(values), values) if last.any() else values

    if on_sum:
        return replace(given, lipschitz=at_the_last(given.lipschitz, lambda values: 1 + share * (values - 1)))
    farther: dict[str, Any] = {
        name: at_the_last(getattr(given, name), lambda values: values / share) for name in ("sensitivity", "sampled")
    }
    return replace(given, **farther)


def random_smooth(source: np.random.Generator, given: Process) -> Smooth:
    """Draw facts on smoothness: a push that turns slowly, and steps that keep nearly all of what is prepaid."""
    size = 1 if given.constant else len(given)
    radius = np.broadcast_to(source.uniform(0.0, 0.08, size), len(given))
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
    """Draw equal steps that may move iterates apart a little, mostly in whole epochs of several batches."""
    batches: Batches = BATCHES[3] if source.random() < 0.8 else Shuffled(records=30, batch_size=30)
    more = int(source.random() < 0.2)
    steps, factor = batches.per_epoch * int(source.integers(1, 6)) + more, float(source.uniform(1.001, 1.05))
    sensitivity, noise = float(source.uniform(0.05, 0.5)), float(source.uniform(0.5, 2.0))
    found = process(batches, steps, sensitivity, noise, factor)
    decay = np.broadcast_to(source.choice([0.0, 0.0, 0.0, 0.05]), steps)
    smooth = replace(random_smooth(source, found), decay=decay)
    center, radius = np.broadcast_to(1.0, steps), np.broadcast_to(factor - 1, steps)
    return replace(found, smooth=replace(smooth, center=center, radius=radius))


def released_on_the_way(source: np.random.Generator, given: Process) -> Process:
    """Return the process with one to three checkpoints at random places."""
    if len(given) == 1:
        return given
    after = source.integers(1, len(given), int(source.integers(1, 4)))
    return replace(given, releases=tuple(np.unique(after).tolist()))


def any_process(source: np.random.Generator) -> Process:
    """Draw a process of any kind, sometimes with checkpoints, earlier releases or unknown constants."""
    batches = random_batches(source)
    given = random_process(source, batches, alike=bool(source.random() < 0.5))
    if source.random() < 0.03:
        given = slowly_growing(source)
    if source.random() < 0.2:
        given = released_on_the_way(source, given)
    if source.random() < 0.1:
        given = replace(given, prior_mu=float(source.uniform(0.05, 0.5)))
    if source.random() < 0.1:
        given = replace(given, lipschitz=np.broadcast_to(np.inf, len(given)))
    if source.random() < 0.1:
        given = replace(given, drift=np.broadcast_to(np.inf, len(given)))
    if source.random() < 0.1 and isinstance(batches, Poisson):
        given = replace(given, sampled=np.broadcast_to(np.inf, len(given)))
    if source.random() < 0.1:
        factor = source.choice([30.0, 1e40])
        given = replace(
            changed(given, lambda values: values * factor, "lipschitz"), smooth=own("it is far from smooth")
        )
    if source.random() < 0.05:
        given = changed(given, lambda values: values * 1e-3, "noise")
    return given


def draws(seed: int) -> Iterator[Process]:
    source = np.random.default_rng(seed)
    for _ in range(MOST_DRAWS):
        yield any_process(source)


def with_updates(seed: int) -> Iterator[Process]:
    """Yield processes with momentum or an average, without a domain: projections are no linear filters."""
    source = np.random.default_rng([seed, 1])
    for given in draws(seed):
        low, wide = float(source.choice([0.0, 0.02])), float(10 ** source.uniform(-3, -0.5))
        drawn = random_update(source) if source.random() < 0.5 else (SGD(momentum=0.6), LAST)
        yield replace(given, diameter=math.inf, update=Update(*drawn, (low + wide / 2, wide / 2)))


def there_or_not(seed: int) -> Iterator[Process]:
    """Yield processes whose neighbour lacks the record, mostly with balls and bins."""
    source = np.random.default_rng(seed)
    for _ in range(MOST_DRAWS):
        batches: Batches = BallsAndBins(120, int(source.integers(1, 7)))
        if source.random() < 0.25:
            batches = Poisson(120, 0.25)
        given = random_process(source, batches, alike=bool(source.random() < 0.5), most_steps=30)
        if source.random() < 0.1:
            given = released_on_the_way(source, given)
        if source.random() < 0.1:
            given = replace(given, prior_mu=float(source.uniform(0.05, 0.5)))
        if source.random() < 0.1:
            given = replace(given, lipschitz=np.broadcast_to(source.choice([1e40, np.inf]), len(given)))
        if source.random() < 0.1:
            given = replace(given, sampled=np.broadcast_to(np.inf, len(given)))
        if source.random() < 0.1:
            given = changed(given, lambda values: values * 1e-3, "noise")
        yield replace(given, adjacency=ZERO_OUT if source.random() < 0.5 else ADD_OR_REMOVE_ONE)


def changed(given: Process, change: Callable[[Floats], Floats], *names: str) -> Process:
    """The process with these quantities changed; what is stored once stays so."""
    values: dict[str, Any] = {name: changed_values(getattr(given, name), change) for name in names}
    return replace(given, **values)


def in_other_units(given: Process, factor: float) -> Process:
    """Return the process with all lengths on the iterate multiplied by `factor`."""
    scaled = changed(given, lambda values: values * factor, "sensitivity", "noise", "drift", "sampled")
    smooth = given.smooth
    if isinstance(smooth, Smooth):
        lengths: dict[str, Any] = {
            name: changed_values(getattr(smooth, name), lambda x: x * factor) for name in ("movement", "rough")
        }
        smooth = replace(smooth, turning=smooth.turning / factor, start=smooth.start * factor, **lengths)
    return replace(scaled, diameter=given.diameter * factor, smooth=smooth)


def changed_values(values: Floats, change: Callable[[Floats], Floats]) -> Floats:
    if values.strides == (0,):
        return np.broadcast_to(change(values[:1])[0], values.shape)
    return change(values)


# Processes from their numbers, and their exact laws on quadratic losses.


def spread(value: Any, steps: int) -> Floats:
    return np.broadcast_to(np.asarray(value, float), steps)


def process(
    batches: Batches,
    steps: int,
    sensitivity: Any = 1.0,
    noise: Any = 1.0,
    lipschitz: Any = 1.0,
    diameter: float = math.inf,
    drift: Any = math.inf,
    releases: tuple[int, ...] = (),
    retain: Any = 1.0,
    dimension: int | None = None,
) -> Process:
    per_step = (sensitivity, noise, lipschitz, drift, retain, sensitivity)
    push, spreads, factor, drifts, retained, sampled = (spread(value, steps) for value in per_step)
    reason = own("the test")
    return Process(batches, push, spreads, factor, drifts, retained, sampled, diameter, reason, releases, dimension)


def exact_mu_of_quadratics(given: Process) -> float:
    """φ(x) = L·x, φ'(x) = L·x + s, every step: two Gaussians, whose means drift apart as their variance grows.

    After a release both start again from the same point. In a fixed order, the record whose place is the worst.
    """
    every = given.batches.per_epoch if given.batches.turns is Turns.FIXED_ORDER else 1
    turns = [np.arange(len(given)) % every == place for place in range(min(every, len(given)))]
    return max(_mu_of_turns(given, given.sensitivity * seen) for seen in turns)


def _mu_of_turns(given: Process, pushes: Floats) -> float:
    squares = 0.0
    for first, last in given.stretches:
        gap, variance = 0.0, 0.0
        for place in range(first, last):
            factor = float(given.lipschitz[place])
            gap = factor * gap + float(pushes[place])
            variance = factor**2 * variance + float(given.noise[place]) ** 2
        squares += gap**2 / variance
    return math.sqrt(squares)
