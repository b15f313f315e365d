"""Mixing, diffusion and sampling: the numbers of Balle2019 and of Bok2024 §5.

`python -m benchmarks.papers.mechanisms [folder]`

Theorem 8 met by Monte Carlo, the semigroup by a two-sample test, Theorem 1 on random kernels, the crossing of pure and
Gaussian privacy, private posteriors by Langevin Monte Carlo, and the speed of secure noise. Plots go to the folder.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import ks_2samp

import lastiterate as li
from lastiterate.numerics.randomness import Source
from lastiterate.plots import draw_errors
from lastiterate.progress import progress_bar, tracked

KERNELS = 20_000


def theorem_8(folder: Path) -> None:
    print("Ornstein–Uhlenbeck at time 1 beside the Gaussian mechanism of the same guarantee (Theorem 8)")
    print(f"{'d':>5} {'rdp':>6} {'R':>4} | {'(1 + x)^-1':>10} {'ratio':>8} {'by samples':>11} {'± 2 s.e.':>9}")
    for dimension, rdp, norm in ((1, 0.1, 1.0), (10, 0.5, 2.0), (100, 0.1, 1.0), (1000, 1.0, 5.0)):
        chosen = li.mechanisms.OrnsteinUhlenbeck.for_target(rdp=rdp, sensitivity=1.0, norm=norm, dimension=dimension)
        plain = chosen.gaussian_error(1.0, dimension)
        value = np.zeros((20_000, dimension))
        value[:, 0] = norm
        ratios = np.square(chosen.release(value, 1.0, seed=1).value - value).sum(axis=1) / plain
        promised = 1 / (1 + dimension / (2 * rdp * norm**2))
        exact = chosen.mean_squared_error(1.0, norm, dimension) / plain
        doubt = 2 * ratios.std() / math.sqrt(len(ratios))
        print(
            f"{dimension:5d} {rdp:6.2f} {norm:4.1f} | {promised:10.6f} {exact:8.6f} {ratios.mean():11.6f} {doubt:9.6f}"
        )
    levels = np.geomspace(0.01, 10, 60)
    draw_errors(
        levels.tolist(), errors_at(levels, 10, 1.0), "ε of (α, αε)-RDP; d = 10, ‖f‖ ≤ 1", folder / "ou-error.png"
    )


def errors_at(levels: np.ndarray, dimension: int, norm: float) -> dict[str, list[float]]:
    chosen = [
        li.mechanisms.OrnsteinUhlenbeck.for_target(rdp=x, sensitivity=1.0, norm=norm, dimension=dimension)
        for x in levels
    ]
    return {
        "Gaussian mechanism": [one.gaussian_error(1.0, dimension) for one in chosen],
        "Ornstein–Uhlenbeck, and the best multiple of the Gaussian": [
            one.mean_squared_error(1.0, norm, dimension) for one in chosen
        ],
    }


def semigroup() -> None:
    diffusion, value = li.mechanisms.OrnsteinUhlenbeck(theta=0.7, rho=1.3, sensitivity=1.0), np.full(100_000, 2.0)
    later = diffusion.continued(diffusion.release(value, 0.4, seed=1), 1.1, seed=2)
    pvalue = ks_2samp(later.value, diffusion.release(value, 1.5, seed=3).value).pvalue
    print(
        f"\nreleased at 0.4 and continued to 1.5, or released at 1.5: Kolmogorov–Smirnov p = {pvalue:.3f}, 100000 each"
    )


def random_kernels() -> None:
    source = np.random.default_rng(0)
    wrong, least = 0, math.inf
    with progress_bar():
        for _ in tracked(range(KERNELS), "kernels"):
            excess = margin(source)
            wrong += excess < -1e-12
            least = min(least, excess)
    print(f"\n{KERNELS} random kernels at three ε each: {wrong} violate Theorem 1, smallest margin {least:.2g}")


def margin(source: np.random.Generator) -> float:
    """How far the bound is above the truth, for a random kernel and a random pair of laws."""
    states = int(source.integers(2, 6))
    matrix = source.dirichlet(np.full(states, source.choice([0.2, 1.0, 5.0])), size=states)
    kernel = li.mechanisms.FiniteKernel(matrix)
    one, two = source.dirichlet(np.full(states, source.choice([0.3, 2.0])), size=2)
    epsilon = float(source.uniform(0.01, 2))
    amplified = kernel.amplify((epsilon, max(hockey_stick(one, two, epsilon), hockey_stick(two, one, epsilon))))
    after = one @ kernel.matrix, two @ kernel.matrix
    targets = np.array([0.4, 1.0, 1.5]) * epsilon
    exact = [max(hockey_stick(*after, target), hockey_stick(*after[::-1], target)) for target in targets]
    return float((amplified.delta(targets) - exact).min())


def hockey_stick(one: np.ndarray, two: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())


def crossing() -> None:
    def ahead(product: float) -> float:
        return float(li.notions.GaussianDP(2 * math.sqrt(product)).delta(0.0)) - math.tanh(product)

    def halved(product: float) -> float:
        return float(li.notions.GaussianDP(2 * math.sqrt(product)).delta(0.0)) - math.tanh(product / 2)

    usual, ours = brentq(ahead, 0.2, 2.0), brentq(halved, 0.2, 20.0)
    print(
        f"\nexponential mechanism on a bounded set: μ = 2√(LD) is better than (2LD, 0)-DP from LD = {usual:.4f}",
        end=" ",
    )
    print(f"on, and than (LD, 0)-DP, which holds as well, from {ours:.4f} on (at ε = 0)")


def posteriors(folder: Path) -> None:
    """Made-up data, so that traces may be looked at; the guarantee is for the last iterate alone."""
    source = np.random.default_rng(4)
    data = source.normal(1.0, 1.0, (500, 2)).clip(-3, 3)
    labels = np.where(data @ [1.0, -1.0] + source.normal(0, 0.5, 500) > 0, 1.0, -1.0)
    unit = data / np.maximum(np.linalg.norm(data, axis=1, keepdims=True), 1.0)
    weight = 0.02  # of one record in the potential

    def mean(x: np.ndarray) -> np.ndarray:
        return weight * (500 * x - data.sum(axis=0))

    def median(x: np.ndarray) -> np.ndarray:
        gaps = x - data
        return weight * (gaps / np.sqrt(1 + np.square(gaps).sum(axis=1, keepdims=True))).sum(axis=0) + 0.1 * x

    def logistic(x: np.ndarray) -> np.ndarray:
        margins = labels * (unit @ x)
        return -weight * (labels / (1 + np.exp(margins))) @ unit + 0.1 * x

    print("\nposteriors by Langevin Monte Carlo: 500 records, 2000 steps, delta = 1e-5")
    cases: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float, float]] = {
        "mean": (mean, weight * 6 * math.sqrt(2), 500 * weight, 500 * weight),
        "median": (median, 2 * weight, 500 * weight + 0.1, 0.1),
        "logistic": (logistic, 2 * weight, 125 * weight + 0.1, 0.1),
    }
    for name, (gradient, change, top, bottom) in cases.items():
        sample = li.mechanisms.langevin(
            gradient,
            np.zeros(2),
            lipschitz=change,
            step_size=0.5 / top,
            steps=2000,
            smoothness=top,
            strong_convexity=bottom,
            seed=0,
            trace=True,
        )
        sample.plot(folder / f"trace-{name}.png")
        report = sample.report(1e-5)
        limit = li.mechanisms.exponential_mechanism(lipschitz=change, strong_convexity=bottom)
        print(f"  {name:9} last iterate {np.round(sample.value, 3)}, epsilon = {report.epsilon:.4f},", end=" ")
        print(
            f"exponential mechanism {float(limit.epsilon(1e-5)):.4f}, every iterate {report.epsilon_all_released:.4f}"
        )


def speed() -> None:
    secure, plain = Source(), np.random.default_rng()
    times: dict[str, list[float]] = {"secure": [], "numpy": []}
    for _ in range(7):
        for name, draw in (("secure", secure.normal), ("numpy", plain.standard_normal)):
            started = time.perf_counter()
            draw(10**6)
            times[name].append(time.perf_counter() - started)
    ours, limit = (statistics.median(times[name]) for name in ("secure", "numpy"))
    print(
        f"\na million normal numbers: secure {ours:.3f} s, numpy {limit:.3f} s, ratio {ours / limit:.1f}, medians of 7"
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/mechanisms")
    theorem_8(folder)
    semigroup()
    random_kernels()
    crossing()
    posteriors(folder)
    speed()
    print(f"\nplots: {folder}")


if __name__ == "__main__":
    main()
