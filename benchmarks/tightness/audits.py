"""Audits of noisy gradient descent on a quadratic, whose ε is known exactly.

`python -m benchmarks.tightness.audits [repetitions]`

Each repetition trains a thousand times or more on either of two data sets and audits at 95% confidence. Prints how the
audited ε lies beside the exact one, over all repetitions.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import lastiterate as li
from lastiterate.auditing.quadratic import OPPOSITE, PUSHES, simulation
from lastiterate.progress import progress_bar, tracked

DELTA = 1e-5
NOISE_AND_RUNS = ((0.1, 4000), (0.06, 1000), (0.04, 1000))


def noisy_gd(noise: float) -> li.Run:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.2, gradient_sensitivity=2.0)
    return li.Run(loss, li.FullBatch(records=100), 0.5, li.OnMeanGradient(std=noise), 10)


def audited(run: li.Run, repetitions: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    train = simulation(run).train
    found = [
        li.audit(train, PUSHES, OPPOSITE, delta=DELTA, runs=runs, seed=seed)
        for seed in tracked(range(repetitions), "repetitions")
    ]
    return np.array([one.epsilon for one in found]), np.array([one.epsilon_if_gaussian for one in found])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=200)
    chosen = parser.parse_args()
    above = 0
    print(f"{chosen.repetitions} repetitions, 95% confidence, delta = {DELTA:g}")
    print(f"{'exact':>8} {'runs':>6} | {'counted: median':>15} {'most':>7} |", end=" ")
    print(f"{'if Gaussian: least':>18} {'median':>7} {'most':>7} | above")
    for noise, runs in NOISE_AND_RUNS:
        exact = li.lower_bound(noisy_gd(noise), DELTA).epsilon
        with progress_bar():
            counted, gaussian = audited(noisy_gd(noise), chosen.repetitions, runs)
        over = int((np.maximum(counted, gaussian) > exact).sum())
        above += over
        print(f"{exact:8.3f} {runs:6d} | {np.median(counted):15.3f} {counted.max():7.3f} |", end=" ")
        print(f"{gaussian.min():18.3f} {np.median(gaussian):7.3f} {gaussian.max():7.3f} | {over:5d}", flush=True)
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
