"""Prepayment against exact chains whose pushes turn: `python -m benchmarks.tightness.against_turning [chains] [seed]`.

Prints how many comparisons were made (of either order, at 25 ε, for a non-linear chain; of μ, for a linear one in the
plane), the largest exact/bound where the exact δ is above 1e-9 and less the error of the grid, and how many lie above the
bound: by the library's path and kernel, by the statement written out by hand, and with the turning of pushes left out,
which is wrong, to see that chains can tell.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.tightness.plane_chains import random_plane_chain
from benchmarks.tightness.prepaid_by_hand import Certificate, Facts, certificate, plain
from benchmarks.tightness.prepaid_by_library import by_library
from benchmarks.tightness.turning_chains import random_chain
from lastiterate.numerics.arrays import Floats
from lastiterate.progress import tracked

EPSILONS = np.append(0.0, np.geomspace(0.003, 8.0, 24))
ROUNDING = 1e-13
CLEAR = 1e-9
PLANES = 10  # linear chains in the plane for each non-linear one

WRONG = "turning left out"

Prove = Callable[[Facts], Certificate]


@dataclass
class Outcome:
    """`better`: of the chains, where prepayment proves less than the shift engine somewhere."""

    compared: int = 0
    chains: int = 0
    better: int = 0
    largest: float = 0.0
    above: int = 0

    def add(self, exact: Floats, bound: Floats, without: Floats) -> None:
        self.compared += exact.size
        self.chains += 1
        self.better += bool((bound < 0.99 * without).any())
        self.above += int((exact > bound).sum())
        clear = exact > CLEAR
        if clear.any():
            self.largest = max(self.largest, float((exact[clear] / np.broadcast_to(bound, exact.shape)[clear]).max()))


def study(seeds: range, proves: dict[str, Prove]) -> dict[tuple[str, str], Outcome]:
    found: dict[tuple[str, str], Outcome] = {}
    for seed in tracked(seeds, "chains"):
        for kind, how, exact, bound, without in (*on_a_line(seed, proves), *in_the_plane(seed, proves)):
            found.setdefault((how, kind), Outcome()).add(exact, bound, without)
    return found


def on_a_line(seed: int, proves: dict[str, Prove]) -> Iterator[tuple[str, str, Floats, Floats, Floats]]:
    chain = random_chain(np.random.default_rng(seed))
    exact, error = chain.exact(EPSILONS)
    without = chain.bound(plain)(EPSILONS)
    for how, prove in proves.items():
        yield chain.name, how, np.maximum(exact - error - ROUNDING, 0.0), chain.bound(prove)(EPSILONS), without


def in_the_plane(seed: int, proves: dict[str, Prove]) -> Iterator[tuple[str, str, Floats, Floats, Floats]]:
    for index in range(PLANES):
        chain = random_plane_chain(np.random.default_rng([seed, index]))
        exact, without = np.full(1, chain.mu * (1 - ROUNDING)), np.full(1, plain(chain.facts).mu)
        for how, prove in proves.items():
            yield "plane, μ", how, exact, np.full(1, prove(chain.facts).mu), without


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chains", nargs="?", type=int, default=1000)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    chosen = parser.parse_args()
    proves: dict[str, Prove] = {"library": by_library, "by hand": certificate, WRONG: partial(certificate, shrink=0.0)}
    found = study(range(chosen.seed, chosen.seed + chosen.chains), proves)
    print(f"{'':18}{'chains':12}{'':>8} {'better':>8} {'compared':>9} {'largest ratio':>14} {'above':>6}")
    for (how, kind), one in sorted(found.items()):
        print(f"{how:18}{kind:12}{one.chains:8d} {one.better:8d} {one.compared:9d} {one.largest:14.6f} {one.above:6d}")
    above = sum(one.above for (how, _), one in found.items() if how != WRONG)
    print("no bound lies below an exact chain" if not above else "VIOLATIONS")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
