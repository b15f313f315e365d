"""Every theorem of the catalogue against exact chains: `python -m benchmarks.tightness.against_chain [instances] [seed]`.

With `--adjacency zero_out` or `--adjacency add_or_remove_one`, for other neighbours.

Prints how many (run, epsilon) pairs were compared; for each theorem the smallest margin (bound − exact δ, where the error of
the grid is taken off the exact one) and the smallest ratio where the exact δ is above 1e-9; and every violation.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

import numpy as np

import lastiterate as li
from lastiterate.auditing.instances import random_instance
from lastiterate.curves.adjacency import Adjacency
from lastiterate.parallel import every_core, in_parallel
from lastiterate.progress import tracked
from lastiterate.testing.exact_laws import EPSILONS, beside


@dataclass
class Outcome:
    pairs: int = 0
    margins: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: math.inf))
    ratios: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: math.inf))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    violations: list[str] = field(default_factory=list)


def compared(seed: int, adjacency: Adjacency = li.REPLACE_ONE) -> list[tuple[str, float, float, str]]:
    """For each theorem that applies to this instance: margin, ratio, and the violation if there is one."""
    instance = random_instance(np.random.default_rng(seed), adjacency=adjacency)
    answers = [
        answer
        for theorem in li.theorems.ALL
        if isinstance(answer := theorem.apply(instance.process), li.theorems.Guarantee)
    ]
    return [(answer.theorem.name, *beside(answer, instance, f"seed {seed}")) for answer in answers]


def study(instances: int, first_seed: int, workers: int | None, adjacency: Adjacency = li.REPLACE_ONE) -> Outcome:
    outcome = Outcome()
    seeds = [(seed,) for seed in range(first_seed, first_seed + instances)]
    results = in_parallel(partial(compared, adjacency=adjacency), seeds, workers)
    for _, rows in zip(tracked(seeds, "instances"), results, strict=True):
        for name, margin, ratio, told in rows:
            outcome.pairs += len(EPSILONS)
            outcome.counts[name] += len(EPSILONS)
            outcome.margins[name] = min(outcome.margins[name], margin)
            outcome.ratios[name] = min(outcome.ratios[name], ratio)
            outcome.violations += [f"{name}, {told}"] if told else []
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="?", type=int, default=420)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("--adjacency", choices=[one.name.lower() for one in Adjacency], default="replace_one")
    chosen = parser.parse_args()
    found = study(chosen.instances, chosen.seed, every_core(), Adjacency[chosen.adjacency.upper()])
    print(f"{'theorem':32} {'compared':>9} {'least margin':>13} {'least ratio':>12}")
    for name in (theorem.name for theorem in li.theorems.ALL if theorem.name in found.counts):
        print(f"{name:32} {found.counts[name]:9d} {found.margins[name]:13.3g} {found.ratios[name]:12.6g}")
    smallest = min(found.margins.values())
    print(f"{chosen.instances * len(EPSILONS)} pairs of run and epsilon, from {chosen.instances} runs;", end=" ")
    print(f"{found.pairs} comparisons; smallest margin {smallest:.3g}")
    if found.violations:
        print(*found.violations, sep="\n")
    print("no bound lies below the exact chain" if not found.violations else "VIOLATIONS")
    return bool(found.violations)


if __name__ == "__main__":
    sys.exit(main())
