"""A first look: what the accountants say of DP-SGD with noise multiplier 1 and sampling rate 0.01, step by step."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import lastiterate as li

DELTA = 1e-5
STEPS = (1, 100, 1_000, 10_000, 100_000, 1_000_000)
ORDERS = np.concatenate([np.linspace(1.1, 10.0, 60), np.linspace(11.0, 64.0, 54)])


def main() -> None:
    step = li.subsampled_gaussian(mu=1.0, inclusion=0.01)
    print(f"Poisson-sampled Gaussian, multiplier 1, rate 0.01, add-or-remove-one, delta = {DELTA:g}\n")
    print(f"{'steps':>9} {'without sampling':>17} {'moments (Renyi)':>16} {'epsilon':>13} {'at least':>13} {'ms':>6}")
    for steps in STEPS:
        start = time.perf_counter()
        lower, upper = step.compose(steps).bracket(DELTA)
        milliseconds = 1e3 * (time.perf_counter() - start)
        plain = li.GaussianDP(mu=1.0).compose(steps).epsilon(DELTA)
        renyi = renyi_of(step, steps).epsilon(DELTA)
        print(f"{steps:9} {plain:17.6g} {renyi:16.6g} {upper:13.9g} {lower:13.9g} {milliseconds:6.1f}")
    fixed = li.subsampled_gaussian(mu=2.0, inclusion=0.01, sampling=li.FIXED_SIZE, adjacency=li.REPLACE_ONE)
    epsilon = fixed.compose(10_000).epsilon(DELTA)
    print(
        f"\nfixed-size batches, replace-one, 10,000 steps: epsilon = {epsilon:.6g} (a harder notion: docs/notions.md)"
    )
    mu = li.largest_mu(epsilon=1.0, delta=DELTA, inclusion=0.01, times=10_000)
    print(f"noise multiplier for epsilon = 1 after 10,000 steps: {1 / mu:.6f}")
    print(f"\nplot: {plot(step)}")


def renyi_of(step: li.SubsampledGaussians, steps: int) -> li.RenyiDP:
    return li.RenyiDP(orders=ORDERS, divergences=steps * step.rdp(ORDERS), adjacency=step.adjacency)


def plot(step: li.SubsampledGaussians) -> Path:
    """ε against the number of steps, written to out/first_look.png."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    counts = np.unique(np.geomspace(200, 1e6, 30).astype(int))
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.loglog(counts, [renyi_of(step, n).epsilon(DELTA) for n in counts], label="moments accountant (Rényi)")
    axes.loglog(counts, [step.compose(int(n)).epsilon(DELTA) for n in counts], label="lastiterate (certified)")
    axes.set(xlabel="steps", ylabel=f"ε at δ = {DELTA:g}", title="DP-SGD, noise multiplier 1, sampling rate 0.01")
    axes.grid(which="both", alpha=0.2)
    axes.legend()
    path = Path("out") / "first_look.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


if __name__ == "__main__":
    main()
