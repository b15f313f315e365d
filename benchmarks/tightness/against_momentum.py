"""Theorems about linear optimisers against exact laws: `python -m benchmarks.tightness.against_momentum [instances] [seed]`.

Quadratic losses with any momentum and any average, many steps; and losses that bend with pushes that turn, few steps. Prints
how many pairs were compared, for each theorem the smallest ratio of bound and exact δ, and every violation.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.tightness.momentum_chains import momentum_instance
from lastiterate.auditing.filtered import random_filtered
from lastiterate.progress import tracked
from lastiterate.testing.exact_laws import EPSILONS, beside


def compared(drawn: Any, seed: int) -> list[tuple[str, float, str]]:
    """For each theorem that applies to this instance: the ratio, and the violation if there is one."""
    instance = drawn(np.random.default_rng(seed))
    answers = [theorem.apply(instance.process) for theorem in li.theorems.ALL]
    found = [one for one in answers if isinstance(one, li.theorems.Guarantee)]
    return [(one.theorem.name, *beside(one, instance, f"{drawn.__name__}, seed {seed}")[1:]) for one in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="?", type=int, default=300)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    chosen = parser.parse_args()
    wrong = 0
    for drawn, what in (
        (random_filtered, "quadratic losses"),
        (momentum_instance, "losses that bend, pushes that turn"),
    ):
        ratios: dict[str, float] = defaultdict(lambda: math.inf)
        counts: dict[str, int] = defaultdict(int)
        for seed in tracked(range(chosen.seed, chosen.seed + chosen.instances), what):
            for name, ratio, told in compared(drawn, seed):
                ratios[name], counts[name] = min(ratios[name], ratio), counts[name] + len(EPSILONS)
                wrong += bool(told)
                if told:
                    print(f"{name}, {told}")
        print(f"{what}: {sum(counts.values())} comparisons, {chosen.instances} runs")
        for name, count in sorted(counts.items()):
            print(f"  {name:32} {count:9d} {ratios[name]:12.6g}")
    print("no bound lies below the exact law" if not wrong else "VIOLATIONS")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
