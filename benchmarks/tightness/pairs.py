"""Every two features together, beside exact laws: `python -m benchmarks.tightness.pairs [--comparisons N] [--seed S]`.

Small runs around every pair of feature values; every theorem that accepts such a run is compared with the exact law of what
the run releases, in both orders of the two data sets. A comparison is one (run, theorem, order, δ). Prints how many there
were, how many pairs met, which pairs no theorem accepted, for each theorem the largest ratio of exact and claimed δ, and
every violation.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict

import numpy as np

import lastiterate as li
from lastiterate.parallel import in_parallel
from lastiterate.progress import progress_bar, tracked
from lastiterate.testing.pairs import (
    IMPOSSIBLE,
    PAIRS,
    UNKNOWN,
    USUAL,
    ComparedBound,
    Features,
    Pair,
    around,
    compared,
    constructed,
    pairs_of,
)

POSSIBLE = [pair for pair in PAIRS if pair not in IMPOSSIBLE | UNKNOWN]
_AT_ONCE = 200  # runs between two looks at the number of comparisons


def tried(seed: int) -> tuple[Features, list[ComparedBound]] | None:
    """A run around one of the pairs, each in turn, and its comparisons; None where no such run was found."""
    source = np.random.default_rng(seed)
    pair = POSSIBLE[np.random.default_rng(seed // len(POSSIBLE)).permutation(len(POSSIBLE))[seed % len(POSSIBLE)]]
    case = constructed(around(pair, source), source)
    return None if case is None else (case.features, compared(case, li.theorems.ALL))


def unusual(features: Features) -> str:
    return ", ".join(f"{name}: {value}" for name, value in features.items() if value != USUAL[name])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    largest: dict[str, float] = defaultdict(float)
    met: set[Pair] = set()
    accepted: set[Pair] = set()
    violations, runs, seed = [], 0, chosen.seed * 10**6
    while counts.total() < chosen.comparisons:
        calls = [(one,) for one in range(seed, seed + _AT_ONCE)]
        seed += _AT_ONCE
        with progress_bar():
            answers = in_parallel(tried, calls, chosen.workers)
            for _, found in zip(tracked(calls, f"{counts.total()} comparisons"), answers, strict=True):
                if found is None:
                    continue
                features, rows = found
                runs += 1
                met.update(pairs_of(features))
                accepted.update(pairs_of(features) if rows else [])
                for row in rows:
                    counts[row.theorem] += 1
                    largest[row.theorem] = max(largest[row.theorem], row.ratio)
                violations += [f"{row} in {unusual(features)}" for row in rows if row.violated]
    print(f"{counts.total()} comparisons in {runs} runs")
    print(
        f"{len(met)} of {len(PAIRS)} pairs met; {len(IMPOSSIBLE)} no run has, of {len(UNKNOWN)} no exact law is known"
    )
    refused = [pair for pair in POSSIBLE if pair in met and pair not in accepted]
    print(f"{len(refused)} pairs met that no theorem accepted")
    print(*(f"  {one[1]} ({one[0]}) and {two[1]} ({two[0]})" for one, two in refused[:20]), sep="\n")
    print(f"{'theorem':32} {'comparisons':>12} {'exact/claimed':>14}")
    for name in (*(theorem.name for theorem in li.theorems.ALL), "account"):
        print(f"{name:32} {counts[name]:12d} {largest[name]:14.6g}")
    print(*violations, sep="\n")
    print(f"{len(violations)} violations")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
