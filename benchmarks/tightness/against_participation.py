"""Hidden participation against exact chains: `python -m benchmarks.tightness.against_participation [seconds] [seed]`.

Random batches. For the shift engine, maps in one dimension are broken lines with slopes up to L; the record, its neighbour
and whoever is in its place push by constants within s of each other. With prepayment, maps are smooth staircases, and all
three push in directions that turn, or do not. Prints how many (chain, epsilon) pairs were compared, the largest exact/bound,
and how many lie above the bound.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import lastiterate as li
from benchmarks.tightness.participation_chains import FAILURE, random_participation
from lastiterate.auditing.chain import Chain, Map
from lastiterate.numerics.arrays import Floats
from lastiterate.theorems.participation import participation_window, prepaid_window

EPSILONS = np.append(0.0, np.geomspace(0.003, 12.0, 30))
ROUNDING = 1e-13


def broken_line(source: np.random.Generator, lipschitz: float, half: float) -> Map:
    """Through 0, with a few slopes that are often the largest allowed."""
    knots = np.linspace(-half, half, int(source.integers(2, 9)))
    slopes = lipschitz * source.choice([1.0, 1.0, 1.0, 0.0, -1.0, 0.5], len(knots) - 1)
    heights = np.append(0.0, np.cumsum(np.diff(knots) * slopes))
    return lambda x: np.interp(x, knots, heights - np.interp(0.0, knots, heights))


def moved(line: Map, by: float) -> Map:
    return lambda x: line(x) + by


def compared(source: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """(exact δ, its error, the bound) of a random chain."""
    steps, share = int(source.integers(1, 16)), int(source.choice([1, 2, 3, 5, 8]))
    push, lipschitz = float(source.choice([0.3, 0.5, 1.0, 2.0, 3.0])), float(source.choice([1.0, 1.0, 1.0, 0.9, 0.6]))
    half = 6.0 + 2 * push
    line = broken_line(source, lipschitz, half)
    places = source.choice([-0.5, 0.5, source.uniform(-0.5, 0.5)], 3)
    maps = [moved(line, push * place) for place in ([-0.5, 0.5, -0.5] if source.random() < 0.4 else places)]
    chain = Chain(*maps, np.ones(steps), np.full(steps, share / 10), -half, half, cells=150)
    run = li.Run(
        li.losses.general(smoothness=1 - lipschitz, strong_convexity=1 - lipschitz, gradient_sensitivity=share * push),
        li.FixedSize(records=10, batch_size=share),
        1.0,
        li.OnIterate(1.0),
        steps,
    )
    return *chain.delta_with_error(EPSILONS), np.asarray(participation_window(run.process, steps).delta(EPSILONS))


def compared_prepaid(source: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """The same in both orders, one row each, with prepayment and pushes that turn."""
    chain, run = random_participation(source)
    window = prepaid_window(run, len(run), FAILURE)
    return *chain.exact(EPSILONS), np.asarray(window.delta(EPSILONS)) + FAILURE


KINDS = {"shift engine": compared, "prepayment": compared_prepaid}


def study(kind: str, seconds: float, seed: int) -> tuple[int, int, float]:
    """How many pairs, how many above the bound, and the largest exact/bound."""
    source, until = np.random.default_rng(seed), time.process_time() + seconds
    pairs, above, closest = 0, 0, 0.0
    while time.process_time() < until:
        exact, error, bound = KINDS[kind](source)
        pairs += exact.size
        above += int((bound < exact - error - ROUNDING).sum())
        with np.errstate(divide="ignore"):
            ratios = np.where(exact > 1e-8, (exact - error) / bound, 0.0)
        closest = max(closest, float(ratios.max()))
    return pairs, above, closest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    chosen = parser.parse_args()
    wrong = 0
    for kind in KINDS:
        pairs, above, closest = study(kind, chosen.seconds, chosen.seed)
        print(
            f"{kind:14}{pairs} pairs of chain and epsilon; largest exact/bound {closest:.4f}; {above} above the bound"
        )
        wrong += above
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
