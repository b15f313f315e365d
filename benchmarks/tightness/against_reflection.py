"""Reflection against exact chains on an interval whose maps bend and whose pushes turn:
`python -m benchmarks.tightness.against_reflection [instances] [seed]`.

Every other run has steps that change. Prints how many (run, epsilon) pairs were compared, how many lie above the bound, and
the largest ratio exact/bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

import lastiterate as li
from lastiterate.auditing.chain import Chain, Map, cyclic_hazard, iid_hazard, shuffled_hazard
from lastiterate.facts import own
from lastiterate.numerics.arrays import Floats
from lastiterate.progress import tracked
from lastiterate.runs.process import Process
from lastiterate.theorems.reflection import REFLECTION

EPSILONS = np.append(0.0, np.geomspace(0.01, 6.0, 15))
ROUNDING = 1e-13

Case = Callable[[np.random.Generator], tuple[Process, Chain]]


def bent(source: np.random.Generator, half: float, slope: float) -> Map:
    """Linear in pieces, no piece steeper than `slope`, some falling."""
    knots = np.sort(source.uniform(-half, half, 4))
    x = np.concatenate([[-half], knots, [half]])
    steps = np.diff(x) * slope * source.choice([-1.0, 0.0, 1.0, 1.0, 1.0, source.uniform(-1, 1)], 5)
    y = source.uniform(-half, half) + np.append(0.0, np.cumsum(steps))
    return lambda at: np.interp(at, x, y)


def random_case(source: np.random.Generator) -> tuple[Process, Chain]:
    """The record's map is the others' and half a push; its neighbour's any bent map within a push of it."""
    diameter, push = float(10 ** source.uniform(-0.5, 0.8)), float(10 ** source.uniform(-1.2, 0.2))
    slope, steps, every = float(source.choice([1.0, 1.0, 0.8])), int(source.integers(1, 40)), int(source.integers(2, 7))
    without, other = bent(source, diameter / 2, slope), bent(source, diameter / 2, slope)

    def record(at: Floats) -> Floats:
        return without(at) + push / 2

    def neighbour(at: Floats) -> Floats:
        return np.clip(other(at), without(at) - push / 2, without(at) + push / 2)

    kind = int(source.integers(4))
    whole = every * max(steps // every, 1)
    rate = float(source.choice([0.1, 0.3]))
    batches, steps, hazard = [
        (li.FullBatch(records=10), steps, iid_hazard(1.0, steps)),
        (li.FixedSize(records=10, batch_size=round(10 * rate)), steps, iid_hazard(rate, steps)),
        (li.Cyclic(records=every, batch_size=1), steps, cyclic_hazard(every, int(source.integers(every)), steps)),
        (li.Shuffled(records=every, batch_size=1), whole, shuffled_hazard(every, whole)),
    ][kind]

    def alike(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), steps)

    per_epoch = batches.per_epoch if kind >= 2 else 1
    chain = Chain(
        without, record, neighbour, np.ones(steps), hazard, -diameter / 2, diameter / 2, per_epoch=per_epoch, cells=250
    )
    process = Process(
        batches,
        alike(push),
        alike(1.0),
        alike(slope),
        alike(np.inf),
        alike(1.0),
        alike(push),
        diameter,
        own("of its maps"),
    )
    return process, chain


def scheduled_case(source: np.random.Generator) -> tuple[Process, Chain]:
    """Two or three parts, each with its own push, noise and maps, or steps that all differ."""
    diameter, every = float(10 ** source.uniform(-0.5, 0.6)), int(source.integers(2, 5))
    kind, parts = int(source.integers(3)), int(source.integers(2, 4))
    every = every if kind == 2 else 1
    lengths = every * source.integers(1, 12 // every + 2, parts)
    noises, pushes = 10 ** source.uniform(-0.4, 0.4, parts), 10 ** source.uniform(-1.2, 0.2, parts)
    slopes = source.choice([1.0, 1.0, 0.8], parts)
    maps = [_three(source, diameter, *one) for one in zip(pushes.tolist(), slopes.tolist(), strict=True)]
    which, steps = np.repeat(np.arange(parts), lengths), int(lengths.sum())
    batches, hazard = [
        (li.FullBatch(records=10), iid_hazard(1.0, steps)),
        (li.FixedSize(records=10, batch_size=2), iid_hazard(0.2, steps)),
        (li.Shuffled(records=every, batch_size=1), shuffled_hazard(every, steps)),
    ][kind]
    noise, push, slope = noises[which], pushes[which], slopes[which]
    chain = Chain(
        *maps[0], noise, hazard, -diameter / 2, diameter / 2, per_epoch=every, cells=250,
        changes=tuple(maps[1:]), which=tuple(which.tolist()),
    )  # fmt: skip
    unknown, kept = np.full(steps, np.inf), np.ones(steps)
    return Process(batches, push, noise, slope, unknown, kept, push, diameter, own("of its maps")), chain


def _three(source: np.random.Generator, diameter: float, push: float, slope: float) -> tuple[Map, Map, Map]:
    without, other = bent(source, diameter / 2, slope), bent(source, diameter / 2, slope)
    away = source.random() < 0.5

    def record(at: Floats) -> Floats:
        return without(at) + push / 2

    def neighbour(at: Floats) -> Floats:
        return without(at) - push / 2 if away else np.clip(other(at), without(at) - push / 2, without(at) + push / 2)

    return without, record, neighbour


def compared(seed: int, case: Case = random_case) -> Floats:
    """exact/bound at each ε, the error of the grid taken off."""
    process, chain = case(np.random.default_rng(seed))
    exact, error = chain.delta_with_error(EPSILONS)
    return np.maximum(exact - error - ROUNDING, 0.0) / np.asarray(REFLECTION.notion(process).delta(EPSILONS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="?", type=int, default=200)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.instances)
    cases = (random_case, scheduled_case)
    ratios = np.array([compared(seed, cases[seed % 2]) for seed in tracked(seeds, "chains")])
    above = int((ratios > 1).sum())
    print(f"{ratios.size} compared, {above} above the bound, largest exact/bound {ratios.max():.6f}")
    for seed in np.flatnonzero((ratios > 1).any(axis=1)).tolist():
        print(f"above the bound: seed {chosen.seed + seed}, {ratios[seed]}")
    return min(above, 1)


if __name__ == "__main__":
    sys.exit(main())
