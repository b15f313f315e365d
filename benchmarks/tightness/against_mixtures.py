"""Theorems about a record that contributes nothing, against exact mixtures: `… against_mixtures [seconds] [seed]`.

Linear steps x ← c·x + push + noise, no domain: given the record's turns the last iterate is normal, so that both laws are
mixtures of normal ones over all turns there may be, without a grid in the iterate. The record pushes by s, all others by
the same number between −s and s, and the neighbour's record not at all. Shuffled batches (new orders, one order, the last
of an epoch perhaps smaller), balls and bins, Poisson sums and batches of fixed size. Prints how many (run, theorem, ε)
were compared, the largest exact/bound for each theorem, and what lies above.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import lastiterate as li
from lastiterate.auditing.filtered import smooth_steps
from lastiterate.facts import own
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process

EPSILONS = np.array([0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0])
_POINTS, _DEVIATIONS = 20_001, 9.0
_LEAST = 1e-10  # smaller δ are lost in the sums
_ABOVE = 1 + 1e-6  # of the bound: the quadrature, where the two densities cross


@dataclass(frozen=True)
class Mixture:
    """Both laws of the last iterate: their means, how likely each is, and the deviation of all."""

    record: Floats
    neighbour: Floats
    weights: Floats
    deviation: float

    def deltas(self) -> Floats:
        """At each ε, the worse of both orders."""
        ends = np.concatenate([self.record, self.neighbour])
        far = _DEVIATIONS * self.deviation
        x = np.linspace(ends.min() - far, ends.max() + far, _POINTS)
        with_it, without = (self._density(x, means) for means in (self.record, self.neighbour))
        pairs = ((with_it, without), (without, with_it))
        sums = [[np.maximum(p - math.exp(one) * q, 0.0).sum() for p, q in pairs] for one in EPSILONS]
        return np.asarray(np.max(sums, axis=1) * (x[1] - x[0]))

    def _density(self, x: Floats, means: Floats) -> Floats:
        parts = np.exp(-0.5 * np.square((x - means[:, None]) / self.deviation))
        return np.asarray(self.weights @ parts / (self.deviation * math.sqrt(2 * math.pi)))


def random_mixture(source: np.random.Generator) -> tuple[Process, Mixture]:
    batches, turns, weights = _turns(source)
    steps, push = turns.shape[1], float(10 ** source.uniform(-1.0, 0.5))
    factor = float(source.choice([1.0, 0.99, 0.9, 0.6, 1.02]))
    replaced = isinstance(batches, li.Shuffled | li.FixedSize)
    others = float(source.choice([-push, 0.0, push, push * source.uniform(-1, 1)])) if replaced else 0.0
    left = factor ** np.arange(steps - 1, -1, -1.0)
    reached = turns @ left
    mixture = Mixture(reached * (push - others), reached * -others, weights, math.sqrt(float(np.square(left).sum())))
    return _process(batches, steps, push, factor), mixture


def _process(batches: Any, steps: int, push: float, factor: float) -> Process:
    def alike(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), steps)

    beside_others = 2.0 if isinstance(batches, li.FixedSize) else 1.0
    center = min(factor, 1.0)
    return Process(
        batches,
        sensitivity=alike(push),
        noise=alike(1.0),
        lipschitz=alike(factor),
        drift=alike(math.inf),
        retain=alike(1.0),
        sampled=alike(beside_others * push),
        diameter=math.inf,
        reason=own("of its map"),
        adjacency=li.ZERO_OUT,
        smooth=smooth_steps(steps, 1 - center, factor - center + 1e-12, 0.0, 0.0),
    )


def _turns(source: np.random.Generator) -> tuple[Any, Floats, Floats]:
    """Batches, every set of turns that a record may have, one a row, and how likely each is."""
    kind, batches = int(source.integers(5)), int(source.integers(2, 6))
    if kind < 2:
        steps, rate = int(source.integers(2, 9)), float(source.choice([0.1, 0.3, 0.5]))
        drawn = li.Poisson(100, rate) if kind else li.FixedSize(100, round(100 * rate))
        turns = np.array(list(product([0.0, 1.0], repeat=steps)))
        return drawn, turns, np.prod(np.where(turns > 0, rate, 1 - rate), axis=1)
    epochs = int(source.integers(1, 4))
    once = [(place,) * epochs for place in range(batches)]
    places = once if kind == 2 else list(product(range(batches), repeat=epochs))
    turns = np.zeros((len(places), batches * epochs))
    for row, chosen in enumerate(places):
        turns[row, np.arange(epochs) * batches + np.array(chosen)] = 1.0
    if kind == 4:
        return li.BallsAndBins(10 * batches, batches), turns, np.full(len(places), 1 / len(places))
    last = int(source.choice([10, 10, 7, 2]))
    records = 10 * (batches - 1) + last
    sizes = np.where(np.arange(batches) == batches - 1, last, 10) / records
    weights = sizes[[chosen[0] for chosen in places]] if kind == 2 else np.prod(sizes[np.array(places)], axis=1)
    return li.Shuffled(records, 10, each_epoch=kind == 3, last="smaller"), turns, weights


def compared(seed: int) -> Iterator[tuple[str, Floats]]:
    """For each theorem that applies, exact/bound at each ε."""
    process, mixture = random_mixture(np.random.default_rng(seed))
    exact = mixture.deltas()
    for theorem in li.theorems.ALL:
        answer = theorem.apply(process)
        if isinstance(answer, li.theorems.Guarantee):
            bound = np.asarray(answer.notion.delta(EPSILONS))
            yield theorem.name, np.where(exact > _LEAST, exact / np.maximum(bound, 1e-300), 0.0)


def main() -> None:
    seconds, seed = (float(value) for value in (*sys.argv[1:], *("120", "0")[len(sys.argv) - 1 :]))
    end, ratios, count, above = time.monotonic() + seconds, defaultdict[str, float](float), 0, []
    while time.monotonic() < end:
        for name, found in compared(int(seed)):
            count += found.size
            ratios[name] = max(ratios[name], float(found.max()))
            above += [f"seed {seed:.0f}, {name}: {found.max():.9f}"] if found.max() > _ABOVE else []
        seed += 1
    print(f"{count} comparisons, {len(above)} above", *above, sep="\n")
    for name, ratio in sorted(ratios.items(), key=lambda pair: -pair[1]):
        print(f"{ratio:10.7f}  {name}")


if __name__ == "__main__":
    main()
