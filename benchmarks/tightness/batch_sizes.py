"""Batches of random size: what averaging over the size gains, and what unusual sizes cost. `make batch-sizes`.

CHANGELOG quotes the first three.
"""

from __future__ import annotations

import time

import lastiterate as li

DELTA = 1e-5


def averaged(records: int, rate: float, std: float, steps: int) -> li.Run:
    """A network whose clipped gradients are averaged over the size of their batch."""
    return li.Run(
        li.losses.network(clip=1.0),
        li.parts.PoissonMean(records, rate),
        0.1,
        li.OnMeanGradient(std),
        steps,
        li.Unbounded(),
    )


def logistic(
    batches: li.Poisson | li.parts.PoissonMean, std: float, steps: int, step_size: float, **given: float
) -> li.Run:
    """`given`: l2, or the radius of a ball."""
    loss = li.losses.logistic(feature_norm=1.0, l2=given.get("l2", 0.0), clip=1.0)
    domain = li.Ball(given["radius"]) if "radius" in given else li.Unbounded()
    return li.Run(loss, batches, step_size, li.OnMeanGradient(std), steps, domain)


RUNS = {
    "own mean, 400 records, rate 0.1, noise 0.2, 1 step": averaged(400, 0.1, 0.2, 1),
    "own mean, 400 records, rate 0.1, noise 0.2, 100 steps": averaged(400, 0.1, 0.2, 100),
    "own mean, 10,000 records, rate 0.1, noise 0.005, 1000 steps": averaged(10_000, 0.1, 0.005, 1_000),
    "own mean, logistic, 400 records, rate 0.1, l2 0.05, 500 steps": logistic(
        li.parts.PoissonMean(400, 0.1), 0.1, 500, 3.2, l2=0.05
    ),
    "own mean, logistic, 400 records, rate 0.1, radius 0.2, 500 steps": logistic(
        li.parts.PoissonMean(400, 0.1), 0.1, 500, 3.2, radius=0.2
    ),
    "sum, logistic, 400 records, rate 0.1, l2 0.05, 500 steps": logistic(li.Poisson(400, 0.1), 0.1, 500, 3.2, l2=0.05),
    "sum, logistic, 400 records, rate 0.1, radius 0.2, 500 steps": logistic(
        li.Poisson(400, 0.1), 0.1, 500, 3.2, radius=0.2
    ),
    "sum, logistic, 20,000 records, rate 0.05, l2 0.05, 500 steps": logistic(
        li.Poisson(20_000, 0.05), 0.01, 500, 6.0, l2=0.05
    ),
}


def main() -> None:
    print(f"delta = {DELTA:g}")
    print(f"{'':66} {'epsilon':>9} {'lower':>9}  {'theorem':28} seconds")
    for name, run in RUNS.items():
        started = time.process_time()
        report = li.account(run, DELTA)
        seconds = time.process_time() - started
        lower = li.lower_bound(run, DELTA).epsilon
        print(f"{name:66} {report.epsilon:9.4g} {lower:9.4g}  {report.best.theorem.name:28} {seconds:.2f}", flush=True)


if __name__ == "__main__":
    main()
