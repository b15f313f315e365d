"""What exact instances cost beside what is proved, and how long a chain takes: `make lower`."""

from __future__ import annotations

import statistics
import time

import numpy as np

import lastiterate as li
from lastiterate.auditing.chain import Chain, iid_hazard

DELTA = 1e-6
CONVEX = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0)
STRONGLY_CONVEX = li.losses.general(smoothness=1.0, strong_convexity=0.01, gradient_sensitivity=1.0)
NETWORK = li.losses.network(clip=0.5)
FULL, CYCLIC = li.FullBatch(records=1000), li.Cyclic(records=1000, batch_size=50)
SHUFFLED, RANDOM = li.Shuffled(records=1000, batch_size=50), li.FixedSize(records=1000, batch_size=50)


def noise(batches: object) -> li.OnIterate:
    """Ten times the sensitivity."""
    return li.OnIterate(std=10 / batches.divisor)  # type: ignore[attr-defined]


def run(loss: object, batches: object, diameter: float | None = None, decay: float = 0.0, steps: int = 2000) -> li.Run:
    """`diameter` in units of the noise."""
    std = noise(batches)
    unbounded = li.Unbounded(dimension=1) if decay else li.Unbounded()
    domain = unbounded if diameter is None else li.Ball(radius=float(std.std) * diameter / 2)  # type: ignore[arg-type]
    return li.Run(loss, batches, 1.0, std, steps, domain, weight_decay=decay)  # type: ignore[arg-type]


RUNS = {
    "full batches, strongly convex": run(STRONGLY_CONVEX, FULL),
    "full batches, convex": run(CONVEX, FULL),
    "full batches, convex, ball of 10 noises": run(CONVEX, FULL, 10.0),
    "full batches, convex, ball of 1 noise": run(CONVEX, FULL, 1.0),
    "cyclic, strongly convex": run(STRONGLY_CONVEX, CYCLIC),
    "cyclic, convex, ball of 10 noises": run(CONVEX, CYCLIC, 10.0),
    "a new order each epoch, strongly convex": run(STRONGLY_CONVEX, SHUFFLED),
    "random batches, convex": run(CONVEX, RANDOM),
    "random batches, strongly convex": run(STRONGLY_CONVEX, RANDOM),
    "random batches, convex, ball of 3 noises": run(CONVEX, RANDOM, 3.0),
    "random batches of 10, network, ball of 1 noise": run(NETWORK, li.FixedSize(1000, 10), 1.0),
    "full batches of 4, network, decay 0.9": run(NETWORK, li.FullBatch(records=4), decay=0.9),
}


def sandwiches() -> None:
    print(f"2000 steps, noise ten times the sensitivity, delta = {DELTA:g}")
    print(f"{'':46} {'at least':>9} {'at most':>9} {'ratio':>8} {'by':18} {'seconds':>7}")
    for name, one in RUNS.items():
        report = li.account(one, DELTA)
        started = time.perf_counter()
        lower = report.lower_bound.epsilon
        seconds = time.perf_counter() - started
        print(f"{name:46} {lower:9.4f} {report.epsilon:9.4f} {report.ratio:8.4f}", end=" ")
        print(f"{report.best.theorem.name:18.18} {seconds:7.2f}", flush=True)


def chain_speed() -> None:
    """A thousand steps on a thousand cells, both laws; and the error that halving the cells shows."""

    def chain(cells: int) -> Chain:
        return Chain(
            lambda x: 0.9 * x,
            lambda x: 0.9 * x + 0.3,
            lambda x: 0.9 * x,
            np.ones(1000),
            iid_hazard(0.1, 1000),
            -15.0,
            15.0,
            cells=cells,
        )

    times = []
    for _ in range(7):
        started = time.perf_counter()
        _ = chain(1000).laws
        times.append(time.perf_counter() - started)
    epsilons = np.array([0.0, 0.3, 0.6])
    deltas, errors = chain(1000).delta_with_error(epsilons)
    print(f"\na chain of 1000 steps on 1000 cells: {statistics.median(times):.3f} s, the median of 7")
    for epsilon, delta, error in zip(epsilons, deltas, errors, strict=True):
        print(f"  epsilon {epsilon:.1f}: delta = {delta:.6g} ± {error:.2g}")


if __name__ == "__main__":
    sandwiches()
    chain_speed()
