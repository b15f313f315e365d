"""Random batches, bounded domains, non-convex losses: the papers' bounds, ours, and a lower bound.

`python -m benchmarks.tightness.random_batches`: three tables, and where the time of `account` goes.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

import lastiterate as li
from lastiterate.theorems.papers import asoodeh2023
from lastiterate.theorems.reflection import REFLECTION

RECORDS = 10_000
STEPS = 100_000
DELTA = 1e-6
# b/n, sensitivity/noise, contraction, diameter/noise
STRONGLY_CONVEX = [
    (0.0025, 0.5, 0.99),
    (0.0025, 2.0, 0.999),
    (0.01, 0.1, 0.9999),
    (0.01, 0.5, 0.99),
    (0.01, 1.0, 0.999),
    (0.04, 0.5, 0.9),
    (0.04, 0.1, 0.999),
]
CONSTRAINED = [
    (0.0025, 1.0, 1.0),
    (0.0025, 0.5, 30.0),
    (0.01, 0.1, 10.0),
    (0.01, 0.5, 10.0),
    (0.01, 2.0, 3.0),
    (0.04, 0.1, 100.0),
    (0.04, 0.5, 1.0),
]


def run(share: float, push: float, factor: float, diameter: float = math.inf) -> li.Run:
    """Fixed-size batches; the noise on the iterate is 1, the step size is 1."""
    batch = round(share * RECORDS)
    loss = li.losses.general(smoothness=1 - factor, strong_convexity=1 - factor, gradient_sensitivity=push * batch)
    batches = li.FixedSize(records=RECORDS, batch_size=batch)
    domain = li.parts.ConvexSet(diameter) if math.isfinite(diameter) else li.Unbounded()
    return li.Run(loss, batches, 1.0, li.OnIterate(1.0), STEPS, domain)


def by_theorem(report: li.results.Report) -> dict[str, float]:
    return {one.theorem.name: epsilon for one, epsilon in zip(report.guarantees, report.epsilons, strict=True)}


def table(title: str, paper: str, rows: list[tuple[float, ...]], width: str) -> None:
    print(f"\n{title}, {STEPS} steps, delta = {DELTA:g}")
    print(f"{'b/n':>7} {'s/noise':>8} {width:>8} | {'4.8':>8} {paper:>8} |", end=" ")
    print(f"{'ours':>8} {'by':12} {'paper/ours':>10} | {'lower':>8} | {'CPU s':>7}")
    for share, push, last in rows:
        extra = (last,) if width == "c" else (1.0, last)
        started = time.process_time()
        report = li.account(run(share, push, *extra), delta=DELTA)
        seconds = time.process_time() - started
        found = by_theorem(report)
        composed = found["bok2024/random/composition"]
        printed = found["bok2024/random/strongly-convex" if width == "c" else "bok2024/random/constrained"]
        ours = report.epsilon
        best = min(composed, printed) / ours
        bound = report.lower_bound.epsilon
        name = report.best.theorem.name
        print(f"{share:7g} {push:8g} {last:8g} | {composed:8.4f} {printed:8.4f} |", end=" ")
        print(f"{ours:8.4f} {name:12.12} {best:10.2f} | {bound:8.4f} | {seconds:7.2f}")


def asoodeh() -> None:
    """D = 3, C = 2, step size 0.01, noise 1 on the iterate, batches of 1 of 1000."""
    loss, batches = li.losses.network(clip=2.0), li.FixedSize(records=1000, batch_size=1)
    given = li.Run(loss, batches, 0.01, li.OnIterate(1.0), 10**9, li.parts.ConvexSet(3.0))
    found = {name: next(t for t in li.theorems.ALL if t.name == name).apply(given.process) for name in _FOR_ASOODEH}
    print("\nAsoodeh and Diaz 2023, Fig. 1, any number of steps, delta = 1e-3")
    for name, guarantee in found.items():
        print(f"  {name:24} epsilon = {guarantee.epsilon(1e-3):.4g}")  # type: ignore[union-attr]
    print(f"  limit (22) {asoodeh2023.limit_epsilon(given.process, 1e-3):.4g}", end=", ")
    print(f"closed limit (23) {asoodeh2023.closed_limit_epsilon(given.process, 1e-3):.4g}")
    for epsilon in (0.0, 0.02):
        print(f"  block-mixing: delta = {found['block-mixing'].notion.delta(epsilon):.3g} at epsilon = {epsilon:g}")  # type: ignore[union-attr]


_FOR_ASOODEH = ("asoodeh2023/projected", "nonlinear-contraction", "block-mixing")


def full_batch() -> None:
    """Convex, full batches, sensitivity 0.1 of the noise."""
    print("\nConstrained, convex, full batches, sensitivity 0.1 of the noise, a million steps, delta = 1e-6")
    for diameter in (10.0, 1.0):
        loss = li.losses.general(smoothness=0.0, strong_convexity=0.0, gradient_sensitivity=0.1 * RECORDS)
        given = li.Run(loss, li.FullBatch(RECORDS), 1.0, li.OnIterate(1.0), 10**6, li.parts.ConvexSet(diameter))
        found = by_theorem(li.account(given, delta=DELTA, theorems=li.theorems.ALL))
        print(
            f"  D = {diameter:g} times the noise: Theorem 4.3 {found['bok2024/full-batch/constrained']:.4f}, "
            f"shift engine {found['shift-engine']:.4f}, block mixing {found['block-mixing']:.4f}"
        )


def counted(steps: int, rate: float, mu: float) -> float:
    """ε of Σ p_n·N(n·μ/√T, 1) against N(0, 1), p_n binomial: what linear losses tell of how often a record took part."""
    turns = np.arange(min(steps, 300) + 1)
    chances, means = binom.pmf(turns, steps, rate), mu * turns / steps**0.5

    def log_ratio(x: float) -> float:
        return float(logsumexp(means * x - means**2 / 2, b=chances))

    def delta(x: float) -> float:
        return float(chances @ ndtr(means - x) - math.exp(log_ratio(x)) * ndtr(-x))

    return log_ratio(brentq(lambda x: math.log(delta(x) / DELTA), 0.0, 12.0))


def smooth() -> None:
    """Logistic loss, fixed-size batches, rate 0.05, sensitivity half the noise: participation is hidden."""
    print(f"\nLogistic loss, rate 0.05, sensitivity half the noise, delta = {DELTA:g}; lower: linear losses")
    print(f"{'steps':>7} {'step size':>10} | {'4.8':>8} {'hidden':>8} {'prepaid':>8} | {'lower':>8} | {'CPU s':>7}")
    for steps in (60, 2000):
        ideal = counted(steps, 0.05, 0.5)
        for step_size in (1e-4, 1e-3, 1e-2, 0.1):
            noise, batches = li.OnIterate(0.08 * step_size), li.FixedSize(records=1000, batch_size=50)
            given = li.Run(li.losses.logistic(feature_norm=1.0), batches, step_size, noise, steps)
            started = time.process_time()
            found = by_theorem(li.account(given, delta=DELTA))
            seconds = time.process_time() - started
            print(f"{steps:7d} {step_size:10g} | {found['bok2024/random/composition']:8.4f}", end=" ")
            print(f"{found['hidden-participation']:8.4f} {found['hidden-participation/prepaid']:8.4f} |", end=" ")
            print(f"{ideal:8.4f} | {seconds:7.2f}")


def scheduled() -> None:
    """Bounded domain, the second half of the run with smaller steps: all counted as the worst, and as they are."""
    print(f"\nBounded domain, D = 2, noise 1, sensitivity 0.5, then 0.15; 400 steps, delta = {DELTA:g}")
    loss = li.losses.general(smoothness=0.0, strong_convexity=0.0, gradient_sensitivity=0.5)
    for batches in (li.FullBatch(1), li.FixedSize(records=10, batch_size=1), li.Shuffled(records=5, batch_size=1)):
        sizes = np.repeat([1.0, 0.3], 200)
        changing, worst, last = (
            li.Run(loss, batches, size, li.OnIterate(1.0), 400, li.parts.ConvexSet(2.0)).process
            for size in (sizes, 1.0, 0.3)
        )
        found = [f"{REFLECTION.notion(one).epsilon(DELTA):.4f}" for one in (worst, changing, last)]
        print(f"  {batches.called:29} as the worst {found[0]}, as they are {found[1]}, all like the last {found[2]}")


def where_the_time_goes() -> None:
    given = run(0.01, 0.5, 1.0, 10.0).process
    print(f"\nWhere the time of account goes: {STEPS} steps, b/n = 0.01, s/noise = 0.5, D/noise = 10")
    total = 0.0
    for theorem in li.theorems.ALL:
        started = time.process_time()
        answer = theorem.apply(given)
        epsilon = answer.epsilon(DELTA) if isinstance(answer, li.theorems.Guarantee) else math.nan
        seconds = time.process_time() - started
        total += seconds
        if isinstance(answer, li.theorems.Guarantee):
            print(f"  {theorem.name:32} {seconds:7.3f} s   epsilon {epsilon:10.4f}")
    print(f"  {'all, with those that refuse':32} {total:7.3f} s")


def main() -> None:
    table("Strongly convex, unbounded", "4.9", STRONGLY_CONVEX, "c")
    table("Convex, bounded domain", "4.10", CONSTRAINED, "D/noise")
    full_batch()
    asoodeh()
    smooth()
    scheduled()
    where_the_time_goes()


if __name__ == "__main__":
    main()
